//! Templates, and what they see.
//!
//! | name | what |
//! |---|---|
//! | `name`, `host`, `directory` | the component's name, the VM's address, the component's own directory |
//! | `key`, `index` | the name without that of its application, such as `app[2]`, and the number in it |
//! | `group.count` | how many components its group has; only where the application says so |
//! | `data.<name>` | the path of a directory that is kept for the component |
//! | `parameters.<name>` | the constants of the recipe |
//! | `values.<name>`, and `<name>` unless it is `name`, `host`, `directory`, `parameters`, `values` or `imports` | the component's own values so far |
//! | `imports.<import>[i].<value>` | the values of its bindings, ordered by binding; in a run only |
//! | `free_port()` | in values only: a port that the component keeps |
//!
//! Values have their types: templates can calculate with numbers and test booleans.
//!
//! An unknown name is an error that names it; an empty text instead would be noticed much later.

use crate::{
    CommandLine, Recipe,
    template_bounds::excess,
    value_type::{ValueType, ValueTypes},
};
use minijinja::{Environment, Error, ErrorKind, UndefinedBehavior, Value, escape_formatter, value::ValueKind};
use protocol::{HeldBinding, Name, Values};
use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, Write},
    net::IpAddr,
    ops::Range,
    path::{Path, PathBuf},
};

/// The environment variable that contains a component's own directory, and marks its processes as belonging to it.
pub const DIRECTORY_VARIABLE: &str = "HOLDFAST_DIRECTORY";

/// Maximum length of a rendered text.
const RENDERED_BYTES_MAX: usize = 1 << 20;
/// Maximum number of steps of one rendering; enough for any reasonable template.
const STEPS_MAX: u64 = 1_000_000;

/// Maximum number of values that are followed to determine one in advance.
const KNOWN_MAX: usize = 20;

/// What templates see.
#[derive(Clone, Debug)]
pub struct View<'a> {
    pub name: &'a Name,
    pub host: IpAddr,
    pub home: &'a Path,
    /// The directory that has the component's data directories.
    pub data: PathBuf,
    pub recipe: &'a Recipe,
    /// The component's own values so far.
    pub values: Values,
    /// The imports of its kind, each present even if nothing is bound to it; none outside of a run.
    pub imports: &'a [Name],
    pub bindings: &'a [HeldBinding],
}

/// A template that cannot be rendered: which one, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("template of {what}: {why}")]
pub struct TemplateError {
    /// What the template is for.
    pub what: String,
    /// Why it cannot be rendered.
    pub why: String,
}

