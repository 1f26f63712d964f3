//! Names that operators type: a short name is enough where only one thing can be meant.

use crate::{failure::Failure, operator::Operator};
use application::hint;
use cloud_manager::document::{ApplicationDocument, Component};

/// The component that a name means: its full name, its name without the application (`web[0]`), or without its index if
/// there is only one of the group (`database`). An unknown name is left as it is, so that the manager's answer says what is
/// wrong with it.
pub(crate) fn component(operator: &Operator, given: &str) -> Result<String, Failure> {
    let all: Vec<Component> = operator.get("/v1/components")?;
    let names: Vec<&str> = all.iter().map(|it| it.name.as_str()).collect();
    match meant(given, &names) {
        Meant::One(name) => Ok(name.to_owned()),
        Meant::Several(names) => Err(Failure::Usage(format!("{given} may be any of {}", names.join(", ")))),
        Meant::None => Ok(given.to_owned()),
    }
}

/// Whether there is an application of this name.
pub(crate) fn is_application(operator: &Operator, given: &str) -> Result<bool, Failure> {
    let all: Vec<ApplicationDocument> = operator.get("/v1/applications")?;
    Ok(all.iter().any(|it| it.name == given))
}

/// What to say about a name that means nothing.
pub(crate) fn unknown<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Failure {
    Failure::Usage(format!("there is no application, component or VM {given:?}{}", hint(given, known)))
}

/// What a name may mean.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Meant<'a> {
    /// One thing.
    One(&'a str),
    /// Any of these.
    Several(Vec<&'a str>),
    /// Nothing that there is.
    None,
}

/// Which of these names is meant.
pub(crate) fn meant<'a>(given: &str, names: &[&'a str]) -> Meant<'a> {
    // A replaced component and its successor have one name for a while.
    let mut names = names.to_vec();
    names.sort_unstable();
    names.dedup();
    if let Some(name) = names.iter().find(|it| **it == given) {
        return Meant::One(name);
    }
    let group = |name: &'a str| name.split_once('[').map_or(name, |(group, _)| group);
    let local = |name: &'a str| name.split_once('/').map_or(name, |(_, local)| local);
    let fits = |name: &&&'a str| {
        let name: &'a str = name;
        [local(name), group(name), group(local(name))].contains(&given)
    };
    let found: Vec<&'a str> = names.iter().filter(fits).copied().collect();
    match found.as_slice() {
        [] => Meant::None,
        [one] => Meant::One(one),
        _ => Meant::Several(found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_name_is_enough_where_only_one_thing_is_meant() {
        let names = ["shop/web[0]", "shop/web[1]", "shop/database[0]", "blog/web[0]", "blog/web[0]", "edge"];
        assert_eq!(meant("shop/web[1]", &names), Meant::One("shop/web[1]"));
        assert_eq!(meant("web[1]", &names), Meant::One("shop/web[1]"));
        assert_eq!(meant("database", &names), Meant::One("shop/database[0]"));
        assert_eq!(meant("shop/database", &names), Meant::One("shop/database[0]"));
        assert_eq!(meant("blog/web", &names), Meant::One("blog/web[0]"));
        assert_eq!(meant("edge", &names), Meant::One("edge"));
        assert_eq!(meant("web[0]", &names), Meant::Several(vec!["blog/web[0]", "shop/web[0]"]));
        assert_eq!(meant("shop/web", &names), Meant::Several(vec!["shop/web[0]", "shop/web[1]"]));
        assert_eq!(meant("cache", &names), Meant::None);
    }
}
