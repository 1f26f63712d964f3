//! The states of all components as bars, as wide as the screen.

use super::record::{Condition, Record};
use std::ops::Range;

/// One line for the acts, one for each component, one for the requests; each stretch of time is one letter.
pub(super) fn lines(record: &Record, columns: usize) -> Vec<String> {
    let label = record.lives.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0).max("requests".len()) + 2;
    let ruler = Ruler {
        began_ms: record.began_ms,
        ended_ms: record.ended_ms().max(record.began_ms + 1),
        cells: u64::try_from(columns.saturating_sub(label).max(10)).unwrap_or(u64::MAX),
    };
    let mut lines = vec![format!("{:<label$}{}", "act", acts(record, ruler))];
    for (name, life) in &record.lives {
        let bar: String = ruler.stretches().map(|stretch| sign(during(life, &stretch))).collect();
        lines.push(format!("{name:<label$}{}", bar.trim_end()));
    }
    let requests: String = ruler.stretches().map(|stretch| requests(record, &stretch)).collect();
    lines.push(format!("{:<label$}{}", "requests", requests.trim_end()));
    let last = ruler.ended_ms - ruler.began_ms;
    let seconds = format!("{}.{:02} s", last / 1000, last % 1000 / 10);
    let room = columns.saturating_sub(label + 3);
    lines.push(format!("{:<label$}0 s{seconds:>room$}", ""));
    lines
}

#[derive(Clone, Copy)]
struct Ruler {
    began_ms: u64,
    ended_ms: u64,
    cells: u64,
}

impl Ruler {
    fn stretches(self) -> impl Iterator<Item = Range<u64>> {
        let lasted = self.ended_ms - self.began_ms;
        let at = move |cell: u64| self.began_ms + lasted * cell / self.cells;
        (0..self.cells).map(move |cell| at(cell)..at(cell + 1).max(at(cell) + 1))
    }
}

/// The number of each act above its beginning.
fn acts(record: &Record, ruler: Ruler) -> String {
    let sign = |stretch: Range<u64>| {
        let begins = record.acts.iter().position(|act| stretch.contains(&act.stretch.start));
        begins.map_or('─', |place| char::from_digit(u32::try_from(place + 1).unwrap_or(0), 10).unwrap_or('+'))
    };
    ruler.stretches().map(sign).collect()
}

/// The most notable state of something within a stretch of time.
fn during(life: &[(u64, Condition)], stretch: &Range<u64>) -> Condition {
    let before = life.iter().rev().find(|(at, _)| *at <= stretch.start).map(|(_, condition)| *condition);
    let within =
        life.iter().filter(|(at, _)| (stretch.start + 1..stretch.end).contains(at)).map(|(_, condition)| *condition);
    within.chain(before).max().unwrap_or(Condition::Absent)
}

fn sign(condition: Condition) -> char {
    match condition {
        Condition::Absent => ' ',
        Condition::Started => '█',
        Condition::Stopped => '·',
        Condition::Starting | Condition::Stopping => '▒',
    }
}

fn requests(record: &Record, stretch: &Range<u64>) -> char {
    let requests = record.acts.iter().flat_map(|act| &act.requests);
    let here: Vec<_> = requests.filter(|request| stretch.contains(&request.at_ms)).collect();
    match here.iter().all(|request| request.answer.is_ok()) {
        _ if here.is_empty() => ' ',
        true => '█',
        false => '✗',
    }
}

#[cfg(test)]
mod tests {
    use super::super::{record::Act, traffic::Request};
    use super::*;
    use std::time::Duration;

    #[test]
    fn short_states_are_visible() {
        let request = |at_ms, answer| Request { at_ms, lasted: Duration::ZERO, answer };
        let act = |stretch, requests| Act { stretch, requests, ..Act::default() };
        let good = || Ok("web".to_owned());
        let acts = vec![
            act(1000..1400, vec![request(1100, good())]),
            act(1400..2000, vec![request(1500, good()), request(1501, Err("gone".into()))]),
        ];
        let life = vec![
            (1000, Condition::Stopped),
            (1300, Condition::Started),
            (1650, Condition::Stopping),
            (1651, Condition::Started),
            (1900, Condition::Absent),
        ];
        let record = Record { began_ms: 1000, acts, lives: vec![("app".to_owned(), life)], ..Record::default() };
        assert_eq!(
            lines(&record, 20),
            ["act       1───2─────", "app       ···███▒██", "requests   █   ✗", "          0 s 1.00 s"]
        );
    }
}
