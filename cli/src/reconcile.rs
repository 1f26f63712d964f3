//! `holdfast reconcile`: making applications, or single components, again as they were applied.

use crate::{
    Ending,
    applied::{self, Applied},
    chosen::Chosen,
    drift::Drift,
    failure::Failure,
    making::{HowOptions, Making, Rest},
    operator::Operator,
    reason,
};
use application::{Difference, Existing, How, Key};
use clap::Args;
use cloud_manager::document::{Component, Intent, Status};
use protocol::Name;
use std::collections::BTreeSet;

/// Make applications or single components again as they were applied
#[derive(Args)]
#[command(after_help = "\
What is missing is added, what was not asked for is removed, and components whose files were changed
or of which an operation failed start again, all in safe order. Of a component, only what is wrong with itself is mended. What that
would be, holdfast check says.

Example: holdfast reconcile shop
         holdfast reconcile 'shop/database[0]' 'shop/web[3]'")]
pub(crate) struct Arguments {
    /// Applications or components; they are mended in this order
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    #[command(flatten)]
    how: HowOptions,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Ending, Failure> {
    let operator = Operator::new(&arguments.how.waiting.operator)?;
    let status: Status = operator.get("/v1/status")?;
    let applications = applied::all(&operator, &status)?;
    let chosen = Chosen::read(&arguments.names, &applications, &status)?;
    if let Some(stranger) = chosen.strangers.first() {
        return Err(Failure::NotApplied(stranger.clone()));
    }
    check_providers(&chosen, &applications)?;
    for (name, keys) in &chosen.applications {
        let ending = mend(&arguments.how, &operator, name, keys.as_ref())?;
        if ending != Ending::Done {
            return Ok(ending);
        }
    }
    Ok(Ending::Done)
}

/// Refuses to begin where a component could not start, because a provider is missing and not to be mended, too.
fn check_providers(chosen: &Chosen, applications: &[Applied]) -> Result<(), Failure> {
    for (place, (name, keys)) in chosen.applications.iter().enumerate() {
        let (Some(keys), Some(applied)) = (keys, applications.iter().find(|it| it.name() == name)) else { continue };
        let mended_before = &chosen.applications[..place];
        let elsewhere = |application: &Name, key: &Key| {
            let mended = mended_before.iter().find(|(it, _)| it == application.as_str());
            let mended = mended.is_some_and(|(_, keys)| keys.as_ref().is_none_or(|it| it.contains(key)));
            let found = applications.iter().find(|it| it.name() == application.as_str()).map(|it| &it.found);
            mended || found.is_some_and(|it| it.components.contains_key(key))
        };
        let own = &applied.record.expansion.application;
        let lacking = applied.found.lacking(&applied.record.expansion, keys, elsewhere);
        let Some((client, provider)) = lacking.first() else { continue };
        let also = lacking.iter().rev().map(|(_, it)| it.scoped(own).to_string());
        let all = also.chain(keys.iter().map(|it| it.scoped(own).to_string()));
        let mut told: Vec<String> = Vec::new();
        for name in all.map(|it| format!("'{it}'")) {
            if !told.contains(&name) {
                told.push(name);
            }
        }
        return Err(Failure::NeedsMore {
            component: client.scoped(own).to_string(),
            provider: provider.scoped(own).to_string(),
            together: told.join(" "),
        });
    }
    Ok(())
}

/// Mends an application, or only these components of it.
fn mend(how: &HowOptions, operator: &Operator, name: &str, keys: Option<&BTreeSet<Key>>) -> Result<Ending, Failure> {
    let (before, around) = applied::one(operator, name)?;
    let before = before.ok_or_else(|| around.no_application(name))?;
    let status: Status = operator.get("/v1/status")?;
    let prefix = format!("{name}/");
    let mut drift = Drift::default();
    drift.ask(operator, status.components.iter().filter(|it| it.name.starts_with(&prefix)))?;
    let own = |name: &str| name.strip_prefix(&prefix)?.parse::<Key>().ok();
    let drifted = drift.components.into_iter().filter_map(|(name, why)| Some((own(&name)?, why)));
    // What failed is tried again.
    let failed = status.components.iter().filter(|it| it.failed_operation.is_some() && !it.leaving);
    let why = |it: &Component| reason::first(it.failed_operation.as_deref(), it.failure.as_deref().unwrap_or_default());
    let failed = failed.filter_map(|it| {
        Some((own(&it.name)?, vec![format!("{} failed: {}", it.failed_operation.as_ref()?, why(it))]))
    });
    let drifted = drifted.chain(failed);
    let (drifted, others) = drifted.partition::<Vec<_>, _>(|(key, _)| keys.is_none_or(|it| it.contains(key)));
    // Whatever was applied is wanted, where it was applied; but a component that was lost with its VM may have to go
    // elsewhere.
    let mut applied = before.record.expansion.clone();
    applied.components.retain(|_, it| before.found.vms.contains_key(&it.vm));
    let draft = before.record.draft.clone();
    let existing = Existing { before: Some(&applied), others: &around.others };
    let mut after = how.placing.expand(&draft.read()?, &existing)?;
    let rest = keys.map(|keys| {
        let applied = before.record.expansion.mended(&after, keys);
        after = before.found.mended(&after, keys);
        let left = Difference::between(&after, &applied).count() + others.len();
        Rest { applied, left, keys: keys.clone() }
    });
    let difference = Difference::between(&before.found, &after).components;
    let begins_anew = |key: &Key| matches!(difference.get(key), Some(How::Removed | How::Replaced(_)));
    let restarts = drifted.into_iter().filter(|(key, _)| !begins_anew(key)).collect();
    how.make(
        operator,
        Making { restarts, rest, intent: Intent::Reconcile, ..Making::new(Some(before), after, Some(draft), &around) },
    )
}
