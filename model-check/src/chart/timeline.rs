//! The lives of components over time: one bar each, on one scale.
//!
//! ```text
//!             ▼          ▼ ▼
//! db   sql    ▒▒███████████▒·
//! web  app       ▒███████▒···
//!             0 s      10 s
//! ```

use super::{Chart, Life, MarkSort};
use protocol::ComponentState;
use std::time::Duration;

impl Chart {
    /// The lives of all components in so many columns. `moments` says when each row happened.
    pub fn to_timeline(&self, moments: &[Duration], columns: usize) -> String {
        let lives = self.lifelines.iter().flat_map(|vm| vm.components.iter().map(|life| (vm.name.as_str(), life)));
        let lives: Vec<(&str, &Life)> = lives.collect();
        let wide = |words: &mut dyn Iterator<Item = &str>| words.map(|word| word.chars().count()).max().unwrap_or(0);
        let vms = wide(&mut lives.iter().map(|(vm, _)| *vm));
        let names = wide(&mut lives.iter().map(|(_, life)| life.name.as_str()));
        let left = vms + names + 4;
        let scale = Scale::new(moments.last().copied().unwrap_or_default(), columns.saturating_sub(left + 1).max(20));

        let mut requests = vec![' '; scale.cells];
        for (row, moment) in self.rows.iter().zip(moments) {
            if row.marks.iter().any(|mark| mark.sort == MarkSort::Asked) {
                requests[scale.cell(*moment)] = '▼';
            }
        }
        let indent = " ".repeat(left);
        let mut text = format!("{indent}{}", line(requests)).trim_end().to_string() + "\n";
        let mut last = "";
        for (vm, life) in lives {
            let (label, name) = (if vm == last { "" } else { vm }, &life.name);
            text += &format!("{label:vms$}  {name:names$}  {}\n", line(scale.bar(life, moments)));
            last = vm;
        }
        text + &format!("{indent}{}\n", line(scale.ticks()))
    }
}

pub(super) fn line(cells: Vec<char>) -> String {
    cells.into_iter().collect::<String>().trim_end().to_string()
}

pub(super) struct Scale {
    cells: usize,
    /// One cell, in microseconds.
    cell: u128,
    end: u128,
}

impl Scale {
    pub(super) fn new(end: Duration, cells: usize) -> Self {
        let end = end.as_micros().max(1);
        let count = u128::try_from(cells).expect("a line is not that long");
        Self { cells, cell: end.div_ceil(count).max(1), end }
    }

    pub(super) fn cell(&self, moment: Duration) -> usize {
        usize::try_from(moment.as_micros() / self.cell).map_or(self.cells - 1, |cell| cell.min(self.cells - 1))
    }

    /// One life. A cell in which the state changes shows that it does: a short stop must not go unseen.
    fn bar(&self, life: &Life, moments: &[Duration]) -> Vec<char> {
        let mut cells = vec![' '; self.cells];
        for (row, state) in &life.states {
            let from = moments.get(*row).map_or(0, |moment| self.cell(*moment));
            let was = cells[from];
            cells[from..].fill(sign(*state));
            let changes = was != ' ' && *state == Some(ComponentState::Started);
            if changes || state.is_none() {
                cells[from] = if was == ' ' { ' ' } else { '▒' };
            }
        }
        // After the last event nothing is known.
        let end = usize::try_from(self.end.div_ceil(self.cell)).unwrap_or(self.cells).clamp(1, self.cells);
        cells.truncate(end);
        cells
    }

    pub(super) fn ticks(&self) -> Vec<char> {
        let steps = [1, 2, 5].into_iter();
        let lengths = (0..12).flat_map(|power| steps.clone().map(move |digit| digit * 10_u128.pow(power)));
        // Not closer than twelve columns.
        let step = lengths.into_iter().find(|step| step / self.cell >= 12).unwrap_or(self.end);
        let mut ticks = Vec::new();
        for moment in (0..=self.end).step_by(usize::try_from(step).unwrap_or(usize::MAX)) {
            let cell = usize::try_from(moment / self.cell).unwrap_or(self.cells);
            ticks.resize(ticks.len().max(cell), ' ');
            let label = if step >= 1_000_000 {
                format!("{} s", moment / 1_000_000)
            } else if step >= 1_000 {
                format!("{} ms", moment / 1_000)
            } else {
                format!("{moment} µs")
            };
            ticks.truncate(cell);
            ticks.extend(label.chars());
        }
        ticks
    }
}

fn sign(state: Option<ComponentState>) -> char {
    match state {
        None => ' ',
        Some(ComponentState::Stopped) => '·',
        Some(ComponentState::Starting | ComponentState::Stopping) => '▒',
        Some(ComponentState::Started) => '█',
        Some(ComponentState::Failed(_)) => '✗',
    }
}

#[cfg(test)]
mod tests {
    use crate::chart::{Chart, Life, Lifeline};
    use protocol::ComponentState::{Started, Starting, Stopped, Stopping};
    use std::time::Duration;

    #[test]
    fn bars_show_states_on_one_scale_and_no_stop_is_too_short_to_see() {
        let states =
            [(0, Some(Stopped)), (1, Some(Starting)), (2, Some(Started)), (3, Some(Stopping)), (4, Some(Started))];
        let life = Life { name: "app".into(), states: states.into() };
        let vm = Lifeline { name: "web".into(), born: None, ended: None, components: vec![life] };
        let chart = Chart { lifelines: vec![vm], ..Chart::default() };
        let moments = [0, 2_000, 6_000, 15_010, 15_011, 20_000].map(Duration::from_millis);
        let expected = "\n\
            web  app  ··▒▒▒▒▒████████▒████\n          \
                      0 s                 20 s\n";
        assert_eq!(chart.to_timeline(&moments, 31), expected);
    }
}
