//! Decides which provider each client is bound to, for components that have been placed.
//!
//! Today's bindings are kept where both ends stay. Without binding preferences the quick way (`greedy`) usually
//! suffices. Otherwise a flow of least cost decides: first that every seat has enough, then that strong bindings of
//! today survive, then the preferences in order, then that weak ones survive, then that clients are spread evenly.
//! Preferences that are no sums of bindings are solved as a small whole-numbered program.

mod flow;
mod greedy;
mod network;
mod preference;

use std::collections::{BTreeMap, BTreeSet};

use crate::configuration::{Binding, Configuration};
use crate::language::BindingGoal;
use crate::model::Relation;
use crate::model::compile::Compiler;
use crate::model::linear::Linear;
use crate::problem::Problem;
use crate::solve::engine::Engine;
use crate::solve::watch::Watch;
use crate::solve::{Answer, solve};
use flow::Graph;
use network::Network;
use preference::{Pair, Reader};

/// More pairs than this are not put into a whole-numbered program.
const PROGRAM_PAIRS_MAX: usize = 3_000;

/// Bindings, and whether they are proven best by the binding preferences.
#[derive(Clone, Debug)]
pub(crate) struct Wired {
    pub(crate) bindings: BTreeSet<Binding>,
    pub(crate) proven: bool,
}

/// Wires the components of `configuration`; `None` if that is impossible. If the caller stops it, the bindings are not proven best.
pub(crate) fn wire(
    problem: &Problem,
    configuration: &Configuration,
    engine: &mut dyn Engine,
    watch: &mut Watch<'_>,
) -> Option<Wired> {
    let network = Network::new(problem, configuration);
    let goals = &problem.requirements.binding_goals;
    if goals.is_empty()
        && let Some(bindings) = greedy::wire(&network, &problem.today.bindings)
    {
        return Some(Wired { bindings, proven: true });
    }
    let mut reader = Reader::new(&network, configuration);
    let weights: Vec<Option<BTreeMap<Pair, i64>>> = goals.iter().map(|goal| reader.weights(goal)).collect();
    let plain = weights.iter().all(Option::is_some);
    if !plain
        && network.pairs() <= PROGRAM_PAIRS_MAX
        && let Some(bindings) = by_program(problem, goals, &mut reader, engine, watch)
    {
        return Some(Wired { bindings, proven: true });
    }
    let known: Vec<BTreeMap<Pair, i64>> = weights.into_iter().flatten().collect();
    let today = &problem.today.bindings;
    if let Some((bindings, complete)) = by_flow(&network, today, &known, &mut || watch.go()) {
        return Some(Wired { bindings, proven: plain && complete });
    }
    // A placement that was found in time is not given up for lack of time to wire it well.
    let (bindings, _) = by_flow(&network, today, &[], &mut || true)?;
    Some(Wired { bindings, proven: false })
}

