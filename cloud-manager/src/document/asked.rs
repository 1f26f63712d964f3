//! What was asked, in a few words: for the history, where the whole change would be too much.

use protocol::{Wish, manager::Request};

/// At most so many things are named; the others are counted.
const NAMED_MAX: usize = 3;

/// A request in a few words.
pub fn in_words(request: &Request) -> String {
    match request {
        Request::Make(change) => {
            let named: Vec<String> = change.wishes.iter().take(NAMED_MAX).map(wish_in_words).collect();
            let more = change.wishes.len() - named.len();
            let text = named.join(", ");
            match (named.is_empty(), more) {
                (true, _) => "nothing".into(),
                (_, 0) => text,
                _ => format!("{text} and {more} more"),
            }
        }
        Request::Retry(component) => format!("retry {component}"),
        Request::Skip(component) => format!("skip what failed of {component}"),
        Request::DeclareLost(vm) => format!("declare vm {vm} lost"),
    }
}

fn wish_in_words(wish: &Wish) -> String {
    match wish {
        Wish::AddVm { vm } => format!("add vm {vm}"),
        Wish::RemoveVm { vm } => format!("remove vm {vm}"),
        Wish::AddComponent { component, vm, .. } => format!("add {component} on {vm}"),
        Wish::RemoveComponent { component } => format!("remove {component}"),
        Wish::RestartComponent { component } => format!("restart {component}"),
        Wish::SetNeed { component, import, number } => format!("{component}.{import} needs {number}"),
        Wish::AddBinding(wire) => format!("bind {wire}"),
        Wish::RemoveBinding(wire) => format!("unbind {wire}"),
    }
}
