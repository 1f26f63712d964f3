//! The end of a whole VM: stops everything that its components have started.
//!
//! Others have been told that the VM is gone, so its components are stopped as their recipes say, but with less time.
//! Two sources tell what there is to stop: the records, which also know programs that have cleared their environment,
//! and the marks, which also know programs that have left their group.

use super::{
    Error, Settings, Shared,
    component::Component,
    group,
    record::{Record, Run},
};
use recipe::Signal;
use std::time::Duration;
use tokio::{sync::mpsc, task::JoinSet};

/// Grace for a process.
const GRACE_MS: u64 = 2_000;
/// Time limit of a stop command, whatever its recipe says.
const STOP_MS_MAX: u64 = 30_000;

/// Stops everything that the components of this directory run. The directory must not be in use; it is left as it is,
/// and may be removed when this has succeeded.
pub async fn raze(settings: Settings) -> Result<(), Error> {
    if !settings.directory.exists() {
        return Ok(());
    }
    // The outcomes are of no interest.
    let (outcomes, _) = mpsc::unbounded_channel();
    let (shared, places) = Shared::open(settings, outcomes)?;
    let components = places.into_iter().map(|id| Component::new(&shared, id, 0));
    components.map(end).collect::<JoinSet<()>>().join_all().await;
    for (group, _) in group::marked(&shared.settings.directory) {
        group.end_for_certain(Signal::Term, Duration::from_millis(GRACE_MS)).await;
    }
    Ok(())
}

/// Stops what the record of a component names.
async fn end(component: Component) {
    component.sweep().await;
    let record = Record::load(&component.directory).unwrap_or_else(|error| {
        tracing::error!(component = %component.id, %error, "the record is damaged; processes that carry its mark are stopped");
        Record::default()
    });
    let Some(run) = record.run.map(in_haste) else { return };
    let component = Component { serial: run.serial, ..component };
    if let Some(failure) = component.end_for_certain(&run, &record.announced.unwrap_or_default()).await {
        tracing::error!(component = %component.id, %failure, "the stop command failed; processes may be left running");
    }
}

fn in_haste(mut run: Run) -> Run {
    let stop = &mut run.recipe.operations.stop;
    stop.grace_ms = stop.grace_ms.min(GRACE_MS);
    if let Some(command) = &mut stop.command {
        command.time_limit_ms = command.time_limit_ms.min(STOP_MS_MAX);
    }
    run
}
