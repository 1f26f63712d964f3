//! Output for people: charts, colours, numbers with units.

use crate::failure::Failure;
use anstyle::{AnsiColor, Style};
use clap::{Args, ValueEnum};
pub(crate) use cloud_manager::document::lasting;
use model_check::{
    World,
    chart::{Chart, operations},
    world::Event,
};
use std::{fmt::Write as _, io::Write as _, time::Duration};

/// How to draw a sequence chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Drawing {
    /// In characters, as wide as the screen
    Text,
    /// As a Mermaid sequence diagram
    Mermaid,
    /// As an SVG picture
    Svg,
}

/// Columns if there is no terminal.
const COLUMNS: usize = 120;

/// The number of columns for a chart.
pub(crate) fn columns() -> usize {
    terminal_size::terminal_size().map_or(COLUMNS, |(width, _)| usize::from(width.0)).clamp(72, 160)
}

/// Prints text, in colour if there is a terminal.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = anstream::stdout();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Prints text beside a drawing: on stderr if the drawing is for a program, so that stdout has only the drawing.
pub(crate) fn print_beside(drawing: Drawing, text: &str) -> Result<(), Failure> {
    match drawing {
        Drawing::Text => print(text),
        Drawing::Mermaid | Drawing::Svg => {
            anstream::eprint!("{text}");
            Ok(())
        }
    }
}

/// Prints a value as JSON.
pub(crate) fn print_json(value: &serde_json::Value) -> Result<(), Failure> {
    print(&format!("{value:#}\n"))
}

/// Prints a document as JSON.
pub(crate) fn print_document(document: &impl serde::Serialize) -> Result<(), Failure> {
    print_json(&serde_json::to_value(document).map_err(std::io::Error::from)?)
}

/// Prints a document as JSON, or as text for people.
pub(crate) fn show(json: bool, document: &impl serde::Serialize, text: impl FnOnce() -> String) -> Result<(), Failure> {
    if json { print_document(document) } else { print(&text()) }
}

/// What a chart leaves out.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct ChartOptions {
    /// Draw acknowledgements, too: reports that say only that an order was received
    #[arg(long)]
    acknowledgements: bool,
}

/// Draws a run.
pub(crate) fn draw(drawing: Drawing, options: ChartOptions, initial: &World, events: &[Event]) -> String {
    let chart = Chart::new(initial, events);
    let chart = if options.acknowledgements { chart } else { chart.without_acknowledgements() };
    match drawing {
        Drawing::Text => coloured(&chart.to_text(columns())),
        Drawing::Mermaid => chart.to_mermaid(),
        Drawing::Svg => chart.to_svg(),
    }
}

/// Draws one bar for each operation of a run, with the critical path marked; nothing if there was none.
pub(crate) fn draw_operations(events: &[Event], moments: &[Duration]) -> String {
    let bars = operations::draw(events, moments, columns().saturating_sub(2));
    if bars.is_empty() {
        return bars;
    }
    let lines = bars.lines().chain([operations::LEGEND]);
    lines.map(|line| format!("  {}", coloured(line))).collect()
}

/// Colours the signs of a text chart, and the words after them.
pub(crate) fn coloured(chart: &str) -> String {
    let mut text = String::new();
    for line in chart.lines() {
        let mut open: Option<Style> = None;
        let mut gap = false;
        for letter in line.chars() {
            // Words end at two spaces or at the next drawing character.
            let ends = (letter == ' ' && gap) || is_drawn(letter);
            if let Some(style) = open.filter(|_| ends) {
                write!(text, "{style:#}").expect("writing to a string does not fail");
                open = None;
            }
            if let Some(style) = colour(letter) {
                write!(text, "{style}").expect("writing to a string does not fail");
                open = Some(style);
            }
            gap = letter == ' ';
            text.push(letter);
        }
        if let Some(style) = open {
            write!(text, "{style:#}").expect("writing to a string does not fail");
        }
        text.push('\n');
    }
    text
}

fn is_drawn(letter: char) -> bool {
    matches!(letter, '─'..='╿' | '◀' | '▶')
}

fn colour(sign: char) -> Option<Style> {
    let colour = match sign {
        '●' | '✓' | '█' => AnsiColor::Green,
        '◔' | '◕' | '▒' => AnsiColor::Yellow,
        '○' | '✕' | '·' => AnsiColor::BrightBlack,
        '✗' | '⚡' => AnsiColor::Red,
        '↺' => AnsiColor::Blue,
        '»' | '▼' => AnsiColor::Cyan,
        _ => return None,
    };
    Some(colour.on_default())
}

/// A heading.
pub(crate) fn bold(text: &str) -> String {
    let style = Style::new().bold();
    format!("{style}{text}{style:#}")
}

/// Secondary text.
pub(crate) fn dim(text: &str) -> String {
    let style = Style::new().dimmed();
    format!("{style}{text}{style:#}")
}

/// A number of things: `1 time`, `2 times`.
pub(crate) fn several(number: usize, what: &str) -> String {
    format!("{} {what}{}", counted(number), if number == 1 { "" } else { "s" })
}

/// A number with thousands separators.
pub(crate) fn counted(number: impl TryInto<u128>) -> String {
    let digits = number.try_into().unwrap_or(u128::MAX).to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_thousands_separators_and_times_have_units() {
        assert_eq!([0_u32, 999, 1_000, 1_234_567].map(counted), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(lasting(Duration::from_micros(12)), "12 µs");
        assert_eq!(lasting(Duration::from_millis(340)), "340 ms");
        assert_eq!(lasting(Duration::from_millis(2_500)), "2.50 s");
    }

    #[test]
    fn colours_end_where_the_words_end() {
        let chart = coloured("│ ● apache started   │\n");
        assert_eq!(chart, "│ \u{1b}[32m● apache started \u{1b}[0m  │\n");
        assert_eq!(anstream::adapter::strip_str(&chart).to_string(), "│ ● apache started   │\n");
    }
}
