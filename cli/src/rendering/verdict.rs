//! The result of an exploration, as text or JSON.

use crate::{
    input::faults,
    rendering::screen::{bold, coloured, counted, dim, lasting},
};
use model_check::{
    Faults,
    explore::{Findings, Settings},
    property::{self, AS_TOLD, ONE_END, SOMETIMES, mode::NOT_CHECKED},
};
use serde_json::{Value, json};
use std::{
    fmt::{self, Write},
    time::Duration,
};

/// The result of an exploration, and its settings.
pub(crate) struct Verdict {
    pub(crate) findings: Findings,
    pub(crate) faults: Faults,
    pub(crate) settings: Settings,
    pub(crate) took: Duration,
}

/// The result for one property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    /// It holds in every state.
    Holds,
    /// It does not hold in some state.
    Broken,
    /// The search ended before every state was explored; it holds in those that were.
    Open,
    /// It is not checked.
    Unasked,
}

impl Mark {
    fn sign(self) -> char {
        match self {
            Self::Holds => '✓',
            Self::Broken => '✗',
            Self::Open => '?',
            Self::Unasked => '–',
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Broken => "broken",
            Self::Open => "holds in the explored states",
            Self::Unasked => NOT_CHECKED,
        }
    }
}

impl Verdict {
    /// Whether every state was explored and everything holds.
    pub(crate) fn is_good(&self) -> bool {
        self.findings.complete && self.findings.breach.is_none()
    }

    fn mark(&self, name: &str) -> Mark {
        let asked = self.reason_not_to_ask(name).is_none();
        match &self.findings.breach {
            Some((breach, _)) if breach.property == name => Mark::Broken,
            _ if !asked => Mark::Unasked,
            Some(_) => Mark::Open,
            None if !self.findings.complete => Mark::Open,
            None => Mark::Holds,
        }
    }

