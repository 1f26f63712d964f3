//! Waiting for a change: what happens meanwhile, and what it waits for.
//!
//! On a screen, a few lines are drawn anew whenever something happens; elsewhere each event is a line. The change goes on
//! in any case: whoever interrupts this only stops looking. What comes of a failed operation that is tried again is waited
//! for in `helping`.

use crate::{
    Ending,
    failure::Failure,
    moment,
    operator::{Heard, Operator},
    screen,
    tiers::Tiers,
};
use cloud_manager::{
    client::StreamItem,
    document::{Accepted, ChangeRecord, Component, EventDocument, EventKind, RunningChange, quoted, reason},
};
use std::{
    collections::BTreeSet,
    io::{self, IsTerminal},
    time::{Duration, Instant},
};

/// How often a screen is drawn anew, even if nothing happens; and after how much silence it is said what is waited for.
const SCREEN_PAUSE: Duration = Duration::from_secs(1);
const SILENCE: Duration = Duration::from_secs(3);
/// Lines about what is waited for.
const WAITS_MAX: usize = 8;

/// Waits for a change, shows how it goes and what came of it. It ends well when the change is done, and badly when only a
/// person can help.
pub(crate) fn wait(operator: &Operator, accepted: &Accepted, json: bool, tiers: Tiers) -> Result<Ending, Failure> {
    let ending = follow(operator, accepted, json, tiers)?;
    if json {
        screen::print_document(&operator.get::<ChangeRecord>(&format!("/v1/changes/{}", accepted.change))?)?;
    }
    Ok(ending)
}

/// Waits for a change and shows to people how it goes.
pub(crate) fn follow(operator: &Operator, accepted: &Accepted, json: bool, tiers: Tiers) -> Result<Ending, Failure> {
    let mut view = view(json, tiers);
    let mut told: BTreeSet<String> = BTreeSet::new();
    let mut events = operator.follow(accepted.events_after);
    let mut looked = Instant::now();
    let ending = loop {
        match events.next(view.patience())? {
            Heard::StreamItem(StreamItem::Event(event)) => {
                if event.change == Some(accepted.change) && event.what.ends_change() {
                    break Ending::Done;
                }
                if event.change.is_none_or(|change| change == accepted.change) && event.what != EventKind::Refused {
                    view.tell(&event)?;
                    told.extend(event.component.filter(|_| event.what == EventKind::OperationFailed));
                }
                // As long as things happen, nobody asks what is waited for; a failure may be the end of it.
                if event.what != EventKind::OperationFailed && looked.elapsed() < view.patience() {
                    continue;
                }
            }
            // What is no longer known may have been the end.
            Heard::StreamItem(StreamItem::Gap(_)) | Heard::Silence => {}
            Heard::Absent => {
                view.absent()?;
                continue;
            }
        }
        looked = Instant::now();
        match running(operator, accepted.change) {
            Ok(Some(change)) if !change.stuck_on.is_empty() => {
                view.end()?;
                if !json {
                    // It may be seen before the news of it come.
                    let untold = change.stuck_on.iter().filter(|it| !told.contains(*it));
                    let why: String = untold.map(|it| why(operator, it)).collect();
                    screen::print(&screen::coloured(&(why + &stuck(&change))))?;
                }
                break Ending::Refuted;
            }
            Ok(Some(change)) => view.waits(change.change, &change.waits_for, change.waiting)?,
            // It is done, and the news of it are on their way; or they are no longer known.
            Ok(None) if is_done(operator, accepted.change) => break Ending::Done,
            Ok(None) | Err(_) => {}
        }
    };
    view.end()?;
    if ending != Ending::Done {
        return Ok(ending);
    }
    let record: ChangeRecord = operator.get(&format!("/v1/changes/{}", accepted.change))?;
    // An operation failed while this was looking, and then the change was cancelled: by the manager, on request.
    let is_taken_back = record.cancelled && !told.is_empty();
    if !json {
        let took = record.done_at_ms.zip(record.accepted_at_ms).map(|(done, accepted)| done.saturating_sub(accepted));
        let took = took.map(|ms| format!(" after {}", screen::lasting(Duration::from_millis(ms)))).unwrap_or_default();
        let (sign, is) = match (is_taken_back, record.cancelled) {
            (true, _) => ("✗", "failed, and was taken back"),
            (false, true) => ("✓", "cancelled"),
            (false, false) => ("✓", "done"),
        };
        let verb = if is_taken_back { "" } else { "is " };
        screen::print(&screen::coloured(&format!("{sign} change {} {verb}{is}{took}\n", accepted.change)))?;
    }
    Ok(if is_taken_back { Ending::Refuted } else { Ending::Done })
}

fn running(operator: &Operator, change: u64) -> Result<Option<RunningChange>, Failure> {
    let running: Vec<RunningChange> = operator.get("/v1/changes")?;
    Ok(running.into_iter().find(|it| it.change == change))
}

fn is_done(operator: &Operator, change: u64) -> bool {
    let record: Result<ChangeRecord, Failure> = operator.get(&format!("/v1/changes/{change}"));
    record.is_ok_and(|record| record.done_at_ms.is_some())
}

fn stuck(change: &RunningChange) -> String {
    let mut text = format!("✗ change {} cannot go on without you\n", change.change);
    for component in change.stuck_on.iter().map(|it| quoted(it)) {
        text += &format!("  see why:   holdfast component logs {component}\n");
        text += &format!("  try again: holdfast component retry {component}\n");
        text += &format!("  or go on:  holdfast component skip {component}\n");
    }
    text
}