impl View<'_> {
    /// Renders a text; `what` names it in errors.
    pub fn render(&self, what: &str, template: &str) -> Result<String, TemplateError> {
        self.render_with(what, template, &mut environment())
    }

    /// Renders the text of a value, which may ask for ports: each call of `free_port()` calls the function given here.
    pub fn render_value(
        &self,
        name: &Name,
        template: &str,
        free_port: impl Fn() -> io::Result<u16> + Send + Sync + 'static,
    ) -> Result<String, TemplateError> {
        let mut environment = environment();
        environment.add_function("free_port", move || -> Result<u16, Error> {
            free_port().map_err(|error| Error::new(ErrorKind::InvalidOperation, error.to_string()))
        });
        self.render_with(&format!("value {name:?}"), template, &mut environment)
    }

    /// The words of a command.
    pub fn words(&self, what: &str, line: &CommandLine) -> Result<Vec<String>, TemplateError> {
        match line {
            CommandLine::Shell(text) => Ok(vec!["/bin/sh".into(), "-c".into(), self.render(what, text)?]),
            CommandLine::Program(words) => words.iter().map(|word| self.render(what, word)).collect(),
        }
    }

    /// The environment variables of every command of the component.
    pub fn variables(&self) -> BTreeMap<String, String> {
        let mut variables = BTreeMap::from([
            ("HOLDFAST_NAME".to_owned(), self.name.to_string()),
            (DIRECTORY_VARIABLE.to_owned(), self.home.display().to_string()),
        ]);
        for (name, path) in self.data_directories() {
            variables.insert(format!("HOLDFAST_DATA_{}", as_variable(name.as_str())), path);
        }
        for (import, bindings) in self.bindings_by_import() {
            for (place, binding) in bindings.iter().enumerate() {
                for (value, text) in &binding.values {
                    let (import, value) = (as_variable(import.as_str()), as_variable(value.as_str()));
                    variables.insert(format!("HOLDFAST_{import}_{place}_{value}"), text.to_string());
                }
            }
        }
        variables
    }

    /// All secret texts.
    pub fn secrets(&self) -> BTreeSet<String> {
        let types = &self.recipe.types;
        let mut texts: BTreeSet<String> = self.recipe.secrets.values().cloned().collect();
        texts.extend(types.values.secrets().filter_map(|name| self.values.get(name)).map(|text| text.to_string()));
        for binding in self.bindings {
            let names = types.imports.get(&binding.import).into_iter().flat_map(ValueTypes::secrets);
            texts.extend(names.filter_map(|name| binding.values.get(name)).map(|text| text.to_string()));
        }
        texts.retain(|text| !text.is_empty());
        texts
    }

    fn bindings_by_import(&self) -> BTreeMap<&Name, Vec<&HeldBinding>> {
        let mut imports: BTreeMap<_, Vec<_>> = self.imports.iter().map(|import| (import, Vec::new())).collect();
        for binding in self.bindings {
            imports.entry(&binding.import).or_default().push(binding);
        }
        for bindings in imports.values_mut() {
            bindings.sort_by_key(|binding| binding.binding);
        }
        imports
    }

    fn context(&self) -> BTreeMap<String, Value> {
        let imports = self.bindings_by_import().into_iter().map(|(import, bindings)| {
            let types = self.recipe.types.imports.get(import);
            let bindings: Vec<Value> = bindings.iter().map(|it| seen(&it.values, types).collect()).collect();
            (import.as_str().to_owned(), Value::from(bindings))
        });
        let own = || seen(&self.values, Some(&self.recipe.types.values));
        let mut context = self.place_in_group();
        context.extend(own());
        context.extend([
            ("name".to_owned(), Value::from(self.name.as_str())),
            ("host".to_owned(), Value::from(self.host.to_string())),
            ("directory".to_owned(), Value::from(self.home.display().to_string())),
            ("parameters".to_owned(), self.parameters()),
            ("values".to_owned(), own().collect()),
            ("imports".to_owned(), imports.collect()),
        ]);
        context
    }

    /// Names that a value of the component itself may have too: then that value is meant.
    fn place_in_group(&self) -> BTreeMap<String, Value> {
        let data = self.data_directories().map(|(name, path)| (name.to_string(), path)).collect();
        let mut context =
            BTreeMap::from([("key".to_owned(), Value::from(key_of(self.name.as_str()))), ("data".to_owned(), data)]);
        context.extend(index_of(self.name.as_str()).map(|index| ("index".to_owned(), Value::from(index))));
        let count = self.recipe.group_count;
        context.extend(count.map(|it| ("group".to_owned(), [("count", it)].into_iter().collect())));
        context
    }

    fn data_directories(&self) -> impl Iterator<Item = (&Name, String)> {
        let names = self.recipe.data.directories.iter();
        names.map(|name| (name, self.data.join(name.as_str()).display().to_string()))
    }

    fn parameters(&self) -> Value {
        let plain = self.recipe.parameters.iter().map(|(name, value)| (name.clone(), Value::from_serialize(value)));
        let secret = self.recipe.secrets.iter().map(|(name, text)| (name.clone(), Value::from(text.as_str())));
        plain.chain(secret).collect()
    }

    fn render_with(&self, what: &str, text: &str, environment: &mut Environment) -> Result<String, TemplateError> {
        let error = |why: String| TemplateError { what: what.to_owned(), why };
        if let Some((_, why)) = excess(text) {
            return Err(error(why));
        }
        let mut rendered = Bounded(Vec::new());
        environment
            .template_from_str(text)
            .and_then(|template| template.render_captured_to(self.context(), &mut rendered).map(drop))
            .map_err(|failure| error(explain(&failure, text)))?;
        String::from_utf8(rendered.0).map_err(|_| error("not a text".into()))
    }
}

