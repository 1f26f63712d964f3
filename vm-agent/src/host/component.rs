//! One component and its task: which steps each kind of work takes.
//!
//! What must outlive the agent is on disk ([`Record`], [`Done`]) and read again for each task. In memory there is only
//! the [`Slot`]: the watcher of the run, and the handle that reports its end.

use super::{
    Shared,
    command::Step,
    component_directory::ComponentDirectory,
    data,
    failure::{Attempt, Failure},
    ports::PortBook,
    record::{Done, Record, Run},
    running::Running,
    values,
    watch::Watcher,
};
use protocol::{ComponentId, HeldBinding, HostTask, Kind, Name, Values, Work};
use recipe::{At, Rebind, Recipe, Signal, template::View};
use std::{
    fs::{self, OpenOptions},
    io::Write,
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

/// One component while a task is carried out for it.
#[derive(Clone, Debug)]
pub(super) struct Component {
    pub(super) shared: Arc<Shared>,
    pub(super) id: ComponentId,
    /// The serial number of the task.
    pub(super) serial: u64,
    pub(super) directory: ComponentDirectory,
}

/// What is known of a component only for as long as the agent runs.
#[derive(Debug, Default)]
pub(super) struct Slot {
    pub(super) watcher: Option<Watcher>,
    pub(super) running: Option<Running>,
}

impl Component {
    pub(super) fn new(shared: &Arc<Shared>, id: ComponentId, serial: u64) -> Self {
        Self { shared: shared.clone(), id, serial, directory: ComponentDirectory::of(id, &shared.settings.directory) }
    }

    /// Carries out a task, and returns the values that it produced.
    pub(super) async fn carry_out(&self, task: &HostTask, slot: &mut Slot) -> Result<Values, Failure> {
        // A component without a directory was purged before: a purge is asked for only after another task.
        if task.work == Work::Purge && !self.directory.exists() {
            return Ok(Values::new());
        }
        if task.work == Work::Abort {
            return self.abort(slot).await;
        }
        self.directory.create()?;
        let done = Done::load(&self.directory).filter(|done| done.serial == self.serial);
        let values = match (&task.work, done) {
            (Work::Start { bindings }, done) => {
                let aborted = self.shared.aborts.signal_of(self.id, self.serial);
                // Cut short, a start is where a crash of the agent would have left it.
                tokio::select! {
                    biased;
                    () = aborted.notified() => return self.abort(slot).await,
                    values = self.start(task, bindings, done.is_some(), slot) => values?,
                }
            }
            // Done before a crash of the agent, which did not record the outcome.
            (Work::Prepare | Work::Rebind { .. } | Work::Stop | Work::Purge, Some(done)) => return Ok(done.values),
            (Work::Prepare, None) => self.prepare(task).await?,
            (Work::Rebind { bindings }, None) => self.rebind(bindings, slot).await?,
            (Work::Stop, None) => self.stop(slot).await?,
            (Work::Purge, None) => return self.purge(task, slot).await,
            (Work::Abort, _) => return self.abort(slot).await,
        };
        // Without this note the task would be carried out again if it is asked for again, which is harmless.
        if let Err(failure) = (Done { serial: self.serial, values: values.clone() }).save(&self.directory) {
            tracing::warn!(component = %self.id, %failure, "cannot record that a task is done");
        }
        Ok(values)
    }

    /// Ends whatever a start has left running, because the component is removed.
    async fn abort(&self, slot: &mut Slot) -> Result<Values, Failure> {
        if self.directory.exists() {
            let mut record = self.record()?;
            self.end_last_run(&mut record, slot).await?;
        }
        Err(Failure::new("aborted, because the component is removed"))
    }

    async fn prepare(&self, task: &HostTask) -> Result<Values, Failure> {
        let recipe = decode(task)?;
        let home = self.directory.home();
        let mut record = self.record()?;
        self.take_data(&task.name, &recipe, &mut record, false).await?;
        let mut view = self.view(&task.name, &home, &recipe, Values::new());
        let mut announced = self.choose_values(&mut view, &[At::Prepare], &task.kind, &mut record).await?;
        for (step, command) in
            [(Step::Install, &recipe.operations.install), (Step::Announce, &recipe.operations.announce)]
        {
            let _turn = if step == Step::Install { Some(self.shared.one_at_a_time.lock().await) } else { None };
            self.run(step, command.as_ref(), &view).await?;
            if command.is_some() {
                let handed_out = values::take(&self.directory.values()).map_err(|failure| failure.during(step))?;
                view.values.extend(handed_out.clone());
                self.learn_secrets(&view)?;
                values::check_types(&handed_out, &view, &task.kind).map_err(|failure| failure.during(step))?;
                announced.extend(handed_out);
            }
        }
        record.announced = Some(announced.clone());
        record.save(&self.directory).await?;
        Ok(announced)
    }

    async fn rebind(&self, bindings: &[HeldBinding], slot: &mut Slot) -> Result<Values, Failure> {
        let mut record = self.record()?;
        let announced = record.announced.clone().unwrap_or_default();
        let run = record.run.as_mut().ok_or_else(|| Failure::new("rebind: the component is not running"))?;
        run.bindings = bindings.to_vec();
        let home = self.directory.home();
        let view = self.view_of_run(run, &home, &announced);
        self.learn_secrets(&view)?;
        values::check_import_types(&view)?;
        self.write_files(&view)?;
        let operations = &run.recipe.operations;
        match operations.rebind.as_ref().or(operations.reload.as_ref()) {
            None | Some(Rebind::Restart) => {}
            Some(Rebind::Command(command)) => self.run(Step::Rebind, Some(command), &view).await?,
            Some(Rebind::Signal(signal)) => self.tell_by_signal(run, *signal)?,
        }
        record.save(&self.directory).await?;
        // Checks use the new bindings too, unless the component has already been reported dead.
        if let Some(run) = &record.run
            && slot.watcher.as_ref().is_some_and(|watcher| !watcher.is_over())
        {
            self.watch(run, &announced, slot).await;
        }
        Ok(Values::new())
    }

    fn tell_by_signal(&self, run: &Run, signal: Signal) -> Result<(), Failure> {
        match &run.process {
            Some(process) if self.group(process).send_to_leader(signal) => Ok(()),
            _ => Err(Failure::new("rebind: there is no process to send a signal to")),
        }
    }

    async fn purge(&self, task: &HostTask, slot: &mut Slot) -> Result<Values, Failure> {
        let recipe = decode(task)?;
        let mut record = self.record()?;
        self.end_last_run(&mut record, slot).await?;
        let home = self.directory.home();
        let view = self.view(&task.name, &home, &recipe, record.announced.clone().unwrap_or_default());
        let turn = self.shared.one_at_a_time.lock().await;
        self.run(Step::Purge, recipe.operations.purge.as_ref(), &view).await?;
        drop(turn);
        self.directory.set_aside(&task.name, &self.shared.settings.directory)?;
        self.shared.data.forget(self.id);
        for port in record.ports.values() {
            self.shared.ports.release(*port);
        }
        Ok(Values::new())
    }

    /// Chooses values, and records the ports that they use before any value is reported.
    pub(super) async fn choose_values(
        &self,
        view: &mut View<'_>,
        at: &[At],
        kind: &Kind,
        record: &mut Record,
    ) -> Result<Values, Failure> {
        let given = Arc::new(Mutex::new(record.ports.clone()));
        let book = PortBook { ports: self.shared.ports.clone(), given: given.clone() };
        let chosen = values::choose(view, at, kind, &book);
        // Even if it failed: a secret may be part of the reason.
        self.learn_secrets(view)?;
        let ports = given.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if ports != record.ports {
            record.ports = ports;
            record.save(&self.directory).await?;
        }
        chosen
    }

    /// Writes the files of a recipe.
    pub(super) fn write_files(&self, view: &View<'_>) -> Result<(), Failure> {
        for file in &view.recipe.files {
            let what = format!("file {:?}", file.path);
            let path = view.home.join(view.render(&what, &file.path)?);
            let text = view.render(&what, &file.template)?;
            let mode = file.permissions().unwrap_or(0o600);
            replace_file(&path, &text, mode).attempt(format!("write {}", path.display()))?;
        }
        Ok(())
    }

    pub(super) fn record(&self) -> Result<Record, Failure> {
        Record::load(&self.directory)
            .map_err(|error| Failure::new(format!("{}: {error}", self.directory.record().display())))
    }

    pub(super) fn view<'a>(&self, name: &'a Name, home: &'a Path, recipe: &'a Recipe, values: Values) -> View<'a> {
        let data = data::directory_of(name, &self.shared.settings.directory);
        View { name, host: self.shared.settings.host, home, data, recipe, values, imports: &[], bindings: &[] }
    }

    pub(super) fn view_of_run<'a>(&self, run: &'a Run, home: &'a Path, announced: &Values) -> View<'a> {
        let mut values = announced.clone();
        values.extend(run.values.clone());
        View { imports: &run.imports, bindings: &run.bindings, ..self.view(&run.name, home, &run.recipe, values) }
    }
}

pub(super) fn decode(task: &HostTask) -> Result<Recipe, Failure> {
    Recipe::decode(&task.kind.recipe).map_err(|error| Failure::new(error.to_string()))
}

/// Replaces a file atomically, and never with a wider mode than it should have.
fn replace_file(path: &Path, text: &str, mode: u32) -> std::io::Result<()> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    let mut aside = path.as_os_str().to_owned();
    aside.push(".holdfast-new");
    // Never through a link that the component has put there.
    let _ = fs::remove_file(&aside);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&aside)?;
    file.set_permissions(fs::Permissions::from_mode(mode))?;
    file.write_all(text.as_bytes())?;
    fs::rename(&aside, path)
}
