//! A small generator of random problems.

mod dice;

pub(crate) use dice::Dice;

use planner::configuration::{Component, ComponentName, Configuration, Node};
use planner::language::{RequirementText, Requirements};
use planner::problem::{ComponentType, NodeClass, Problem, Provision};

/// A problem and the text it was made from, to print when it fails.
pub(crate) struct Sample {
    pub(crate) problem: Problem,
    pub(crate) specification: String,
}

const TYPES: [&str; 3] = ["A", "B", "C"];

pub(crate) fn sample(dice: &mut Dice) -> Sample {
    let kinds = usize::try_from(1 + dice.roll(3)).unwrap();
    let types: Vec<ComponentType> = TYPES[..kinds].iter().map(|name| component_type(dice, name)).collect();
    let mut nodes = 3;
    let mut classes = Vec::new();
    for name in ["n", "m"].iter().take(usize::try_from(1 + dice.roll(2)).unwrap()) {
        let number = (1 + dice.roll(2)).min(nodes);
        nodes -= number;
        let resources = [("CPU".to_owned(), 1 + dice.roll(3)), ("RAM".to_owned(), 1 + dice.roll(4))].into();
        classes.push(NodeClass { name: (*name).to_owned(), number, resources, cost: dice.roll(6) });
    }
    let today = today(dice, &types, &classes);
    let specification = specification(dice, kinds, &classes, !today.components.is_empty());
    let text = RequirementText { specification: &specification, ..RequirementText::default() };
    let requirements =
        Requirements::read(&text, &types, &classes).unwrap_or_else(|errors| panic!("{specification}: {errors:?}"));
    let problem = Problem::new(types, classes, today, requirements).unwrap_or_else(|errors| panic!("{errors:?}"));
    Sample { problem, specification }
}

fn component_type(dice: &mut Dice, name: &str) -> ComponentType {
    let mut kind = ComponentType { name: name.to_owned(), ..ComponentType::default() };
    kind.resources = [("CPU".to_owned(), 1 + dice.roll(2)), ("RAM".to_owned(), dice.roll(3))].into();
    for port in ["p", "q"] {
        if dice.one_in(3) {
            let (number, weak) = (dice.roll(3), dice.one_in(3));
            let ports = if weak { &mut kind.weak } else { &mut kind.strong };
            ports.insert(port.to_owned(), number);
        } else if dice.one_in(8) {
            kind.conflicts.insert(port.to_owned());
        }
    }
    let capacity = |dice: &mut Dice| if dice.one_in(3) { None } else { Some(dice.roll(4)) };
    match dice.roll(5) {
        0 => {}
        1 => kind.provides.push(provision(&["p", "q"], capacity(dice))),
        2 => {
            kind.provides.push(provision(&["p"], capacity(dice)));
            kind.provides.push(provision(&["q"], capacity(dice)));
        }
        3 => kind.provides.push(provision(&["p"], capacity(dice))),
        _ => kind.provides.push(provision(&["q"], capacity(dice))),
    }
    kind
}

fn provision(ports: &[&str], capacity: Option<i64>) -> Provision {
    Provision { ports: ports.iter().map(|port| (*port).to_owned()).collect(), capacity }
}

/// Some components that fit on their nodes.
fn today(dice: &mut Dice, types: &[ComponentType], classes: &[NodeClass]) -> Configuration {
    let mut today = Configuration::default();
    if !dice.one_in(3) {
        return today;
    }
    for (class, described) in classes.iter().enumerate() {
        for index in 0..described.number {
            let mut room = described.resources.clone();
            for (kind, component) in types.iter().enumerate() {
                let fits = component.resources.iter().all(|(name, amount)| room[name] >= *amount);
                if fits && dice.one_in(2) {
                    for (name, amount) in &component.resources {
                        *room.get_mut(name).unwrap() -= amount;
                    }
                    let name = ComponentName(format!("old_{}_{class}_{index}", component.name));
                    today.components.insert(name, Component { kind, node: Node { class, index } });
                }
            }
        }
    }
    today
}

fn specification(dice: &mut Dice, kinds: usize, classes: &[NodeClass], has_today: bool) -> String {
    let mut words = Words { dice, kinds, classes };
    let mut text = words.formula(2, &[], &[]);
    if words.dice.one_in(2) {
        text = format!("{} and {text}", words.demand());
    }
    for _ in 0..words.dice.roll(4) {
        let preference = match words.dice.roll(6) {
            0 | 1 => "cost".to_owned(),
            2 => "(sum ?x in components: ?x)".to_owned(),
            3 if has_today => words.dice.pick(&["stopped", "moved"]).to_owned(),
            _ => format!("({})", words.number(2, &[], &[])),
        };
        text = format!("{text}; {preference}");
    }
    text
}

