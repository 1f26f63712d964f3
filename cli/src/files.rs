//! Reading and writing what commands are given.

use crate::{failure::Failure, faults::FaultOptions};
use model_check::{Scenario, trace::Trace};
use std::{fs, path::Path};

pub(crate) fn read(path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path).map_err(|error| Failure::Read(path.into(), error))
}

pub(crate) fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|error| Failure::Write(path.into(), error))
}

/// Reads a scenario, with the faults that the options ask for.
pub(crate) fn scenario(path: &Path, faults: FaultOptions) -> Result<Scenario, Failure> {
    let mut scenario = Scenario::parse(&path.to_string_lossy(), &read(path)?)?;
    scenario.faults = faults.over(scenario.faults);
    Ok(scenario)
}

/// Reads a trace.
pub(crate) fn trace(path: &Path) -> Result<Trace, Failure> {
    Trace::read(&read(path)?).map_err(|error| Failure::Trace(path.into(), error))
}
