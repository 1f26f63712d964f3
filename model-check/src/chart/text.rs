//! A chart in characters.
//!
//! Beside a lifeline runs a track for each link with letters under way: it opens where the first of them is sent (`╮`),
//! goes on while there are any, and each letter leaves it where it arrives (`├` while more follow, `╰` for the last).

use super::{
    Chart, Mark, Row,
    tracks::{Link, Track, Tracks},
};
use std::collections::BTreeMap;

/// The narrowest that a lifeline and what stands beside it may be; and how wide it is if there is room and no label is longer.
const LANE_COLUMNS: (usize, usize) = (13, 34);
/// Where the first lifeline stands, with its box and the numbers of the rows to the left of it.
const LEFT: usize = 11;

impl Chart {
    /// The chart in so many columns, or a few more if there are many lifelines.
    pub fn to_text(&self, columns: usize) -> String {
        let lanes = self.lifelines.len().max(1);
        // The manager may have a track for every VM, and words beside them.
        let first = LEFT + self.lifelines.len().min(12);
        // Labels are cut only where there is no room for them: beside a label stand its tracks and the ends of its arrow.
        let marks = self.rows.iter().flat_map(|row| &row.marks).map(|mark| mark.text.chars().count() + 2);
        let longest = self.arrows.iter().map(|arrow| arrow.label.chars().count()).chain(marks).max().unwrap_or(0);
        let widest = LANE_COLUMNS.1.max(longest + 10);
        let lane = (columns.saturating_sub(first) / lanes).clamp(LANE_COLUMNS.0, widest);
        let mut page = Page { chart: self, lane, first, tracks: Tracks::new(self), lines: Vec::new() };
        page.header();
        for (number, row) in self.rows.iter().enumerate() {
            page.row(number, row);
        }
        page.line(self.rows.len());
        let lines = page.lines.iter().map(|line| line.iter().collect::<String>().trim_end().to_string() + "\n");
        lines.chain(legend(self, columns)).collect()
    }
}

/// The legend, in lines that are not wider than the page.
fn legend(chart: &Chart, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for (sign, meaning) in chart.legend() {
        let entry = format!("  {sign} {meaning}");
        match lines.last_mut().filter(|line| line.chars().count() + entry.chars().count() <= columns.max(72)) {
            Some(line) => line.push_str(&entry),
            None => lines.push(entry),
        }
    }
    lines.into_iter().map(|line| line + "\n").collect()
}

struct Page<'c> {
    chart: &'c Chart,
    /// Columns from one lifeline to the next.
    lane: usize,
    /// Columns to the left of the first VM's lifeline, less one lane.
    first: usize,
    tracks: Tracks,
    lines: Vec<Vec<char>>,
}