/// Random sentences of the language. Variables in scope are passed along: for types, for nodes.
struct Words<'a> {
    dice: &'a mut Dice,
    kinds: usize,
    classes: &'a [NodeClass],
}

impl Words<'_> {
    /// Something that makes the empty placement a poor answer.
    fn demand(&mut self) -> String {
        format!("{} {} {}", self.kind(&[]), self.dice.pick(&[">=", "=", ">"]), self.dice.roll(3))
    }

    fn kind(&mut self, type_variables: &[&str]) -> String {
        if !type_variables.is_empty() && self.dice.one_in(2) {
            return format!("?{}", self.dice.pick(type_variables));
        }
        self.dice.pick(&TYPES[..self.kinds]).to_owned()
    }

    fn formula(&mut self, depth: i64, types: &[&str], nodes: &[&str]) -> String {
        if depth == 0 || self.dice.one_in(4) {
            let operator = self.dice.pick(&["<=", "=", ">=", "<", ">", "!="]);
            let (left, right) = (self.number(depth.min(1), types, nodes), self.dice.roll(4));
            return format!("{left} {operator} {right}");
        }
        match self.dice.roll(7) {
            0 => format!("not ({})", self.formula(depth - 1, types, nodes)),
            1 => {
                let operator = self.dice.pick(&["<=", "=", ">="]);
                let left = self.number(depth - 1, types, nodes);
                format!("{left} {operator} {}", self.number(depth - 1, types, nodes))
            }
            2 | 3 => {
                let quantifier = self.dice.pick(&["forall", "exists"]);
                let (range, types, nodes) = self.range(types, nodes);
                format!("({quantifier} {range}: ({}))", self.formula(depth - 1, &types, &nodes))
            }
            _ => {
                let connective = self.dice.pick(&["and", "or", "impl", "iff"]);
                let left = self.formula(depth - 1, types, nodes);
                format!("({left}) {connective} ({})", self.formula(depth - 1, types, nodes))
            }
        }
    }

    fn number(&mut self, depth: i64, types: &[&str], nodes: &[&str]) -> String {
        if depth == 0 || self.dice.one_in(4) {
            return match self.dice.roll(4) {
                0 if nodes.is_empty() => {
                    let class = &self.classes[usize::try_from(self.dice.roll(2)).unwrap() % self.classes.len()];
                    let (name, index) = (class.name.clone(), self.dice.roll(class.number.max(1)));
                    if class.number == 0 { "1".to_owned() } else { format!("{name}[{index}].{}", self.kind(types)) }
                }
                0 | 1 if !nodes.is_empty() => format!("?{}.{}", self.dice.pick(nodes), self.kind(types)),
                3 if self.dice.one_in(2) => self.dice.roll(3).to_string(),
                _ => self.kind(types),
            };
        }
        match self.dice.roll(8) {
            0 => format!("abs ({} - {})", self.number(depth - 1, types, nodes), self.dice.roll(3)),
            1 => format!("({}) * ({})", self.number(depth - 1, types, nodes), self.number(depth - 1, types, nodes)),
            2 | 3 => {
                let (range, types, nodes) = self.range(types, nodes);
                format!("(sum {range}: ({}))", self.number(depth - 1, &types, &nodes))
            }
            4 => format!("({})", self.formula(depth - 1, types, nodes)),
            5 => {
                let (range, types, nodes) = self.range(types, nodes);
                format!("(sum {range}: ({}))", self.formula(depth - 1, &types, &nodes))
            }
            _ => {
                let operator = self.dice.pick(&["+", "-"]);
                let left = self.number(depth - 1, types, nodes);
                format!("({left}) {operator} ({})", self.number(depth - 1, types, nodes))
            }
        }
    }

    /// A new variable with what it runs over, and the variables in scope then.
    fn range<'b>(&mut self, types: &[&'b str], nodes: &[&'b str]) -> (String, Vec<&'b str>, Vec<&'b str>) {
        let name = ["x", "y", "z", "u"][types.len() + nodes.len()];
        let (mut types, mut nodes) = (types.to_vec(), nodes.to_vec());
        let domain = self.dice.roll(4);
        if domain == 0 {
            types.push(name);
            return (format!("?{name} in components"), types, nodes);
        }
        nodes.push(name);
        let over = if domain == 3 { format!("'{}|zz'", self.classes[0].name) } else { "locations".to_owned() };
        (format!("?{name} in {over}"), types, nodes)
    }
}
