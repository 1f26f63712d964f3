//! Hides what only says that an order was taken in.

use super::{Chart, Row, Sort};

impl Chart {
    /// The chart without acknowledgements, and without the rows in which nothing else happens. Rows keep their numbers.
    pub fn without_acknowledgements(self) -> Self {
        let hidden = |arrow: usize| self.arrows[arrow].sort == Sort::Acknowledgement;
        let arrows: Vec<Option<usize>> = {
            let mut next = 0;
            let place = |arrow: usize| {
                next += usize::from(!hidden(arrow));
                (!hidden(arrow)).then(|| next - 1)
            };
            (0..self.arrows.len()).map(place).collect()
        };
        let (mut rows, mut places): (Vec<Row>, Vec<usize>) = (Vec::new(), Vec::new());
        for row in &self.rows {
            // What happened in a row that is left out happened before the next one.
            places.push(rows.len());
            let arrived = row.arrived.and_then(|arrow| arrows[arrow]);
            let sent: Vec<usize> = row.sent.iter().filter_map(|arrow| arrows[*arrow]).collect();
            let bare = row.arrived.is_some_and(hidden) && sent.is_empty() && row.marks.is_empty();
            if !bare {
                rows.push(Row { arrived, sent, ..row.clone() });
            }
        }
        let place = |row: Option<usize>| row.map(|row| places.get(row).copied().unwrap_or(rows.len()));
        let mut lifelines = self.lifelines.clone();
        for lifeline in &mut lifelines {
            (lifeline.born, lifeline.ended) = (place(lifeline.born), place(lifeline.ended));
            for (row, _) in lifeline.components.iter_mut().flat_map(|life| &mut life.states) {
                *row = places.get(*row).copied().unwrap_or(rows.len());
            }
        }
        let shown = self.arrows.iter().filter(|arrow| arrow.sort != Sort::Acknowledgement);
        let arrows = shown.cloned().map(|mut arrow| {
            (arrow.sent, arrow.arrived) = (place(arrow.sent), place(arrow.arrived));
            arrow
        });
        Self { arrows: arrows.collect(), lifelines, rows }
    }
}