    /// Why a property is not checked, if it is not.
    fn reason_not_to_ask(&self, name: &str) -> Option<&'static str> {
        if name != ONE_END {
            return None;
        }
        if self.is_disrupted() {
            return Some("faults or losses stop components, and the end may depend on when they happen");
        }
        (self.findings.outcomes.len() > 1).then_some("a request may be refused, and each answer has its own end")
    }

    /// Whether components may stop by themselves, or with a VM that is lost.
    fn is_disrupted(&self) -> bool {
        self.findings.disrupted
    }

    fn properties(&self) -> impl Iterator<Item = (&'static str, &'static str, Mark)> {
        let all = property::ALL.into_iter().chain([("eventually", AS_TOLD)]);
        all.map(|(word, name)| (word, name, self.mark(name)))
    }

    /// What was explored and what was not.
    fn scope(&self) -> Vec<String> {
        let mut lines = Vec::new();
        match faults::in_words(self.faults) {
            None => lines.push("every order of events, without faults".into()),
            Some(words) => lines.push(format!("every order of events, with up to {words} at any moment")),
        }
        if !self.findings.complete {
            let bound = counted(self.settings.states_max);
            lines.push(format!("stopped at {bound} states: the rest was not explored (--states-max N)"));
        }
        if self.findings.breach.is_some() {
            lines.push("the search ended at the first violation: no shorter sequence leads to it".into());
        } else if self.findings.complete {
            lines.push(match self.findings.longest {
                Some(longest) => format!("every run ends, after at most {} steps", counted(longest)),
                None => "some runs never end: only the ends of the others are checked".into(),
            });
        }
        if self.faults.any() {
            lines.push("ends are checked wherever nothing but further faults can happen".into());
        }
        if self.is_disrupted() {
            lines.push("where faults or losses stop components, the end may depend on when they happen".into());
        }
        lines
    }

    fn reductions(&self) -> &'static str {
        match (self.settings.ample, self.faults.losses > 0) {
            (false, _) => "none: every single interleaving",
            (true, true) => "symmetry; ample sets only once no VM can be lost any more (--full: none)",
            (true, false) => "ample sets and symmetry: equivalent orders are explored once (--full: none)",
        }
    }

    /// States each second.
    fn pace(&self) -> u128 {
        let states = u128::try_from(self.findings.states).unwrap_or(u128::MAX);
        states.saturating_mul(1_000_000_000) / self.took.as_nanos().max(1)
    }

    /// The numbers, one to a line.
    pub(crate) fn numbers(&self) -> String {
        let Findings { states, edges, ends, outcomes, messages, bytes_per_state, .. } = &self.findings;
        let mut rows = vec![
            ("states", format!("{} · {} edges", counted(*states), counted(*edges))),
            ("ends", format!("{} · {}", number(*ends, "end state"), number(outcomes.len(), "different outcome"))),
        ];
        if let Some((least, most)) = messages {
            rows.push(("messages", format!("{} to {}", counted(*least), counted(*most))));
        }
        let (took, pace) = (lasting(self.took), counted(self.pace()));
        rows.push(("took", format!("{took} · {pace} states/s · {} bytes/state", counted(*bytes_per_state))));
        rows.push(("reduced by", self.reductions().into()));
        rows.extend(
            self.scope().into_iter().enumerate().map(|(place, line)| (if place == 0 { "seen" } else { "" }, line)),
        );
        rows.iter().map(|(label, text)| format!("  {} {text}\n", dim(&format!("{label:<10}")))).collect()
    }

    /// Every property with its mark.
    pub(crate) fn table(&self) -> String {
        let mut table = String::new();
        let mut last = "";
        let mut row = |word: &'static str, sign: char, name: &str| {
            let label = if word == last { "" } else { word };
            last = word;
            write!(table, "  {} {}", dim(&format!("{label:<10}")), coloured(&format!("{sign} {name}")))
                .expect("writing to a string does not fail");
        };
        for (word, name, mark) in self.properties() {
            let why = match self.reason_not_to_ask(name).filter(|_| mark == Mark::Unasked) {
                Some(reason) => format!(" ({NOT_CHECKED}: {reason})"),
                None => String::new(),
            };
            row(word, mark.sign(), &format!("{name}{why}"));
        }
        for sight in SOMETIMES {
            let seen = self.findings.sometimes.contains(sight);
            row(
                "sometimes",
                if seen { '✓' } else { '–' },
                &format!("{sight}{}", if seen { "" } else { " (not seen)" }),
            );
        }
        table
    }

    /// As JSON.
    pub(crate) fn json(&self) -> Value {
        let Findings { states, edges, ends, outcomes, messages, longest, bytes_per_state, .. } = &self.findings;
        let properties: Vec<Value> = self
            .properties()
            .map(|(word, name, mark)| json!({ "word": word, "property": name, "mark": mark.word() }))
            .collect();
        let breach = self.findings.breach.as_ref().map(|(breach, way)| {
            let steps: Vec<String> = way.iter().map(ToString::to_string).collect();
            json!({ "property": breach.property, "detail": breach.detail, "steps": steps })
        });
        json!({
            "good": self.is_good(),
            "complete": self.findings.complete,
            "states": states,
            "edges": edges,
            "ends": ends,
            "outcomes": outcomes.len(),
            "messages_min": messages.map(|(least, _)| least),
            "messages_max": messages.map(|(_, most)| most),
            "steps_max": longest,
            "seconds": self.took.as_secs_f64(),
            "bytes_per_state": bytes_per_state,
            "ample": self.settings.ample,
            "faults": self.faults,
            "properties": properties,
            "sometimes": self.findings.sometimes,
            "breach": breach,
        })
    }
}

fn number(count: usize, what: &str) -> String {
    format!("{} {what}{}", counted(count), if count == 1 { "" } else { "s" })
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headline = match (&self.findings.breach, self.findings.complete) {
            (Some((breach, _)), _) => format!("✗ {breach}"),
            (None, true) => "✓ everything holds in every state".into(),
            (None, false) => "? no violation so far, but not every state was explored".into(),
        };
        write!(formatter, "{}\n{}\n{}", bold(coloured(&headline).trim_end()), self.numbers(), self.table())
    }
}
