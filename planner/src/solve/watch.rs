//! Reports progress to the caller during a long search, and asks whether to go on.

/// How far a search is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Which goal is being optimised, counted from 0.
    pub goal: usize,
    /// No solution can be better than this.
    pub bound: Option<i128>,
    /// The best solution so far.
    pub best: Option<i128>,
    /// Parts of the search that have been looked at.
    pub steps: u64,
    /// Branches that are still to be searched; 0 until branching begins.
    pub open: u64,
    pub method: Method,
}

/// How the planner works on a goal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// It bounds the goal by linear programs and rounds their answers.
    #[default]
    Bounding,
    /// It searches all columns that can matter: they are few enough to list.
    Listing,
    /// Columns that can matter are too many to list, so it makes them while branching.
    Branching,
}

/// Asks the caller whether to go on, and remembers a refusal.
pub(crate) struct Watch<'a> {
    ask: &'a mut dyn FnMut(&Progress) -> bool,
    pub(crate) progress: Progress,
    pub(crate) stopped: bool,
}

impl<'a> Watch<'a> {
    pub(crate) fn new(ask: &'a mut dyn FnMut(&Progress) -> bool) -> Self {
        Self { ask, progress: Progress::default(), stopped: false }
    }

    /// Whether to go on.
    pub(crate) fn go(&mut self) -> bool {
        self.progress.steps += 1;
        self.stopped = self.stopped || !(self.ask)(&self.progress);
        !self.stopped
    }
}
