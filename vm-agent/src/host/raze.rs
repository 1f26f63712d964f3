//! The end of a whole VM: every process of its components is ended, whatever its recipe says.

use super::{group, place::Place};
use crate::recipe::Signal;
use std::path::Path;
use std::time::Duration;

/// What a process has to tidy up.
const GRACE: Duration = Duration::from_secs(2);

/// Ends all processes that belong to the components in this directory. Nobody may be using it any more.
pub async fn raze(directory: &Path) {
    let Ok(components) = Place::all(directory) else { return };
    for component in components {
        for (group, _) in group::marked(&Place::of(component, directory).home()) {
            group.end_for_certain(Signal::Term, GRACE).await;
        }
    }
}
