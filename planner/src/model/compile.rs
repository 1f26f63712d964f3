//! From requirements to groups, filters, measures and rows.

use super::groups::{groups, singled_out};
use super::interfaces::Interfaces;
use super::linear::{Formula, Linear};
use super::local::Local;
use super::simplify::{About, about, simplify};
use super::{Group, INSTANCES_MAX, Measure, Model, ModelError, Row, Selection};
use crate::language::syntax::{Arithmetic, Comparison, Connective, Quantifier};
use crate::language::{GoalMeasure, Range, Spot, Term, Which};
use crate::problem::Problem;
use std::collections::BTreeSet;

/// What a slot stands for while a term is compiled.
#[derive(Clone, Copy)]
pub(super) enum Bound {
    Type(usize),
    /// The only member of this group.
    Single(usize),
    /// Whatever node a column is for.
    Here,
}

pub(crate) struct Compiler<'a> {
    problem: &'a Problem,
    groups: Vec<Group>,
    pub(super) bounds: Vec<(i64, i64)>,
    pub(super) measures: Vec<Option<Measure>>,
    pub(super) rows: Vec<Row>,
    pub(super) too_large: bool,
    pub(super) slots: Vec<Bound>,
    /// Classes that the requirements mention in such a way that a further empty node would make a difference.
    counted: BTreeSet<usize>,
}

pub(super) fn model(problem: &Problem, selection: &Selection) -> Result<Model, ModelError> {
    let lifted = |class: &usize| !selection.numbers[*class];
    let model = model_with(problem, selection, &(0..problem.classes.len()).filter(lifted).collect())?;
    if model.given.is_empty() {
        return Ok(model);
    }
    let free = (0..problem.classes.len()).filter(lifted).filter(|class| !model.given.contains(class)).collect();
    Ok(Model { given: model.given, ..model_with(problem, selection, &free)? })
}

/// The model with any number of nodes in some classes.
fn model_with(problem: &Problem, selection: &Selection, lifted: &BTreeSet<usize>) -> Result<Model, ModelError> {
    let demands: Vec<(Term, &str)> = problem
        .requirements
        .demands
        .iter()
        .zip(&selection.demands)
        .filter(|(_, selected)| **selected)
        .map(|(demand, _)| (simplify(&demand.term), demand.text.as_str()))
        .collect();
    let goals: Vec<Option<(Term, &str)>> = problem
        .requirements
        .goals
        .iter()
        .map(|goal| match &goal.measure {
            GoalMeasure::Term(term) => Some((simplify(term), goal.text.as_str())),
            GoalMeasure::Cost | GoalMeasure::Stopped | GoalMeasure::Moved => None,
        })
        .collect();
    let all: Vec<(&Term, &str)> =
        demands.iter().chain(goals.iter().flatten()).map(|(term, text)| (term, *text)).collect();
    let groups = groups(problem, lifted, &singled_out(&all, problem)?);
    let mut compiler = Compiler {
        problem,
        groups,
        bounds: Vec::new(),
        measures: Vec::new(),
        rows: Vec::new(),
        too_large: false,
        slots: Vec::new(),
        counted: BTreeSet::new(),
    };
    let everywhere = vec![true; compiler.groups.len()];
    for kind in 0..problem.types.len() {
        compiler.measure(Measure::Count { kind, groups: everywhere.clone() });
    }
    for (term, text) in &demands {
        compiler.demand(term);
        compiler.check(text)?;
    }
    let mut forms = Vec::new();
    for (goal, term) in problem.requirements.goals.iter().zip(&goals) {
        let form = match (&goal.measure, term) {
            (GoalMeasure::Cost, _) => Linear::variable(compiler.measure(Measure::Cost)),
            (GoalMeasure::Stopped, _) => compiler.stopped(),
            (GoalMeasure::Moved, _) => compiler.moved(),
            (GoalMeasure::Term(_), term) => {
                let (term, _) = term.as_ref().expect("an expression was simplified above");
                compiler.number(term)
            }
        };
        compiler.too_large |= !form.is_exact();
        forms.push(form);
        compiler.check(&goal.text)?;
    }
    let sizes = sizes(problem);
    let interfaces = Interfaces::selected(problem, selection);
    let Compiler { groups, bounds, measures, rows, counted, .. } = compiler;
    let given = counted.intersection(lifted).copied().collect();
    Ok(Model { groups, sizes, bounds, measures, rows, interfaces, goals: forms, given })
}

