//! Data that VMs keep for components: what there is, and how it is deleted by hand.
//!
//! Which VM keeps what is in the manager's own records; how large it is, and where, its agent is asked.

use super::{
    Api,
    applications::present_data,
    problem::{Problem, json},
    reading::{Asked, Named},
};
use crate::applications::present::KeptData;
use crate::document::{DataDirectory, DataDocument, quoted};
use axum::{
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use protocol::letter::HostQuestion;
use protocol::{Name, VmId};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use tokio::task::JoinSet;
use vm_agent::host;

/// VMs that are asked at a time.
const QUESTIONS_MAX: usize = 32;

/// What an agent keeps, or why that is not known.
type Answers = BTreeMap<VmId, Result<Vec<host::KeptData>, String>>;

/// All data, by component and VM.
pub(super) async fn list(State(api): State<Api>) -> Result<Response, Problem> {
    let (kept, used) = api
        .manager
        .look_at_all(|manager| {
            let book = manager.book();
            let used: BTreeSet<(Name, Name)> =
                book.components().map(|it| (it.name.clone(), book.vm_of(it).name.clone())).collect();
            (present_data(manager), used)
        })
        .await?;
    let answers = ask(&api, &kept).await;
    let mut documents: Vec<DataDocument> =
        kept.iter().map(|it| document(it, &answers, used.contains(&(it.key.clone(), it.vm.clone())))).collect();
    documents.sort_by(|one, other| (&one.key, &one.vm).cmp(&(&other.key, &other.vm)));
    Ok(json(StatusCode::OK, &documents))
}

/// Asks the agents of these VMs what they keep.
async fn ask(api: &Api, kept: &[KeptData]) -> Answers {
    let vms: BTreeSet<VmId> = kept.iter().map(|it| it.id).collect();
    let (mut left, mut waiting, mut answers) = (vms.into_iter(), JoinSet::new(), Answers::new());
    loop {
        while waiting.len() < QUESTIONS_MAX
            && let Some(vm) = left.next()
        {
            let manager = api.manager.clone();
            waiting.spawn(async move { (vm, manager.host_question(vm, HostQuestion::Data).await) });
        }
        let Some(answered) = waiting.join_next().await else { return answers };
        let (vm, answer) = answered.expect("a question neither panics nor is cancelled");
        let read = |text: String| serde_json::from_str(&text).map_err(|_| "its agent gave no list".to_owned());
        answers.insert(vm, answer.map_err(|error| error.to_string()).and_then(read));
    }
}

fn document(kept: &KeptData, answers: &Answers, in_use: bool) -> DataDocument {
    let KeptData { id, vm, key, directories, .. } = kept;
    let plain =
        || directories.iter().map(|it| DataDirectory { name: it.to_string(), path: None, bytes: None }).collect();
    let (directories, unknown) = match answers.get(id) {
        Some(Ok(all)) => match all.iter().find(|it| it.key == *key) {
            Some(it) => {
                let directory = |it: &host::KeptDirectory| DataDirectory {
                    name: it.name.clone(),
                    path: Some(it.path.display().to_string()),
                    bytes: Some(it.bytes),
                };
                (it.directories.iter().map(directory).collect(), None)
            }
            // It is made at the first start of its component.
            None => (plain(), None),
        },
        Some(Err(why)) => (plain(), Some(why.clone())),
        None => (plain(), None),
    };
    DataDocument { key: key.to_string(), vm: vm.to_string(), in_use, directories, unknown }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Which {
    /// The VM, where several keep data of one name.
    vm: Option<String>,
}

/// Deletes the data of one name on one VM. Refused while a component uses it.
pub(super) async fn delete(
    State(api): State<Api>,
    Named(key): Named,
    Asked(query): Asked<Which>,
) -> Result<Response, Problem> {
    let (name, vm) = (key.clone(), query.vm);
    let found = api.manager.look_at_all(move |manager| {
        let book = manager.book();
        let meant = present_data(manager).into_iter().filter(|it| it.key == name);
        let meant: Vec<KeptData> = meant.filter(|it| vm.as_deref().is_none_or(|vm| vm == it.vm.as_str())).collect();
        let is_used =
            |it: &KeptData| book.components().any(|user| user.name == it.key && book.vm_of(user).name == it.vm);
        meant.into_iter().map(|it| (is_used(&it), it)).collect::<Vec<_>>()
    });
    let found = found.await?;
    let shown = quoted(key.as_str());
    let (is_used, kept) = match found.as_slice() {
        [] => {
            let error = format!("no data of {key} is kept (holdfast data list shows what is)");
            return Err(Problem::not_found(error));
        }
        [one] => one,
        [(_, first), ..] => {
            let vms: Vec<&str> = found.iter().map(|(_, it)| it.vm.as_str()).collect();
            let error = format!(
                "{} keep data of {key} (name one: holdfast data delete {shown} --vm {})",
                vms.join(" and "),
                quoted(first.vm.as_str())
            );
            return Err(Problem::new(StatusCode::CONFLICT, error));
        }
    };
    if *is_used {
        let error =
            format!("the data of {key} is in use on vm {} (remove the component first, or its application)", kept.vm);
        return Err(Problem::new(StatusCode::CONFLICT, error));
    }
    api.manager.host_question(kept.id, HostQuestion::DeleteData { key }).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// What the programs of the last removed or replaced component of a name have written: its VM keeps that until the next
/// one of that name goes.
pub(super) async fn previous_logs(api: &Api, key: Name, bytes_max: u32) -> Result<String, Problem> {
    let name = key.clone();
    let vms = api.manager.look(move |machine| {
        let book = machine.book();
        match book.component(&name) {
            Some(it) => book.vm_of(it).id.into_iter().collect::<Vec<VmId>>(),
            None => book.vms().filter_map(|it| it.id).take(QUESTIONS_MAX).collect(),
        }
    });
    for vm in vms.await? {
        let question = HostQuestion::PreviousOutput { key: key.clone(), bytes_max };
        if let Ok(text) = api.manager.host_question(vm, question).await {
            return Ok(text);
        }
    }
    Err(Problem::not_found(format!("no output of an earlier {key} is kept")))
}