impl Recipe {
    /// The text of a value, if only templates and parameters that are not secret determine it.
    pub fn known(&self, value: &Name) -> Option<String> {
        let mut known = BTreeMap::from([(value.clone(), None)]);
        self.known_in(&self.values.get(value)?.template, None, &mut known)
    }

    /// The text of a template, if only parameters that are not secret, known values and the VM's address determine it;
    /// `host` stands for that address.
    pub fn known_at(&self, template: &str, host: &str) -> Option<String> {
        self.known_in(template, Some(host), &mut BTreeMap::new())
    }

    /// `known` are values that were looked at already; `None` for those that are still being looked at, which would be
    /// a cycle.
    fn known_in(&self, text: &str, host: Option<&str>, known: &mut BTreeMap<Name, Option<String>>) -> Option<String> {
        if excess(text).is_some() {
            return None;
        }
        let environment = environment();
        let template = environment.template_from_str(text).ok()?;
        let mut context = BTreeMap::from([("parameters".to_owned(), Value::from_serialize(&self.parameters))]);
        context.extend(host.map(|host| ("host".to_owned(), host.into())));
        let mut values = Values::new();
        for read in template.undeclared_variables(true) {
            let (first, rest) = read.split_once('.').unwrap_or((&read, ""));
            let own = match first {
                "parameters" => continue,
                "host" if host.is_some() => continue,
                "values" => rest,
                "host" | "name" | "directory" | "imports" => return None,
                own => own,
            };
            let own = Name::new(own).ok()?;
            if !known.contains_key(&own) && known.len() < KNOWN_MAX {
                known.insert(own.clone(), None);
                let text = self.known_in(&self.values.get(&own)?.template, host, known);
                known.insert(own.clone(), text);
            }
            let text = known.get(&own).cloned().flatten()?;
            values.insert(own, text.into());
        }
        let own = || seen(&values, Some(&self.types.values));
        context.insert("values".to_owned(), own().collect());
        context.extend(own());
        let mut rendered = Bounded(Vec::new());
        template.render_captured_to(context, &mut rendered).ok()?;
        String::from_utf8(rendered.0).ok()
    }
}

/// A name without that of its application.
fn key_of(name: &str) -> &str {
    name.split_once('/').map_or(name, |(_, key)| key)
}

/// The number of a component in its group, if it has one.
fn index_of(name: &str) -> Option<u32> {
    name.strip_suffix(']')?.rsplit_once('[')?.1.parse().ok()
}

fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_keep_trailing_newline(true);
    environment.set_fuel(Some(STEPS_MAX));
    environment.set_debug(true);
    environment.add_filter("quote", quote);
    // With it, a value could contain itself, and rendering it would never end.
    environment.remove_global("namespace");
    environment.set_formatter(|out, state, value| match value.kind() {
        ValueKind::Bool => out.write_str(&as_written(value)).map_err(Error::from),
        _ => escape_formatter(out, state, value),
    });
    environment
}

/// Values as templates see them. Texts of the wrong type were refused before.
fn seen<'a>(values: &'a Values, types: Option<&'a ValueTypes>) -> impl Iterator<Item = (String, Value)> {
    values.iter().map(move |(name, text)| {
        let value = types.map_or(ValueType::Text, |it| it.of(name)).read(text);
        (name.to_string(), value.map_or_else(|| Value::from(text.as_ref()), Value::from_serialize))
    })
}

/// Quotes a value as one word for a shell.
fn quote(value: &Value) -> Result<String, Error> {
    if value.is_undefined() {
        return Err(Error::new(ErrorKind::InvalidOperation, "cannot quote an undefined value"));
    }
    Ok(format!("'{}'", as_written(value).replace('\'', r"'\''")))
}

