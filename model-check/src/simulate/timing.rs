//! How long everything takes.

use crate::random::Random;
use protocol::{Name, Operation};
use std::{collections::BTreeMap, ops::RangeInclusive, time::Duration};

/// How long something takes: drawn anew each time from a range, both ends included.
pub type Span = RangeInclusive<Duration>;

/// Always the same length.
pub fn always(length: Duration) -> Span {
    length..=length
}

/// How long everything takes. What is not listed takes its default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Operations of single components.
    pub components: BTreeMap<(Name, Operation), Span>,
    /// Operations of all other components.
    pub operations: BTreeMap<Operation, Span>,
    /// Operations that are listed nowhere.
    pub operation: Span,
    /// From sending a message to its arrival; on each link messages arrive in the order in which they were sent.
    pub message: Span,
    /// From asking the cloud for a VM to having it.
    pub create: Span,
    /// From asking the cloud to destroy a VM to being rid of it.
    pub destroy: Span,
    /// Between two requests of an operator who does not wait for rest, and from rest to the next request of one who does.
    pub request: Span,
    /// Requests that come no earlier than a given moment, by their place in the script, from 0.
    pub not_before: BTreeMap<usize, Duration>,
    /// Between two mishaps.
    pub mishap: Span,
    /// From the loss of a VM to the moment it is declared lost.
    pub declare: Span,
}

impl Default for Timing {
    fn default() -> Self {
        let ms = Duration::from_millis;
        Self {
            components: BTreeMap::new(),
            operations: BTreeMap::from([
                (Operation::Prepare, ms(50)..=ms(500)),
                (Operation::Start, ms(100)..=ms(2_000)),
                (Operation::Rebind, ms(5)..=ms(50)),
                (Operation::Stop, ms(50)..=ms(500)),
            ]),
            operation: ms(10)..=ms(100),
            message: Duration::from_micros(200)..=ms(2),
            create: ms(1_000)..=ms(5_000),
            destroy: ms(500)..=ms(1_000),
            request: ms(0)..=ms(1_000),
            not_before: BTreeMap::new(),
            mishap: ms(100)..=ms(2_000),
            declare: ms(500)..=ms(5_000),
        }
    }
}

impl Timing {
    /// Every operation takes the same, messages and the cloud take no time: what remains is the critical path.
    pub fn uniform(operation: Duration) -> Self {
        let nothing = always(Duration::ZERO);
        Self {
            components: BTreeMap::new(),
            operations: BTreeMap::new(),
            operation: always(operation),
            message: nothing.clone(),
            create: nothing.clone(),
            destroy: nothing.clone(),
            request: nothing,
            ..Self::default()
        }
    }

    /// How long one operation of one component takes this time.
    pub(super) fn operation(&self, random: &mut Random, component: &Name, operation: Operation) -> Duration {
        let listed =
            if self.components.is_empty() { None } else { self.components.get(&(component.clone(), operation)) };
        random.duration(listed.or_else(|| self.operations.get(&operation)).unwrap_or(&self.operation))
    }
}
