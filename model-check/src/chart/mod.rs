//! Sequence charts: what happened in one run, for people to look at.
//!
//! A chart has one lifeline for the manager and one for each VM. Time goes down, one row for each event. A message is an
//! arrow from the row in which it was sent to the row in which it arrived, so messages under way can be seen. The states of
//! components are marks on the lifelines; loans that are lent, recalled and returned are arrows between VMs, or marks if both
//! ends are on one VM. Requests of the operator and outcomes of the cloud are marks on the manager's lifeline.
//!
//! [`Chart::new`] makes a chart of a run (`record`, with the `wording`); [`Chart::without_acknowledgements`] hides the reports
//! that say nothing; [`Chart::to_text`], [`Chart::to_mermaid`] and [`Chart::to_svg`] draw it. [`Chart::to_timeline`] draws only
//! the lives of components on a scale of time, and [`operations`] one bar for each operation.

mod acknowledgements;
mod mermaid;
pub mod operations;
mod record;
mod svg;
mod text;
mod timeline;
mod tracks;
mod wording;

use protocol::ComponentState;

/// A run, ready to be drawn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chart {
    /// The manager's first, then the VMs' in the order of their numbers.
    pub lifelines: Vec<Lifeline>,
    /// Every letter, in the order in which they were sent.
    pub arrows: Vec<Arrow>,
    /// What happened, one after the other.
    pub rows: Vec<Row>,
}

impl Chart {
    /// What the signs of this chart mean; nothing for a chart without any.
    pub fn legend(&self) -> Vec<(char, &'static str)> {
        let mut legend: Vec<(char, &'static str)> =
            self.mark_sorts().into_iter().map(|sort| (sort.sign(), sort.meaning())).collect();
        if !self.arrows.is_empty() {
            legend.push(('╎', "message under way"));
        }
        legend
    }

    /// The sorts of marks in this chart, each once.
    fn mark_sorts(&self) -> Vec<MarkSort> {
        let mut sorts: Vec<MarkSort> = self.rows.iter().flat_map(|row| &row.marks).map(|mark| mark.sort).collect();
        sorts.sort_unstable();
        sorts.dedup_by_key(|sort| sort.meaning());
        sorts
    }
}

/// One machine through time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lifeline {
    /// What people call it.
    pub name: String,
    /// The row in which it came into being; before the first one if absent.
    pub born: Option<usize>,
    /// The row in which it was lost or destroyed, if it was.
    pub ended: Option<usize>,
    /// Its components, in the order of their numbers.
    pub components: Vec<Life>,
}

/// One component through time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Life {
    /// What people call it.
    pub name: String,
    /// In which row it came into which state; nothing if it is gone. Row 0 may be before the first event.
    pub states: Vec<(usize, Option<ComponentState>)>,
}

/// One letter on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrow {
    /// The lifeline it comes from.
    pub from: usize,
    /// The lifeline it goes to.
    pub to: usize,
    /// What sort of letter it is.
    pub sort: Sort,
    /// What it says.
    pub label: String,
    /// The row in which it was sent; before the first one if absent.
    pub sent: Option<usize>,
    /// The row in which it arrived; never if absent.
    pub arrived: Option<usize>,
}

/// The sorts of letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sort {
    /// Manager to agent.
    Order,
    /// Agent to manager.
    Report,
    /// Agent to manager: an order was taken in, and there is nothing to report.
    Acknowledgement,
    /// Where a provider can be reached.
    Bind,
    /// A loan goes out.
    Lend,
    /// A loan is asked back.
    Recall,
    /// A loan comes home.
    Home,
}

/// What happened in one event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The how-many-th event it is, from 1.
    pub number: usize,
    /// The lifeline on which it happened.
    pub lifeline: usize,
    /// The letter that arrived.
    pub arrived: Option<usize>,
    /// The letters that were sent.
    pub sent: Vec<usize>,
    /// What is to be seen on the lifeline.
    pub marks: Vec<Mark>,
}

/// Something to be seen on a lifeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// What sort of thing.
    pub sort: MarkSort,
    /// What it says.
    pub text: String,
}

/// The sorts of marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MarkSort {
    /// A component is in this state.
    State(ComponentState),
    /// A component is gone.
    Gone,
    /// A loan within the VM.
    Loan,
    /// The operator asks for something.
    Asked,
    /// The operator is told something, or the cloud has done something.
    News,
    /// Something went wrong.
    Fault,
}

impl MarkSort {
    /// What the sign means, in a word or two.
    fn meaning(self) -> &'static str {
        match self {
            Self::State(ComponentState::Stopped) => "stopped",
            Self::State(ComponentState::Starting) => "starting",
            Self::State(ComponentState::Started) => "started",
            Self::State(ComponentState::Stopping) => "stopping",
            Self::State(ComponentState::Failed(_)) => "failed",
            Self::Gone => "removed",
            Self::Loan => "loan within the VM",
            Self::Asked => "request",
            Self::News => "news",
            Self::Fault => "fault or refusal",
        }
    }

    /// A sign that says the same without colour.
    pub fn sign(self) -> char {
        match self {
            Self::State(ComponentState::Stopped) => '○',
            Self::State(ComponentState::Starting) => '◔',
            Self::State(ComponentState::Started) => '●',
            Self::State(ComponentState::Stopping) => '◕',
            Self::State(ComponentState::Failed(_)) => '✗',
            Self::Gone => '✕',
            Self::Loan => '↺',
            Self::Asked => '»',
            Self::News => '✓',
            Self::Fault => '⚡',
        }
    }
}
