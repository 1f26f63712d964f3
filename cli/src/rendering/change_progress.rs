//! EventStream a change: its progress, and what it waits for.
//!
//! On a terminal a few lines are redrawn whenever something happens; elsewhere each event is a line. Interrupting this
//! stops only the display, not the change. `commands::retry` waits for a retried operation.

use crate::{
    Ending,
    failure::Failure,
    operator::{NextEvent, Operator},
    rendering::feed::Feed,
    rendering::moment,
    rendering::screen,
    rendering::tiers::Tiers,
};
use cloud_manager::{
    client::StreamItem,
    document::{Accepted, Binding, ChangeRecord, Component, EventDocument, EventKind, RunningChange, quoted, reason},
};
use std::{
    collections::BTreeSet,
    io::{self, IsTerminal},
    time::{Duration, Instant},
};

/// For whom the progress of a change is shown.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Output {
    /// For a program: nothing but the document at the end.
    pub(crate) json: bool,
    /// Every event is shown.
    pub(crate) verbose: bool,
}

impl Output {
    /// The events in the order in which they are shown.
    pub(crate) fn feed(self, operator: &Operator) -> Result<Feed, Failure> {
        let bindings: Vec<Binding> = if self.json { Vec::new() } else { operator.get("/v1/bindings")? };
        Ok(Feed::new(self.verbose, &bindings))
    }
}

/// How often the screen is redrawn while nothing happens; and after how long a silence the reasons for waiting are shown.
const SCREEN_PAUSE: Duration = Duration::from_secs(1);
const SILENCE: Duration = Duration::from_secs(3);
/// Maximum number of reasons for waiting that are shown.
const WAITS_MAX: usize = 8;

/// Waits for a change and shows its progress and outcome. The ending is `Refuted` when the change needs manual action.
pub(crate) fn wait(operator: &Operator, accepted: &Accepted, output: Output, tiers: Tiers) -> Result<Ending, Failure> {
    let ending = follow(operator, &mut accepted.clone(), output, tiers)?;
    if output.json {
        screen::print_document(&operator.get::<ChangeRecord>(&format!("/v1/changes/{}", accepted.change))?)?;
    }
    Ok(ending)
}

