//! Waiting for a change: what happens meanwhile, and what it waits for.
//!
//! On a screen, a few lines are drawn anew whenever something happens; elsewhere each event is a line. The change goes on
//! in any case: whoever interrupts this only stops looking.

use crate::{
    Ending,
    failure::Failure,
    moment,
    operator::{Heard, Operator},
    screen,
    tiers::Tiers,
};
use cloud_manager::{
    client::Happening,
    document::{Accepted, ChangeRecord, EventDocument, RunningChange},
};
use std::{
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
    let mut view: Box<dyn View> = match (json, io::stdout().is_terminal()) {
        (true, _) => Box::new(Quiet),
        (false, true) => Box::new(Screen { drawn: 0, tiers, waits: String::new() }),
        (false, false) => Box::new(Lines::default()),
    };
    let mut events = operator.follow(accepted.events_after);
    let mut looked = Instant::now();
    let ending = loop {
        match events.next(view.patience())? {
            Heard::Happening(Happening::Event(event)) => {
                if event.change == Some(accepted.change) && event.what == "change-done" {
                    break Ending::Done;
                }
                if event.change.is_none_or(|change| change == accepted.change) && event.what != "refused" {
                    view.tell(&event)?;
                }
                // As long as things happen, nobody asks what is waited for; a failure may be the end of it.
                if event.what != "operation-failed" && looked.elapsed() < view.patience() {
                    continue;
                }
            }
            // What is no longer known may have been the end.
            Heard::Happening(Happening::Gap(_)) | Heard::Silence => {}
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
                    screen::print(&screen::coloured(&stuck(&change)))?;
                }
                break Ending::Refuted;
            }
            Ok(Some(change)) => view.waits(&change)?,
            // It is done, and the news of it are on their way; or they are no longer known.
            Ok(None) if is_done(operator, accepted.change) => break Ending::Done,
            Ok(None) | Err(_) => {}
        }
    };
    view.end()?;
    if !json && ending == Ending::Done {
        let record: ChangeRecord = operator.get(&format!("/v1/changes/{}", accepted.change))?;
        let took = record.done_at_ms.zip(record.accepted_at_ms).map(|(done, accepted)| done.saturating_sub(accepted));
        let took = took.map(|ms| format!(" after {}", screen::lasting(Duration::from_millis(ms)))).unwrap_or_default();
        screen::print(&screen::coloured(&format!("✓ change {} is done{took}\n", accepted.change)))?;
    }
    Ok(ending)
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
    for component in &change.stuck_on {
        text += &format!("  see why:   holdfast component logs {component}\n");
        text += &format!("  try again: holdfast component retry {component}\n");
        text += &format!("  or go on:  holdfast component skip {component}\n");
    }
    text
}

/// A way to show how a change goes.
trait View {
    /// For how long nothing may happen before it wants to know what is waited for.
    fn patience(&self) -> Duration;
    fn tell(&mut self, event: &EventDocument) -> Result<(), Failure>;
    fn waits(&mut self, change: &RunningChange) -> Result<(), Failure>;
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
    fn waits(&mut self, _: &RunningChange) -> Result<(), Failure> {
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
        screen::print(&format!("{}\n", line(event)))
    }

    fn waits(&mut self, change: &RunningChange) -> Result<(), Failure> {
        if self.said == change.waits_for {
            return Ok(());
        }
        self.said.clone_from(&change.waits_for);
        screen::print(&waits(change))
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
        self.draw(&format!("{}\n", line(event)))?;
        self.drawn = 0;
        self.draw_all()
    }

    fn waits(&mut self, change: &RunningChange) -> Result<(), Failure> {
        let again = format!("holdfast show {} follows it again", change.change);
        self.waits = waits(change) + &format!("  (interrupting this does not interrupt the change: {again})\n");
        self.draw_all()
    }

    fn absent(&mut self) -> Result<(), Failure> {
        self.draw("the manager does not answer; waiting for it\n")
    }

    fn end(&mut self) -> Result<(), Failure> {
        self.draw("")
    }
}

/// One event on one line.
pub(crate) fn line(event: &EventDocument) -> String {
    let detail = event.detail.as_deref().filter(|_| event.what != "accepted").and_then(|it| it.lines().last());
    let detail = detail.map(|it| format!(": {it}")).unwrap_or_default();
    format!("{}  {}{detail}", moment::time(event.at_ms), event.text)
}

fn waits(change: &RunningChange) -> String {
    let mut text = String::new();
    for wait in change.waits_for.iter().take(WAITS_MAX) {
        text += &format!("  waits for {wait}\n");
    }
    let told = change.waits_for.len().min(WAITS_MAX);
    match change.waiting.saturating_sub(told) {
        0 => text,
        more => text + &format!("  and for {more} more\n"),
    }
}