/// Why an operation of a component failed, as far as the manager knows.
pub(crate) fn why(operator: &Operator, name: &str) -> String {
    let all: Vec<Component> = operator.get("/v1/components").unwrap_or_default();
    let failed = all.iter().find(|it| it.name == name && it.failed_operation.is_some());
    failed.map(told_failure).unwrap_or_default()
}

/// A component of which an operation failed: which, why, and what it wrote.
pub(crate) fn told_failure(component: &Component) -> String {
    let operation = component.failed_operation.as_deref();
    let detail = component.failure.as_deref().unwrap_or_default();
    let because = Some(reason::first(operation, detail)).filter(|it| !it.is_empty());
    let because = because.map(|it| format!(": {it}")).unwrap_or_default();
    format!("{}: {} failed{because}\n{}", component.name, operation.unwrap_or("run"), reason::rest(detail))
}

/// The way to show it here.
pub(crate) fn view(json: bool, tiers: Tiers) -> Box<dyn View> {
    match (json, io::stdout().is_terminal()) {
        (true, _) => Box::new(Quiet),
        (false, true) => Box::new(Screen { drawn: 0, tiers, waits: String::new() }),
        (false, false) => Box::new(Lines::default()),
    }
}

/// A way to show how a change goes.
pub(crate) trait View {
    /// For how long nothing may happen before it wants to know what is waited for.
    fn patience(&self) -> Duration;
    fn tell(&mut self, event: &EventDocument) -> Result<(), Failure>;
    /// What a change waits for, the first of so many things.
    fn waits(&mut self, change: u64, waits_for: &[String], waiting: usize) -> Result<(), Failure>;
    fn absent(&mut self) -> Result<(), Failure>;
    fn end(&mut self) -> Result<(), Failure>;
}

/// Nothing until the end.
struct Quiet;

impl View for Quiet {
    fn patience(&self) -> Duration {
        SILENCE
    }
    fn tell(&mut self, _: &EventDocument) -> Result<(), Failure> {
        Ok(())
    }
    fn waits(&mut self, _: u64, _: &[String], _: usize) -> Result<(), Failure> {
        Ok(())
    }
    fn absent(&mut self) -> Result<(), Failure> {
        Ok(())
    }
    fn end(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}

/// One line for each event; now and then, what is waited for.
#[derive(Default)]
struct Lines {
    said: Vec<String>,
}

impl View for Lines {
    fn patience(&self) -> Duration {
        SILENCE
    }

    fn tell(&mut self, event: &EventDocument) -> Result<(), Failure> {
        screen::print(&line(event))
    }

    fn waits(&mut self, _: u64, waits_for: &[String], waiting: usize) -> Result<(), Failure> {
        if self.said == waits_for {
            return Ok(());
        }
        self.said = waits_for.to_vec();
        screen::print(&waits(waits_for, waiting))
    }

    fn absent(&mut self) -> Result<(), Failure> {
        let note = "the manager does not answer; waiting for it".to_string();
        if self.said != [note.clone()] {
            screen::print(&format!("{note}\n"))?;
            self.said = vec![note];
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}

/// A few lines that are drawn anew: how far each tier is, and what is waited for.
struct Screen {
    drawn: usize,
    tiers: Tiers,
    waits: String,
}

impl Screen {
    /// Takes away what was drawn, and draws this.
    fn draw(&mut self, text: &str) -> Result<(), Failure> {
        let up = if self.drawn > 0 { format!("\x1b[{}F\x1b[J", self.drawn) } else { String::new() };
        self.drawn = text.lines().count();
        screen::print(&format!("{up}{}", screen::coloured(text)))
    }

    fn draw_all(&mut self) -> Result<(), Failure> {
        // A line that is broken in two would not be taken away whole.
        let columns = terminal_size::terminal_size().map_or(usize::MAX, |(width, _)| usize::from(width.0));
        let text = self.tiers.bars() + &self.waits;
        self.draw(&text.lines().map(|line| line.chars().take(columns).collect::<String>() + "\n").collect::<String>())
    }
}

impl View for Screen {
    fn patience(&self) -> Duration {
        SCREEN_PAUSE
    }

    fn tell(&mut self, event: &EventDocument) -> Result<(), Failure> {
        if self.tiers.note(event) {
            return self.draw_all();
        }
        // Other events stay; the rest is drawn below them.
        self.draw(&line(event))?;
        self.drawn = 0;
        self.draw_all()
    }

    fn waits(&mut self, change: u64, waits_for: &[String], waiting: usize) -> Result<(), Failure> {
        let again = format!("holdfast show {change} follows it again");
        self.waits =
            waits(waits_for, waiting) + &format!("  (interrupting this does not interrupt the change: {again})\n");
        self.draw_all()
    }

    fn absent(&mut self) -> Result<(), Failure> {
        self.draw("the manager does not answer; waiting for it\n")
    }

    fn end(&mut self) -> Result<(), Failure> {
        self.draw("")
    }
}

/// One event on one line; below it, what an operation wrote that failed.
pub(crate) fn line(event: &EventDocument) -> String {
    let detail = event.detail.as_deref().filter(|_| event.what != EventKind::Accepted);
    let because = detail.map(|it| format!(": {}", reason::first(event.operation.as_deref(), it))).unwrap_or_default();
    let rest = detail.map(reason::rest).unwrap_or_default();
    format!("{}  {}{because}\n{rest}", moment::time(event.at_ms), event.text)
}

fn waits(waits_for: &[String], waiting: usize) -> String {
    let mut text = String::new();
    for wait in waits_for.iter().take(WAITS_MAX) {
        text += &format!("  waits for {wait}\n");
    }
    let told = waits_for.len().min(WAITS_MAX);
    match waiting.saturating_sub(told) {
        0 => text,
        more => text + &format!("  and for {more} more\n"),
    }
}
