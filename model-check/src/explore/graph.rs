//! The graph of worlds: how each was first reached, and the lengths of all ways through it.

/// How each world was first reached, and every edge.
#[derive(Default)]
pub(super) struct Graph {
    /// For each world: its number, the world it was first reached from, and by which action.
    found: Vec<(u32, u32, u32)>,
    /// From, to, and how long the edge is.
    edges: Vec<(u32, u32, Span)>,
}

/// The lengths of the ways from the first world to the ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lengths {
    pub(super) messages_min: u32,
    pub(super) messages_max: u32,
    pub(super) longest: u32,
}

/// How much happens on an edge: an action, and what is taken at once after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Span {
    pub(super) messages: u16,
    pub(super) actions: u16,
}

impl Span {
    pub(super) fn add(&mut self, message: bool) {
        self.messages = self.messages.saturating_add(u16::from(message));
        self.actions = self.actions.saturating_add(1);
    }
}

impl Graph {
    /// Adds the first world.
    pub(super) fn root(&mut self) {
        self.found.push((0, 0, 0));
    }

    pub(super) fn discover(&mut self, index: u32, from: u32, action: u32) {
        self.found.push((index, from, action));
    }

    pub(super) fn edge(&mut self, from: u32, to: u32, span: Span) {
        self.edges.push((from, to, span));
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.found.extend(other.found);
        self.edges.extend(other.edges);
    }

    pub(super) fn edges(&self) -> usize {
        self.edges.len()
    }

    /// The bytes it takes.
    pub(super) fn bytes(&self) -> usize {
        self.found.capacity() * size_of::<(u32, u32, u32)>() + self.edges.capacity() * size_of::<(u32, u32, Span)>()
    }

    /// The actions by which a world was first reached.
    pub(super) fn way(&self, index: u32) -> Vec<u32> {
        let mut parents = vec![(0, 0); self.found.len()];
        for (index, from, action) in &self.found {
            if let Some(parent) = parents.get_mut(*index as usize) {
                *parent = (*from, *action);
            }
        }
        let (mut at, mut way) = (index, Vec::new());
        while at != 0 {
            let (from, action) = parents[at as usize];
            way.push(action);
            at = from;
        }
        way.reverse();
        way
    }

    /// The lengths of all ways to an end; nothing if some way never ends.
    pub(super) fn lengths(&mut self, states: usize) -> Option<Lengths> {
        self.edges.sort_unstable();
        let mut awaited = vec![0_u32; states];
        let mut first = vec![0_usize; states + 1];
        for (from, to, _) in &self.edges {
            awaited[*to as usize] += 1;
            first[*from as usize + 1] += 1;
        }
        for index in 0..states {
            first[index + 1] += first[index];
        }
        // For each world: the least and most messages and the most actions on a way to it.
        let mut ways = vec![(u32::MAX, 0, 0); states];
        ways[0] = (0, 0, 0);
        let mut open = vec![0_u32];
        let mut visited = 0;
        let mut lengths = Lengths { messages_min: u32::MAX, messages_max: 0, longest: 0 };
        while let Some(index) = open.pop() {
            visited += 1;
            let index = index as usize;
            let (least, most, longest) = ways[index];
            if first[index] == first[index + 1] {
                lengths.messages_min = lengths.messages_min.min(least);
                lengths.messages_max = lengths.messages_max.max(most);
                lengths.longest = lengths.longest.max(longest);
            }
            for (_, to, span) in &self.edges[first[index]..first[index + 1]] {
                let (messages, actions) = (u32::from(span.messages), u32::from(span.actions));
                let way = &mut ways[*to as usize];
                *way = (way.0.min(least + messages), way.1.max(most + messages), way.2.max(longest + actions));
                awaited[*to as usize] -= 1;
                if awaited[*to as usize] == 0 {
                    open.push(*to);
                }
            }
        }
        (visited == states).then_some(lengths)
    }
}