/// A boolean in lower case, unlike Jinja's, and everything else as it is.
fn as_written(value: &Value) -> String {
    if value.kind() == ValueKind::Bool { value.is_true().to_string() } else { value.to_string() }
}

fn as_variable(name: &str) -> String {
    name.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter.to_ascii_uppercase() } else { '_' }).collect()
}

/// The error, with the part of the template that caused it.
fn explain(error: &Error, template: &str) -> String {
    // The range may begin in the middle of a path such as `imports.db[0].port`: all of it is shown.
    let is_of_a_path = |letter: char| letter.is_alphanumeric() || "_.[]".contains(letter);
    let whole = |range: Range<usize>| {
        let before = template.get(..range.start)?.trim_end_matches(is_of_a_path).len();
        template.get(before..range.end)
    };
    let piece = error.range().and_then(whole).unwrap_or(template).trim();
    let piece: String = piece.chars().take(200).collect();
    let line = error.line().map(|line| format!(" in line {line}")).unwrap_or_default();
    match error.kind() {
        ErrorKind::UndefinedError | ErrorKind::UnknownFunction => format!("unknown name `{piece}`{line}"),
        ErrorKind::OutOfFuel => "exceeds the limit of steps".into(),
        ErrorKind::WriteFailure => format!("the text is longer than {RENDERED_BYTES_MAX} bytes"),
        kind => format!("{}{line}: `{piece}`", error.detail().map_or_else(|| kind.to_string(), str::to_owned)),
    }
}

