//! A short description of a request, for the history, where the whole change would be too long.

use protocol::{Edit, manager::Request};

/// Maximum number of things that are named; the rest are only counted.
const NAMED_MAX: usize = 3;

/// A short description of a request.
pub fn in_words(request: &Request) -> String {
    match request {
        Request::Make(change) => {
            let named: Vec<String> = change.edits.iter().take(NAMED_MAX).map(edit_in_words).collect();
            let more = change.edits.len() - named.len();
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
        Request::Cancel(change) => format!("cancel {change}"),
    }
}

fn edit_in_words(edit: &Edit) -> String {
    match edit {
        Edit::AddVm { vm } => format!("add vm {vm}"),
        Edit::RemoveVm { vm } => format!("remove vm {vm}"),
        Edit::AddComponent { component, vm, .. } => format!("add {component} on {vm}"),
        Edit::RemoveComponent { component } => format!("remove {component}"),
        Edit::RestartComponent { component } => format!("restart {component}"),
        Edit::SetNeed { component, import, number } => format!("{component}.{import} needs {number}"),
        Edit::AddBinding(wire) => format!("bind {wire}"),
        Edit::RemoveBinding(wire) => format!("unbind {wire}"),
    }
}
