//! A flow of least cost, by shortest augmenting paths. Costs may be negative; the flow grows as long as that pays.

/// A directed graph with capacities and costs. Each edge has its reverse next to it.
#[derive(Clone, Debug, Default)]
pub(super) struct Graph {
    /// For each node, the edges that leave it.
    leaving: Vec<Vec<usize>>,
    head: Vec<usize>,
    room: Vec<i64>,
    cost: Vec<i128>,
}

impl Graph {
    pub(super) fn with_nodes(number: usize) -> Self {
        Self { leaving: vec![Vec::new(); number], ..Self::default() }
    }

    /// Adds an edge and returns its number.
    pub(super) fn edge(&mut self, from: usize, to: usize, room: i64, cost: i128) -> usize {
        let edge = self.head.len();
        for (tail, head, room, cost) in [(from, to, room, cost), (to, from, 0, -cost)] {
            self.leaving[tail].push(self.head.len());
            self.head.push(head);
            self.room.push(room);
            self.cost.push(cost);
        }
        edge
    }

    /// How much flows over an edge: what its reverse could give back.
    pub(super) fn flow(&self, edge: usize) -> i64 {
        self.room[edge + 1]
    }

    /// Sends flow from `source` to `sink` while that lowers the total cost. False if the caller stopped it.
    pub(super) fn improve(&mut self, source: usize, sink: usize, keep_going: &mut dyn FnMut() -> bool) -> bool {
        while let Some(way) = self.shortest(source, sink) {
            if !keep_going() {
                return false;
            }
            let amount = way.iter().map(|edge| self.room[*edge]).min().unwrap_or(0);
            for edge in way {
                self.room[edge] -= amount;
                self.room[edge ^ 1] += amount;
            }
        }
        true
    }

    /// The cheapest way with room on every edge, if it costs less than nothing.
    fn shortest(&self, source: usize, sink: usize) -> Option<Vec<usize>> {
        let nodes = self.leaving.len();
        let mut distance: Vec<Option<i128>> = vec![None; nodes];
        let mut by: Vec<usize> = vec![usize::MAX; nodes];
        let mut waiting = vec![false; nodes];
        let mut queue = std::collections::VecDeque::from([source]);
        distance[source] = Some(0);
        while let Some(node) = queue.pop_front() {
            waiting[node] = false;
            let here = distance[node].expect("a node in the queue has been reached");
            for edge in &self.leaving[node] {
                let (next, there) = (self.head[*edge], here + self.cost[*edge]);
                if self.room[*edge] > 0 && distance[next].is_none_or(|known| there < known) {
                    distance[next] = Some(there);
                    by[next] = *edge;
                    if !std::mem::replace(&mut waiting[next], true) {
                        queue.push_back(next);
                    }
                }
            }
        }
        distance[sink].filter(|cost| *cost < 0)?;
        let mut way = Vec::new();
        let mut node = sink;
        while node != source {
            way.push(by[node]);
            node = self.head[by[node] ^ 1];
        }
        Some(way)
    }
}