/// A writer with a maximum length.
struct Bounded(Vec<u8>);

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > RENDERED_BYTES_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{At, HandedOut};
    use protocol::BindingId;
    use std::net::Ipv4Addr;

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    fn check(template: &str) -> Result<String, String> {
        let mut recipe = Recipe::default();
        recipe.parameters.insert("workers".into(), 4.into());
        recipe.group_count = Some(3);
        recipe.data.directories = [name("files")].into();
        recipe.types.values =
            [(name("port"), ValueType::Port), (name("tls"), ValueType::Boolean)].into_iter().collect();
        recipe.types.imports.insert(name("db"), [(name("port"), ValueType::Port)].into_iter().collect());
        let values = |port: &str| Values::from([(name("port"), port.into())]);
        let held =
            |binding, port| HeldBinding { import: name("db"), binding: BindingId(binding), values: values(port) };
        let view = View {
            name: &name("shop/app[2]"),
            host: Ipv4Addr::LOCALHOST.into(),
            home: Path::new("/srv/app"),
            data: "/srv/data".into(),
            recipe: &recipe,
            values: [("port", "8080"), ("name", "mine"), ("tls", "false")]
                .map(|(value, text)| (name(value), text.into()))
                .into(),
            imports: &[name("cache"), name("db")],
            bindings: &[held(9, "2"), held(3, "1")],
        };
        view.render("a text", template).map_err(|error| error.to_string())
    }

    #[test]
    fn templates_see_the_component_its_values_and_its_imports() {
        let told = check("{{ name }} {{ values.name }} {{ host }}:{{ port }} {{ directory }} {{ parameters.workers }}");
        assert_eq!(told.unwrap(), "shop/app[2] mine 127.0.0.1:8080 /srv/app 4");
        // Ordered by the number of the binding, not by arrival.
        let told = check("{% for db in imports.db %}{{ db.port }},{% endfor %}{{ imports.cache | length }}\n");
        assert_eq!(told.unwrap(), "1,2,0\n");
        assert_eq!(check("{{ \"it's\" | quote }}").unwrap(), r"'it'\''s'");
    }

    #[test]
    fn templates_see_the_place_in_the_group_and_what_is_kept() {
        let told = check("{{ key }} {{ index + 1 }} of {{ group.count }}, {{ data.files }}");
        assert_eq!(told.unwrap(), "app[2] 3 of 3, /srv/data/files");
        assert_eq!((index_of("app"), index_of("app[x]"), key_of("app")), (None, None, "app"));
        assert!(check("{{ data.file }}").unwrap_err().contains("data.file"));
    }

    #[test]
    fn templates_calculate_with_numbers_and_ask_booleans() {
        for (template, expected) in [
            ("{{ port + 1 }} {{ values.port // 2 }} {{ imports.db[0].port + 1 }}", "8081 4040 2"),
            ("{% if tls %}yes{% else %}no{% endif %} {{ tls }} {{ not tls }}", "no false true"),
            ("{{ imports.db | map(attribute='port') | sum }} {{ imports.db[1].port > 1 }}", "3 true"),
            // A number can still be quoted, and be part of a text.
            ("{{ port | quote }} {{ 'at ' ~ port }} {{ tls | quote }}", "'8080' at 8080 'false'"),
        ] {
            assert_eq!(check(template).unwrap(), expected);
        }
        let told = check("{{ values.name + 1 }}").unwrap_err();
        assert!(told.contains("values.name + 1"), "{told}");
    }

    #[test]
    fn a_value_is_known_where_only_parameters_decide_it() {
        let recipe = |template: &str| Recipe {
            parameters: [("workers".to_owned(), 4.into()), ("tls".into(), true.into())].into(),
            secrets: [("word".to_owned(), "hunter2".to_owned())].into(),
            values: [("it", template), ("port", "{{ parameters.workers }}")]
                .map(|(it, template)| (name(it), HandedOut { template: template.into(), at: At::Prepare }))
                .into(),
            ..Recipe::default()
        };
        let known = |template: &str| recipe(template).known(&name("it"));
        assert_eq!(known("{{ port }}{{ values.port }}").as_deref(), Some("44"));
        let address = recipe("{{ free_port() }}").known_at("http://{{ host }}:{{ port }}/", "here");
        assert_eq!(address.as_deref(), Some("http://here:4/"));
        assert_eq!(known("80").as_deref(), Some("80"));
        assert_eq!(known("{{ parameters.workers * 2 }} {{ parameters.tls }}").as_deref(), Some("8 true"));
        let unknown = [
            "{{ free_port() }}",
            "{{ host }}",
            "{{ imports.db[0].port | default(1) }}",
            "{{ parameters.word }}",
            "{{",
            "{{ it }}",
        ];
        for template in unknown {
            assert_eq!(known(template), None, "{template}");
        }
    }

    #[test]
    fn an_unknown_name_is_told() {
        let unknown = [
            ("a\n{{ prot }}", "unknown name `prot` in line 2"),
            ("{{ parameters.worker }}", "parameters.worker"),
            ("{{ imports.db[2].port }}", "imports.db[2]"),
            ("{{ imports.db[0].prot }}", "imports.db[0].prot"),
            ("{{ imports.sql }}", "imports.sql"),
            ("{{ free_port() }}", "free_port"),
        ];
        for (template, expected) in unknown {
            let told = check(template).unwrap_err();
            assert!(told.starts_with("template of a text: unknown name") && told.contains(expected), "{told}");
        }
    }

    #[test]
    fn garbage_and_endless_templates_are_refused() {
        for (template, expected) in [
            ("{{", "template of a text"),
            (
                "{% for a in range(90000) %}{% for b in range(90000) %}{% endfor %}{% endfor %}",
                "exceeds the limit of steps",
            ),
            ("{% for a in range(9000) %}{{ 'x' * 1000 }}{% endfor %}", "longer than"),
            ("{{ 1 // 0 }}", "1 // 0"),
            ("{{ prot | quote }}", "cannot quote an undefined value"),
            (&format!("{{{{ 1{} }}}}", "+1".repeat(12_000)), "more than 500 parts"),
            ("{% set n = namespace(x=0) %}{% set n.x = n %}{{ n }}", "unknown name `namespace"),
        ] {
            let told = check(template).unwrap_err();
            assert!(told.contains(expected), "{told}");
        }
    }
}