impl Page<'_> {
    fn column(&self, lifeline: usize) -> usize {
        if lifeline == 0 { LEFT } else { self.first + lifeline * self.lane }
    }

    fn track_column(&self, link: Link, track: Track) -> usize {
        let column = self.column(link.0);
        if link.1 > link.0 {
            column + track.distance.min((self.column(link.0 + 1) - column) / 2)
        } else {
            column - track.distance.min((column - self.column(link.0 - 1)) / 2)
        }
    }

    fn header(&mut self) {
        let width = self.column(self.chart.lifelines.len());
        let mut lines = vec![vec![' '; width]; 3];
        for (place, lifeline) in self.chart.lifelines.iter().enumerate() {
            let name = shortened(&lifeline.name, self.lane - 5);
            let length = name.chars().count();
            let start = self.column(place) - (length + 3) / 2;
            write(&mut lines[0], start, &format!("┌{}┐", "─".repeat(length + 2)));
            write(&mut lines[1], start, &format!("│ {name} │"));
            write(&mut lines[2], start, &format!("└{}┘", "─".repeat(length + 2)));
            write(&mut lines[2], self.column(place), "┬");
        }
        self.lines = lines;
    }

    /// A new line with lifelines and tracks in it. `number` is the row it belongs to.
    fn line(&mut self, number: usize) -> usize {
        let width = self.column(self.chart.lifelines.len());
        let mut line = vec![' '; width];
        for (place, lifeline) in self.chart.lifelines.iter().enumerate() {
            let alive = lifeline.born.is_none_or(|born| born < number) || place == 0;
            let ended = lifeline.ended.is_some_and(|ended| ended < number);
            // Before it is born a VM is known but not there; what is sent to it waits.
            let sign = if ended {
                ' '
            } else if alive {
                '│'
            } else {
                '┊'
            };
            line[self.column(place)] = sign;
        }
        for (link, track) in self.tracks.iter() {
            line[self.track_column(link, track)] = '╎';
        }
        self.lines.push(line);
        self.lines.len() - 1
    }

    fn row(&mut self, number: usize, row: &Row) {
        let first = self.lines.len();
        if let Some(arrow) = row.arrived {
            self.arrive(number, arrow);
        }
        let ended = self.chart.lifelines[row.lifeline].ended == Some(number);
        if row.marks.is_empty() && !row.sent.is_empty() {
            let line = self.line(number);
            self.sends(line, row);
        }
        for (place, mark) in row.marks.iter().enumerate() {
            let line = self.line(number);
            if place == 0 {
                self.sends(line, row);
            }
            if ended {
                let column = self.column(row.lifeline);
                self.lines[line][column] = '╳';
            }
            self.mark(line, row.lifeline, mark);
        }
        if let Some(line) = self.lines.get_mut(first) {
            write(line, 0, &format!("{:>4}", row.number));
        }
    }

    fn arrive(&mut self, number: usize, arrow: usize) {
        let arrow = &self.chart.arrows[arrow];
        let link = (arrow.from, arrow.to);
        let line = self.line(number);
        let Some(track) = self.tracks.arrive(link) else { return };
        let start = self.track_column(link, track);
        let rightward = arrow.to > arrow.from;
        let target = self.column(arrow.to);
        let (low, high) = if rightward { (start + 1, target - 1) } else { (target + 1, start - 1) };
        let cells = &mut self.lines[line];
        for cell in &mut cells[low..=high] {
            *cell = if matches!(*cell, ' ') { '─' } else { '┼' };
        }
        cells[start] = match (rightward, track.letters) {
            (true, 0) => '╰',
            (true, _) => '├',
            (false, 0) => '╯',
            (false, _) => '┤',
        };
        cells[if rightward { high } else { low }] = if rightward { '▶' } else { '◀' };
        self.label(line, low, high, &arrow.label, rightward);
    }

    /// Writes a label into an arrow, near its head: between two lifelines if it can, across them if it must.
    fn label(&mut self, line: usize, low: usize, high: usize, label: &str, rightward: bool) {
        let lifelines: Vec<usize> = (0..self.chart.lifelines.len()).map(|place| self.column(place)).collect();
        let mut gaps: Vec<(usize, usize)> = Vec::new();
        let mut start = low;
        for column in lifelines.iter().copied().filter(|column| (low..=high).contains(column)).chain([high + 1]) {
            gaps.push((start, column));
            start = column + 1;
        }
        if rightward {
            gaps.reverse();
        }
        // One column at each end stays free for the head and for the line to be seen as one.
        let room = |(start, end): &(usize, usize)| end.saturating_sub(*start).saturating_sub(4);
        let length = label.chars().count();
        let near = if rightward {
            (high.saturating_sub(length + 4).max(low), high + 1)
        } else {
            (low, (low + length + 5).min(high + 1))
        };
        let best = gaps.iter().find(|gap| room(gap) >= length).unwrap_or(&near);
        let Some(gap) = Some(best).filter(|gap| room(gap) >= 3) else { return };
        let label = format!(" {} ", shortened(label, room(gap)));
        let spare = (gap.1 - gap.0).saturating_sub(label.chars().count());
        write(&mut self.lines[line], gap.0 + spare / 2, &label);
    }

    /// The letters of a row go out: their tracks open, or carry one more.
    fn sends(&mut self, line: usize, row: &Row) {
        if row.sent.is_empty() {
            return;
        }
        let lifeline = self.column(row.lifeline);
        // Which tracks are reached, to the left and to the right, and whether they are new.
        let mut reached: [BTreeMap<usize, bool>; 2] = Default::default();
        for arrow in row.sent.iter().map(|arrow| &self.chart.arrows[*arrow]) {
            let link = (arrow.from, arrow.to);
            let (track, fresh) = self.tracks.send(link);
            let column = self.track_column(link, track);
            reached[usize::from(column > lifeline)].entry(column).or_insert(fresh);
        }
        let cells = &mut self.lines[line];
        let sides = [reached[0].keys().next().copied(), reached[1].keys().next_back().copied()];
        let (low, high) = (sides[0].unwrap_or(lifeline), sides[1].unwrap_or(lifeline));
        for cell in &mut cells[low..=high] {
            *cell = if *cell == ' ' { '─' } else { '┼' };
        }
        cells[lifeline] = match sides {
            [None, _] => '├',
            [_, None] => '┤',
            [Some(_), Some(_)] => '┼',
        };
        for (column, fresh) in reached.iter().flatten() {
            let outermost = [low, high].contains(column);
            cells[*column] = match (fresh, outermost, *column > lifeline) {
                (true, true, true) => '╮',
                (true, true, false) => '╭',
                (true, false, _) => '┬',
                (false, true, true) => '┤',
                (false, true, false) => '├',
                (false, false, _) => '┼',
            };
        }
    }

    /// Writes a mark to the right of a lifeline and its tracks, as far as there is room.
    fn mark(&mut self, line: usize, lifeline: usize, mark: &Mark) {
        let start = self.column(lifeline) + self.tracks.breadth(lifeline, true) + 2;
        let end = self.column(lifeline + 1).saturating_sub(self.tracks.breadth(lifeline + 1, false) + 1);
        let text = format!("{} {}", mark.sort.sign(), mark.text);
        write(&mut self.lines[line], start, &shortened(&text, end.saturating_sub(start)));
    }
}

fn write(line: &mut [char], start: usize, text: &str) {
    for (cell, letter) in line.iter_mut().skip(start).zip(text.chars()) {
        *cell = letter;
    }
}

/// At most so many characters; what is cut off leaves a sign.
fn shortened(text: &str, length: usize) -> String {
    if text.chars().count() <= length {
        return text.into();
    }
    let kept: String = text.chars().take(length.saturating_sub(1)).collect();
    if length == 0 { kept } else { kept.trim_end().to_string() + "…" }
}
