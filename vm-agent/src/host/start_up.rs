//! Starting a component: choose values, write files, configure, start, wait until it is ready.
//!
//! A start that fails leaves nothing running. A start that is asked for again after a crash of the agent finds the
//! results of the first one: a component that became ready is left alone, one that was half started is stopped and
//! restarted.

use super::{
    Moment,
    check::Question,
    command::{Step, finish},
    component::{Component, Slot, decode},
    confinement::explained,
    failure::Failure,
    record::{Record, Run},
    running::Running,
    values,
    watch::Watcher,
};
use protocol::{HeldBinding, HostTask, Kind, Values};
use recipe::{At, Process, Start};
use std::time::Duration;

impl Component {
    pub(super) async fn start(
        &self,
        task: &HostTask,
        bindings: &[HeldBinding],
        was_done: bool,
        slot: &mut Slot,
    ) -> Result<Values, Failure> {
        let mut record = self.record()?;
        let announced = record.announced.clone().unwrap_or_default();
        let has_died = slot.watcher.as_ref().is_some_and(Watcher::is_over);
        let is_up = |run: &&Run| was_done && run.serial == self.serial && run.still_runs() && !has_died;
        if let Some(run) = record.run.as_ref().filter(is_up) {
            if slot.watcher.is_none() {
                self.watch(run, &announced, slot).await;
            }
            return Ok(run.values.clone());
        }
        self.end_last_run(&mut record, slot).await?;

        let recipe = decode(task)?;
        let imports: Vec<_> = task.kind.imports.keys().cloned().collect();
        let home = self.directory.home();
        let mut view = self.view(&task.name, &home, &recipe, announced.clone());
        (view.imports, view.bindings) = (&imports, bindings);
        self.learn_secrets(&view)?;
        values::check_import_types(&view)?;
        let values = self.choose_values(&mut view, &[At::Prepare, At::Start], &task.kind, &mut record).await?;
        let (name, bindings) = (task.name.clone(), bindings.to_vec());
        let run = Run {
            serial: self.serial,
            name,
            recipe: recipe.clone(),
            imports: imports.clone(),
            bindings,
            values,
            process: None,
            cgroups: Vec::new(),
        };
        match self.bring_up(run, &task.kind, &announced, &mut record, slot).await {
            Ok(run) => {
                self.shared.witness(Moment::Ready);
                self.watch(&run, &announced, slot).await;
                Ok(run.values)
            }
            Err(failure) => {
                if let Err(failure) = self.end_last_run(&mut record, slot).await {
                    tracing::warn!(component = %self.id, %failure, "a failed start was stopped, but could not be removed from the record");
                }
                Err(failure)
            }
        }
    }

    /// The steps of a run. From the moment at which something may be running, the record knows it.
    async fn bring_up(
        &self,
        mut run: Run,
        kind: &Kind,
        announced: &Values,
        record: &mut Record,
        slot: &mut Slot,
    ) -> Result<Run, Failure> {
        let home = self.directory.home();
        self.take_data(&run.name, &run.recipe, record, true).await?;
        let written_down = run.clone();
        let mut view = self.view_of_run(&written_down, &home, announced);
        self.write_files(&view)?;
        self.hand_over(&view.recipe.confinement)?;
        self.run(Step::Configure, view.recipe.operations.configure.as_ref(), &view).await?;

        let mut begins = 0;
        match &view.recipe.operations.start {
            None => {
                record.run = Some(run.clone());
                record.save(&self.directory).await?;
            }
            Some(start) => {
                let (step, line) = match start {
                    Start::Process(process) => (Step::Start, &process.run),
                    Start::Script(command) => (Step::StartScript, &command.run),
                };
                let invocation = self.invocation(step, line, &view)?;
                let (waiting, output_begins) = self.launch(step, &invocation)?;
                begins = output_begins;
                self.shared.witness(Moment::Spawned);
                let group = self.group(&waiting.mark);
                run.process = Some(waiting.mark.clone());
                run.cgroups = self.limit(&view.recipe.limits, &waiting.mark).map_err(|it| it.during("limits"))?;
                record.run = Some(run.clone());
                record.save(&self.directory).await?;
                self.shared.witness(Moment::Recorded);
                let child = waiting.release().await;
                self.shared.witness(Moment::Released);
                match start {
                    Start::Process(_) => slot.running = Some(Running::child(&self.shared, child)),
                    Start::Script(command) => {
                        let limit = Duration::from_millis(command.time_limit_ms);
                        let ended = finish(child, &group, limit).await;
                        let handed_out = ended.and_then(|()| values::take(&self.directory.values()));
                        let handed_out =
                            handed_out.map_err(|failure| self.with_output(failure.during(step), begins))?;
                        view.values.extend(handed_out.clone());
                        self.learn_secrets(&view)?;
                        values::check_types(&handed_out, &view, kind).map_err(|failure| failure.during(step))?;
                        run.values.extend(handed_out);
                        record.run = Some(run.clone());
                        record.save(&self.directory).await?;
                    }
                }
            }
        }
        let ready = match (&view.recipe.operations.check, &view.recipe.operations.start) {
            (Some(check), _) => Question::of(check, self, &view, &run)?.ready(self, slot.running.as_ref()).await,
            (None, Some(Start::Process(process))) => settle(process, slot.running.as_ref()).await,
            (None, Some(Start::Script(_)) | None) => Ok(()),
        };
        ready.map_err(|failure| self.with_output(explained(failure, &run).during("start"), begins))?;
        Ok(run)
    }
}

/// Without a check, a process that ends at once has failed to start.
async fn settle(process: &Process, running: Option<&Running>) -> Result<(), Failure> {
    let settled = Duration::from_millis(process.settle_ms);
    match tokio::time::timeout(settled, Running::ended(running)).await {
        Ok(ended) => Err(Failure::new(format!("ended within {settled:?}: {ended}"))),
        Err(_) => Ok(()),
    }
}
