//! Drift: differences between what runs and what was asked for.
//!
//! The end of a process and failing checks are noticed without this. What else people and programs change on a machine
//! is found only on request: changed or removed files, and widened modes.

use super::{
    Error, Host,
    check::Question,
    component::Component,
    record::{Record, Run},
    secrets::Secrets,
};
use protocol::{ComponentId, Values};
use std::{fs, io, os::unix::fs::PermissionsExt};

impl Host {
    /// How a component that should be started differs from what was asked for.
    pub async fn drift(&self, component: ComponentId) -> Result<Vec<String>, Error> {
        let slot = self.shared.slot(component);
        // A task that is being carried out changes it.
        let Ok(_slot) = slot.try_lock() else { return Err(Error::Busy { component }) };
        let component = Component::new(&self.shared, component, 0);
        let Record { run, announced, .. } = match component.record() {
            Ok(record) => record,
            Err(failure) => return Ok(vec![failure.to_string()]),
        };
        match run {
            Some(run) => {
                let found = component.drift(&run, &announced.unwrap_or_default()).await;
                let secrets = Secrets::of(&component.directory);
                Ok(found.into_iter().map(|it| secrets.conceal(it)).collect())
            }
            None => Ok(vec!["not running (its start was skipped, or it is not started)".into()]),
        }
    }
}

impl Component {
    async fn drift(&self, run: &Run, announced: &Values) -> Vec<String> {
        let home = self.directory.home();
        let view = self.view_of_run(run, &home, announced);
        let mut found = Vec::new();
        if !run.still_runs() {
            found.push("its process is gone".to_owned());
        }
        for file in &run.recipe.files {
            let what = format!("file {:?}", file.path);
            let rendered =
                view.render(&what, &file.path).and_then(|path| Ok((path, view.render(&what, &file.template)?)));
            let (path, text) = match rendered {
                Ok(rendered) => rendered,
                Err(failure) => {
                    found.push(failure.to_string());
                    continue;
                }
            };
            let place = view.home.join(&path);
            match fs::read(&place) {
                Ok(bytes) if bytes == text.as_bytes() => {}
                Ok(_) => found.push(format!("file {path} was changed")),
                Err(error) if error.kind() == io::ErrorKind::NotFound => found.push(format!("file {path} is gone")),
                Err(error) => found.push(format!("file {path} cannot be read: {error}")),
            }
            let mode = fs::metadata(&place).map(|it| it.permissions().mode() & 0o7777).ok();
            if let (Some(mode), Some(wanted)) = (mode, file.permissions())
                && mode != wanted
            {
                found.push(format!("file {path} has mode {mode:o}, not {wanted:o}"));
            }
        }
        if let Some(check) = &run.recipe.operations.check {
            let asked = match Question::of(check, self, &view, run) {
                Ok(question) => question.ask(self).await,
                Err(failure) => Err(failure),
            };
            if let Err(failure) = asked {
                // A secret may have several lines.
                let failure = self.concealed(failure).0;
                found.push(format!("its check fails: {}", failure.lines().next().unwrap_or_default()));
            }
        }
        found
    }
}
