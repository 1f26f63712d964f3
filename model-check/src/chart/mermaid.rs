//! A chart in the language of Mermaid. It knows no letters under way: each stands where it arrived.

use super::{Chart, MarkSort};
use std::fmt::Write;

impl Chart {
    /// A `sequenceDiagram`.
    pub fn to_mermaid(&self) -> String {
        let mut text = String::from("sequenceDiagram\n");
        for (place, lifeline) in self.lifelines.iter().enumerate() {
            let _ = writeln!(text, "    participant L{place} as {}", escaped(&lifeline.name));
        }
        for row in &self.rows {
            if let Some(arrow) = row.arrived.map(|arrow| &self.arrows[arrow]) {
                let _ = writeln!(text, "    L{}-)L{}: {}", arrow.from, arrow.to, escaped(&arrow.label));
            }
            if !row.marks.is_empty() {
                let marks: Vec<String> = row.marks.iter().map(|mark| marked(mark.sort, &mark.text)).collect();
                let _ = writeln!(text, "    Note over L{}: {}", row.lifeline, marks.join("<br/>"));
            }
        }
        for arrow in self.arrows.iter().filter(|arrow| arrow.arrived.is_none()) {
            let _ = writeln!(text, "    L{}-xL{}: {} (never arrived)", arrow.from, arrow.to, escaped(&arrow.label));
        }
        text
    }
}

fn marked(sort: MarkSort, text: &str) -> String {
    format!("{} {}", sort.sign(), escaped(text))
}

/// Semicolons and hashes mean something to Mermaid.
fn escaped(text: &str) -> String {
    text.replace('#', "#35;").replace(';', ",")
}