/// Waits for a change and shows its progress. Afterwards `accepted.events_after` is the last event that was read, so that
/// the next step of a rollout is followed from there.
pub(crate) fn follow(
    operator: &Operator,
    accepted: &mut Accepted,
    output: Output,
    tiers: Tiers,
) -> Result<Ending, Failure> {
    let mut view = view(output.json, tiers);
    let mut feed = output.feed(operator)?;
    let mut reported: BTreeSet<String> = BTreeSet::new();
    let mut events = operator.follow(accepted.events_after);
    let mut looked = Instant::now();
    let ending = loop {
        match events.next(view.quiet_limit())? {
            NextEvent::StreamItem(StreamItem::Event(event)) => {
                if event.change == Some(accepted.change) && event.what.ends_change() {
                    break Ending::Done;
                }
                let what = event.what;
                if event.change.is_none_or(|change| change == accepted.change) && what != EventKind::Refused {
                    for event in feed.take(*event) {
                        view.tell(&event)?;
                        reported.extend(event.component.filter(|_| event.what == EventKind::OperationFailed));
                    }
                }
                // While events arrive, the reasons for waiting are not requested; a failure may need manual action.
                if what != EventKind::OperationFailed && looked.elapsed() < view.quiet_limit() {
                    continue;
                }
            }
            // The end of the change may be among the events that are no longer kept.
            NextEvent::StreamItem(StreamItem::Gap(_)) | NextEvent::Timeout => {
                for event in feed.release() {
                    view.tell(&event)?;
                }
            }
            NextEvent::Unreachable => {
                view.absent()?;
                continue;
            }
        }
        looked = Instant::now();
        match running(operator, accepted.change) {
            Ok(Some(change)) if !change.stuck_on.is_empty() => {
                view.end()?;
                if !output.json {
                    // The failure may be visible before its event arrives.
                    let unreported = change.stuck_on.iter().filter(|it| !reported.contains(*it));
                    let why: String = unreported.map(|it| why(operator, it)).collect();
                    screen::print(&screen::coloured(&(why + &stuck(&change))))?;
                }
                break Ending::Refuted;
            }
            Ok(Some(change)) => view.waits(change.change, &change.waits_for, change.waiting)?,
            // It is done, and its event is still to come or no longer kept.
            Ok(None) if is_done(operator, accepted.change) => break Ending::Done,
            Ok(None) | Err(_) => {}
        }
    };
    for event in feed.release() {
        view.tell(&event)?;
    }
    accepted.events_after = events.last_read();
    view.end()?;
    if ending != Ending::Done {
        return Ok(ending);
    }
    let record: ChangeRecord = operator.get(&format!("/v1/changes/{}", accepted.change))?;
    // An operation failed while it was followed, and then the change was cancelled: by the manager, as requested.
    let is_taken_back = record.cancelled && !reported.is_empty();
    if !output.json {
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
    let mut text = format!("✗ change {} needs manual action\n", change.change);
    for component in change.stuck_on.iter().map(|it| quoted(it)) {
        text += &format!("  see why: holdfast component logs {component}\n");
        text += &format!("  retry:   holdfast component retry {component}\n");
        text += &format!("  or skip: holdfast component skip {component}\n");
    }
    text
}

/// Why an operation of a component failed, as far as the manager knows.
pub(crate) fn why(operator: &Operator, name: &str) -> String {
    let all: Vec<Component> = operator.get("/v1/components").unwrap_or_default();
    let failed = all.iter().find(|it| it.name == name && it.failed_operation.is_some());
    failed.map(failure_text).unwrap_or_default()
}

/// A failed operation of a component: which, why, and the end of its output.
pub(crate) fn failure_text(component: &Component) -> String {
    let operation = component.failed_operation.as_deref();
    let detail = component.failure.as_deref().unwrap_or_default();
    let because = Some(reason::first(operation, detail)).filter(|it| !it.is_empty());
    let because = because.map(|it| format!(": {it}")).unwrap_or_default();
    format!("{}: {} failed{because}\n{}", component.name, operation.unwrap_or("run"), reason::rest(detail))
}

/// The view that suits the output: none for JSON, redrawn on a terminal, line by line elsewhere.
pub(crate) fn view(json: bool, tiers: Tiers) -> Box<dyn View> {
    match (json, io::stdout().is_terminal()) {
        (true, _) => Box::new(Quiet),
        (false, true) => Box::new(Screen { drawn: 0, tiers, waits: String::new() }),
        (false, false) => Box::new(Lines::default()),
    }
}

/// Shows the progress of a change.
pub(crate) trait View {
    /// How long a silence lasts before the reasons for waiting are shown.
    fn quiet_limit(&self) -> Duration;
    fn tell(&mut self, event: &EventDocument) -> Result<(), Failure>;
    /// Shows what a change waits for: the first few of `waiting` things.
    fn waits(&mut self, change: u64, waits_for: &[String], waiting: usize) -> Result<(), Failure>;
    fn absent(&mut self) -> Result<(), Failure>;
    fn end(&mut self) -> Result<(), Failure>;
}

/// Nothing until the end.
struct Quiet;

impl View for Quiet {
    fn quiet_limit(&self) -> Duration {
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

/// One line for each event; after a silence, what the change waits for.
#[derive(Default)]
struct Lines {
    said: Vec<String>,
}

impl View for Lines {
    fn quiet_limit(&self) -> Duration {
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

/// A few lines that are redrawn: the progress of each tier, and what the change waits for.
struct Screen {
    drawn: usize,
    tiers: Tiers,
    waits: String,
}

impl Screen {
    /// Replaces what was drawn.
    fn draw(&mut self, text: &str) -> Result<(), Failure> {
        let up = if self.drawn > 0 { format!("\x1b[{}F\x1b[J", self.drawn) } else { String::new() };
        self.drawn = text.lines().count();
        screen::print(&format!("{up}{}", screen::coloured(text)))
    }

    fn draw_all(&mut self) -> Result<(), Failure> {
        // A wrapped line would not be erased completely.
        let columns = terminal_size::terminal_size().map_or(usize::MAX, |(width, _)| usize::from(width.0));
        let text = self.tiers.bars() + &self.waits;
        self.draw(&text.lines().map(|line| line.chars().take(columns).collect::<String>() + "\n").collect::<String>())
    }
}

impl View for Screen {
    fn quiet_limit(&self) -> Duration {
        SCREEN_PAUSE
    }

    fn tell(&mut self, event: &EventDocument) -> Result<(), Failure> {
        if self.tiers.note(event) {
            return self.draw_all();
        }
        // Other events stay on the screen; the progress is drawn below them.
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

/// One event on one line; below it, the end of a failed operation's output.
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
    let reported = waits_for.len().min(WAITS_MAX);
    match waiting.saturating_sub(reported) {
        0 => text,
        more => text + &format!("  and for {more} more\n"),
    }
}