fn sizes(problem: &Problem) -> Vec<Vec<i64>> {
    let resources = problem.resources();
    problem
        .types
        .iter()
        .map(|kind| resources.iter().map(|name| kind.resources.get(*name).copied().unwrap_or(0)).collect())
        .collect()
}

impl<'a> Compiler<'a> {
    /// A compiler for programs that are not about placements.
    pub(crate) fn without_nodes(problem: &'a Problem) -> Self {
        Self {
            problem,
            groups: Vec::new(),
            bounds: Vec::new(),
            measures: Vec::new(),
            rows: Vec::new(),
            too_large: false,
            slots: Vec::new(),
            counted: BTreeSet::new(),
        }
    }

    /// The program that was built up; `None` if its numbers became too large.
    pub(crate) fn into_model(self, goals: Vec<Linear>) -> Option<Model> {
        let Self { groups, bounds, measures, rows, too_large, .. } = self;
        let too_large = too_large || !goals.iter().all(Linear::is_exact);
        let interfaces = Interfaces::default();
        let given = BTreeSet::new();
        let model = Model { groups, sizes: Vec::new(), bounds, measures, rows, interfaces, goals, given };
        (!too_large).then_some(model)
    }
}

impl Compiler<'_> {
    fn check(&self, text: &str) -> Result<(), ModelError> {
        if self.too_large { Err(ModelError::TooLarge(text.to_owned())) } else { Ok(()) }
    }

    /// The variable for a measure; the same measure has one variable.
    fn measure(&mut self, measure: Measure) -> usize {
        if let Some(known) = self.measures.iter().position(|known| known.as_ref() == Some(&measure)) {
            return known;
        }
        let (mut low, mut high) = (0_i128, 0_i128);
        for (position, group) in self.groups.iter().enumerate() {
            let (least, most) = measure.range(position, group);
            low += i128::from(least) * i128::from(group.number());
            high += i128::from(most) * i128::from(group.number());
        }
        if matches!(measure, Measure::Count { .. }) {
            high = high.min(i128::from(INSTANCES_MAX));
        }
        let variable = self.auxiliary(low, high);
        self.measures[variable] = Some(measure);
        variable
    }

    /// Today's components that do not stay where they are.
    fn stopped(&mut self) -> Linear {
        let mut stopped = Linear::default();
        for kind in 0..self.problem.types.len() {
            let today = self.today(kind);
            if today > 0 {
                let kept = self.measure(Measure::Kept { kind });
                stopped = stopped.add(today).plus(&Linear::variable(kept), -1);
            }
        }
        stopped
    }

    /// Those of them whose type has instances elsewhere to take their place.
    fn moved(&mut self) -> Linear {
        let mut moved = Linear::default();
        for kind in 0..self.problem.types.len() {
            let today = self.today(kind);
            if today > 0 {
                let kept = self.measure(Measure::Kept { kind });
                let lives_on = self.least(&Linear::variable(kind), today);
                moved = moved.plus(&lives_on, 1).plus(&Linear::variable(kept), -1);
            }
        }
        moved
    }

    fn today(&self, kind: usize) -> i128 {
        self.groups.iter().map(|group| i128::from(group.today[kind]) * i128::from(group.number())).sum()
    }

    fn demand(&mut self, term: &Term) {
        match term {
            Term::Connected { connective: Connective::And, parts } => parts.iter().for_each(|part| self.demand(part)),
            Term::Quantified { quantifier: Quantifier::Forall, slot, range: Range::Nodes(classes), body }
                if about(body, *slot) == About::Here =>
            {
                let filter = self.local_body(body);
                if filter.evaluate(&vec![0; self.problem.types.len()]) == 0 {
                    self.counted.extend(classes);
                }
                for group in &mut self.groups {
                    if classes.contains(&group.class) {
                        group.filters.push(filter.clone());
                    }
                }
            }
            _ => {
                let formula = self.truth(term);
                self.assert(formula);
            }
        }
    }

    fn truth(&mut self, term: &Term) -> Formula {
        match term {
            Term::Truth(value) => Formula::Truth(*value),
            Term::Not(inner) => self.truth(inner).negated(),
            Term::Comparison { operator, left, right } => {
                let (left, right) = (self.number(left), self.number(right));
                compared(*operator, &left, &right)
            }
            Term::Connected { connective, parts } => {
                let mut parts: Vec<Formula> = parts.iter().map(|part| self.truth(part)).collect();
                match connective {
                    Connective::And => Formula::All(parts),
                    Connective::Or => Formula::Any(parts),
                    Connective::Implies => {
                        parts[0] = parts[0].negated();
                        Formula::Any(parts)
                    }
                    Connective::Iff => {
                        // Reified, so that nested equivalences do not double in size at each level.
                        let right = self.reified(parts.remove(1));
                        let left = self.reified(parts.remove(0));
                        compared(Comparison::Equal, &left, &right)
                    }
                }
            }
            Term::Quantified { quantifier, slot, range: Range::Nodes(classes), body } => {
                self.truth_over_nodes(*quantifier, *slot, classes, body)
            }
            Term::Quantified { quantifier, range, body, .. } => {
                let parts = self.over_types(range, |compiler| compiler.truth(body));
                if *quantifier == Quantifier::Forall { Formula::All(parts) } else { Formula::Any(parts) }
            }
            Term::Integer(_) | Term::Count { .. } | Term::Bind { .. } | Term::Arithmetic { .. } | Term::Absolute(_) => {
                // The reader lets no number stand where a truth value is expected.
                let number = self.number(term);
                compared(Comparison::Different, &number, &Linear::default())
            }
        }
    }

    fn number(&mut self, term: &Term) -> Linear {
        match term {
            Term::Integer(value) => Linear::constant(i128::from(*value)),
            Term::Count { place, component } => self.count(*place, *component),
            Term::Arithmetic { operator, left, right } => {
                let (left, right) = (self.number(left), self.number(right));
                match operator {
                    Arithmetic::Add => left.plus(&right, 1),
                    Arithmetic::Subtract => left.plus(&right, -1),
                    Arithmetic::Multiply => self.product(&left, &right),
                }
            }
            Term::Absolute(inner) => {
                let inner = self.number(inner);
                self.absolute(&inner)
            }
            Term::Quantified { quantifier: Quantifier::Sum, slot, range: Range::Nodes(classes), body } => {
                self.sum_over_nodes(*slot, classes, body)
            }
            Term::Quantified { quantifier: Quantifier::Sum, range, body, .. } => {
                let parts = self.over_types(range, |compiler| compiler.number(body));
                parts.iter().fold(Linear::default(), |sum, part| sum.plus(part, 1))
            }
            Term::Truth(_)
            | Term::Quantified { .. }
            | Term::Comparison { .. }
            | Term::Connected { .. }
            | Term::Not(_)
            | Term::Bind { .. } => {
                let formula = self.truth(term);
                self.reified(formula)
            }
        }
    }

    fn count(&mut self, place: Option<Spot>, component: Which) -> Linear {
        let kind = self.kind(component);
        let single = match place {
            None => return Linear::variable(kind),
            Some(Spot::Node(node)) => {
                let found = self
                    .groups
                    .iter()
                    .position(|group| group.class == node.class && group.members.as_slice() == [node.index]);
                found.expect("a node that the requirements name has a group of its own")
            }
            Some(Spot::Slot(slot)) => match self.slots[slot] {
                Bound::Single(group) => group,
                Bound::Type(_) | Bound::Here => unreachable!("a node's contents are compiled by `local`"),
            },
        };
        let mut groups = vec![false; self.groups.len()];
        groups[single] = true;
        Linear::variable(self.measure(Measure::Count { kind, groups }))
    }

    pub(super) fn kind(&self, component: Which) -> usize {
        match component {
            Which::Type(kind) => kind,
            Which::Slot(slot) => match self.slots[slot] {
                Bound::Type(kind) => kind,
                Bound::Single(_) | Bound::Here => unreachable!("the reader tells types from nodes"),
            },
        }
    }

    pub(super) fn over_types<T>(&mut self, range: &Range, mut compile: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let Range::Types(kinds) = range else { return Vec::new() };
        let mut parts = Vec::new();
        for kind in kinds {
            self.slots.push(Bound::Type(*kind));
            parts.push(compile(self));
            self.slots.pop();
        }
        parts
    }

    fn over_singles<T>(&mut self, classes: &[usize], mut compile: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let mut parts = Vec::new();
        for group in 0..self.groups.len() {
            if classes.contains(&self.groups[group].class) {
                self.slots.push(Bound::Single(group));
                parts.push(compile(self));
                self.slots.pop();
            }
        }
        parts
    }

    fn truth_over_nodes(&mut self, quantifier: Quantifier, slot: usize, classes: &[usize], body: &Term) -> Formula {
        let forall = quantifier == Quantifier::Forall;
        match about(body, slot) {
            About::Here => {
                // forall: no node where it fails; exists: at least one where it holds.
                let holds = self.local_body(body);
                let number = if forall { Local::Not(Box::new(holds)) } else { holds };
                let nodes = self.sum_of(number, classes);
                let bound = if forall { nodes.times(-1) } else { nodes.add(-1) };
                Formula::AtLeastZero(bound)
            }
            About::Elsewhere if self.nodes(classes) == 0 => Formula::Truth(forall),
            About::Elsewhere => {
                if classes.iter().all(|class| self.problem.classes[*class].number == 0) {
                    self.counted.extend(classes);
                }
                self.slots.push(Bound::Here);
                let formula = self.truth(body);
                self.slots.pop();
                formula
            }
            About::Both => {
                self.counted.extend(classes);
                let parts = self.over_singles(classes, |compiler| compiler.truth(body));
                if forall { Formula::All(parts) } else { Formula::Any(parts) }
            }
        }
    }

    fn sum_over_nodes(&mut self, slot: usize, classes: &[usize], body: &Term) -> Linear {
        match about(body, slot) {
            About::Here => {
                let number = self.local_body(body);
                self.sum_of(number, classes)
            }
            About::Elsewhere => {
                self.counted.extend(classes);
                self.slots.push(Bound::Here);
                let form = self.number(body);
                self.slots.pop();
                form.times(self.nodes(classes))
            }
            About::Both => {
                self.counted.extend(classes);
                let parts = self.over_singles(classes, |compiler| compiler.number(body));
                parts.iter().fold(Linear::default(), |sum, part| sum.plus(part, 1))
            }
        }
    }

    fn nodes(&self, classes: &[usize]) -> i128 {
        self.groups.iter().filter(|group| classes.contains(&group.class)).map(|group| i128::from(group.number())).sum()
    }

    fn sum_of(&mut self, number: Local, classes: &[usize]) -> Linear {
        let groups: Vec<bool> = self.groups.iter().map(|group| classes.contains(&group.class)).collect();
        if number.evaluate(&vec![0; self.problem.types.len()]) != 0 {
            self.counted.extend(classes);
        }
        let measure = match number {
            Local::Count(kind) => Measure::Count { kind, groups },
            number => Measure::Local { number, groups },
        };
        Linear::variable(self.measure(measure))
    }
}

pub(crate) fn compared(operator: Comparison, left: &Linear, right: &Linear) -> Formula {
    let more = Formula::at_least(left, right);
    let less = Formula::at_least(right, left);
    match operator {
        Comparison::AtLeast => more,
        Comparison::AtMost => less,
        Comparison::Greater => less.negated(),
        Comparison::Less => more.negated(),
        Comparison::Equal => Formula::All(vec![more, less]),
        Comparison::Different => Formula::Any(vec![more.negated(), less.negated()]),
    }
}