fn by_flow(
    network: &Network<'_>,
    today: &BTreeSet<Binding>,
    goals: &[BTreeMap<Pair, i64>],
    go_on: &mut dyn FnMut() -> bool,
) -> Option<(BTreeSet<Binding>, bool)> {
    let (seats, shelves) = (network.seats.len(), network.shelves.len());
    let pairs = i128::try_from(network.pairs()).ok()? + 1;
    // Each level outweighs the sum of all below it.
    let even = 1_i128;
    let weak = even * pairs * pairs * 2 + 1;
    let mut unit = weak.checked_mul(pairs * 2)?;
    let mut worth: BTreeMap<Pair, i128> = BTreeMap::new();
    for goal in goals.iter().rev() {
        let most = goal.values().map(|weight| i128::from(weight.abs())).max().unwrap_or(0).max(1);
        for (pair, weight) in goal {
            *worth.entry(*pair).or_insert(0) += unit.checked_mul(i128::from(*weight))?;
        }
        unit = unit.checked_mul(pairs)?.checked_mul(most * 2)?;
    }
    let (strong, mandatory) = (unit, unit.checked_mul(pairs * 4)?);
    let (source, sink) = (seats + shelves, seats + shelves + 1);
    let mut graph = Graph::with_nodes(sink + 1);
    let mut edges: Vec<(Pair, usize)> = Vec::new();
    let mut clients = vec![0_i64; shelves];
    let mut required = Vec::new();
    for (position, seat) in network.seats.iter().enumerate() {
        required.push((graph.edge(source, position, seat.least, -mandatory), seat.least));
        graph.edge(source, position, i64::try_from(shelves).unwrap_or(i64::MAX), 0);
        for shelf in network.choices(position) {
            let mut value = worth.get(&(position, shelf)).copied().unwrap_or(0);
            if today.contains(&network.binding(position, shelf)) {
                value += if seat.strong { strong } else { weak };
            }
            clients[shelf] += 1;
            edges.push(((position, shelf), graph.edge(position, seats + shelf, 1, -value)));
        }
    }
    for (shelf, described) in network.shelves.iter().enumerate() {
        // Each further client of a provider costs more than the last: that spreads them evenly.
        let places = described.capacity.map_or(clients[shelf], |capacity| capacity.min(clients[shelf]));
        for place in 0..places {
            graph.edge(seats + shelf, sink, 1, even * i128::from(2 * place + 1));
        }
    }
    let complete = graph.improve(source, sink, go_on);
    if required.iter().any(|(edge, least)| graph.flow(*edge) < *least) {
        return None;
    }
    let used = edges.iter().filter(|(_, edge)| graph.flow(*edge) > 0);
    let bindings = used.map(|((seat, shelf), _)| network.binding(*seat, *shelf)).collect();
    Some((bindings, complete))
}

/// Preferences that are no sums: a variable for each pair, solved by the same exact search as placements.
fn by_program<'a>(
    problem: &Problem,
    goals: &'a [BindingGoal],
    reader: &mut Reader<'a>,
    engine: &mut dyn Engine,
    watch: &mut Watch<'_>,
) -> Option<BTreeSet<Binding>> {
    let network = reader.network();
    let mut compiler = Compiler::without_nodes(problem);
    let mut variables: BTreeMap<Pair, usize> = BTreeMap::new();
    let mut by_shelf: Vec<Linear> = vec![Linear::default(); network.shelves.len()];
    let mut stay = Linear::default();
    let mut total = Linear::default();
    for (position, seat) in network.seats.iter().enumerate() {
        let mut sum = Linear::constant(-i128::from(seat.least));
        for shelf in network.choices(position) {
            let variable = compiler.auxiliary(0, 1);
            variables.insert((position, shelf), variable);
            let bound = Linear::variable(variable);
            sum = sum.plus(&bound, 1);
            total = total.plus(&bound, 1);
            by_shelf[shelf] = std::mem::take(&mut by_shelf[shelf]).plus(&bound, 1);
            if problem.today.bindings.contains(&network.binding(position, shelf)) {
                stay = stay.plus(&bound, if seat.strong { -1_000_000 } else { -1 });
            }
        }
        compiler.row(&sum, Relation::AtLeast);
    }
    for (shelf, sum) in network.shelves.iter().zip(by_shelf) {
        if let Some(capacity) = shelf.capacity {
            compiler.row(&sum.times(-1).add(i128::from(capacity)), Relation::AtLeast);
        }
    }
    let mut forms: Vec<Linear> =
        goals.iter().map(|goal| reader.form(goal, &variables, &mut compiler).times(-1)).collect();
    forms.push(stay);
    forms.push(total);
    let model = compiler.into_model(forms)?;
    let Answer::Placed { values, goals: results, .. } = solve(&model, engine, watch) else { return None };
    if results.len() < model.goals.len() || results.iter().any(|result| result.bound != Some(result.value)) {
        return None;
    }
    let used = variables.iter().filter(|(_, variable)| values[**variable] == 1);
    Some(used.map(|((seat, shelf), _)| network.binding(*seat, *shelf)).collect())
}
