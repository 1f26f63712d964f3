//! Words to trees, by recursive descent, after the published grammar of Zephyrus2.
//!
//! `and`, `or`, `impl` and `iff` have no precedence among themselves and group to the left; a quantifier takes
//! everything to its right; `*` binds closer than `+` and `-`. A syntax error ends its part of the specification; the
//! parts after the next `;` are still read, so that all their errors are reported too.

use super::complaint::{Complaint, Span};
use super::lexer::{Word, words};
use super::syntax::{
    Arithmetic, BindingPreference, Comparison, Connective, Domain, Expression, Place, Preference, Quantified,
    Quantifier, Reference, Shape, Specification, TypeFilter,
};

/// How deeply brackets and quantifiers may nest.
const DEPTH_MAX: usize = 100;
/// How many operators one part may chain.
const LINKS_MAX: usize = 1_000;

const RESERVED: [&str; 16] = [
    "and",
    "or",
    "impl",
    "iff",
    "not",
    "true",
    "false",
    "forall",
    "exists",
    "sum",
    "in",
    "components",
    "locations",
    "cost",
    "abs",
    "ports",
];

/// Whether a name means something in the language, so that nothing else can be called so.
pub fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name)
}

/// Reads `constraint; preference; preference; …`.
pub fn specification(text: &str) -> Result<Specification, Vec<Complaint>> {
    let mut parser = Parser::new(text, false);
    let constraint = parser.part(Parser::formula);
    let mut preferences = Vec::new();
    while parser.take_sign(";") {
        // A semicolon at the very end is harmless.
        if *parser.peek() == Word::End {
            break;
        }
        let start = parser.here();
        if let Some(preference) = parser.part(Parser::preference) {
            preferences.push((preference, start.to(parser.before())));
        }
    }
    let constraint = constraint.unwrap_or(Expression { span: Span::default(), shape: Shape::Truth(true) });
    parser.finish(text, Specification { constraint, preferences })
}

/// Reads one formula, as in an application file's `constraints:`.
pub fn formula(text: &str) -> Result<Expression, Vec<Complaint>> {
    let mut parser = Parser::new(text, false);
    let formula = parser.part(Parser::formula);
    let formula = formula.unwrap_or(Expression { span: Span::default(), shape: Shape::Truth(true) });
    parser.finish(text, formula)
}

/// Reads one preference, as in an application file's `prefer:`.
pub fn preference(text: &str) -> Result<Preference, Vec<Complaint>> {
    let mut parser = Parser::new(text, false);
    let preference = parser.part(Parser::preference).unwrap_or(Preference::Cost);
    parser.finish(text, preference)
}

/// Reads one binding preference: `local` or an expression over `bind(?x, ?y, port)`.
pub fn binding_preference(text: &str) -> Result<BindingPreference, Vec<Complaint>> {
    let mut parser = Parser::new(text, true);
    let preference = parser.part(Parser::binding_preference).unwrap_or(BindingPreference::Local);
    parser.finish(text, preference)
}

struct Parser {
    words: Vec<(Word, Span)>,
    next: usize,
    /// Whether `bind`, `of type` and `ports` are allowed.
    bindings: bool,
    depth: usize,
    links: usize,
    complaints: Vec<Complaint>,
}

/// What a failed rule returns; the complaint is already recorded.
type Read<T> = Option<T>;

impl Parser {
    fn new(text: &str, bindings: bool) -> Self {
        let mut complaints = Vec::new();
        let words = words(text, &mut complaints);
        Self { words, next: 0, bindings, depth: 0, links: 0, complaints }
    }

    fn finish<T>(mut self, text: &str, value: T) -> Result<T, Vec<Complaint>> {
        if self.complaints.is_empty() && *self.peek() != Word::End {
            self.expected::<()>("the end");
        }
        if self.complaints.is_empty() {
            return Ok(value);
        }
        self.complaints.sort_by_key(|complaint| complaint.span);
        for complaint in &mut self.complaints {
            complaint.place_in(text);
        }
        Err(self.complaints)
    }

    /// Reads one part up to `;` or the end; after an error, skips to there.
    fn part<T>(&mut self, rule: fn(&mut Self) -> Read<T>) -> Option<T> {
        (self.depth, self.links) = (0, 0);
        let value = rule(self);
        if value.is_some() && !matches!(self.peek(), Word::End | Word::Sign(";")) {
            self.expected::<()>("an operator, `;` or the end");
        }
        while !matches!(self.peek(), Word::End | Word::Sign(";")) {
            self.next += 1;
        }
        value
    }

    fn preference(&mut self) -> Read<Preference> {
        for (name, preference) in
            [("cost", Preference::Cost), ("stopped", Preference::Stopped), ("moved", Preference::Moved)]
        {
            let alone = matches!(self.words.get(self.next + 1), Some((Word::End | Word::Sign(";"), _)));
            if alone && self.take_name(name) {
                return Some(preference);
            }
        }
        self.sum().map(Preference::Expression)
    }

    fn binding_preference(&mut self) -> Read<BindingPreference> {
        if self.take_name("local") {
            return Some(BindingPreference::Local);
        }
        self.formula().map(BindingPreference::Expression)
    }

    /// `term (and|or|impl|iff term)*`
    fn formula(&mut self) -> Read<Expression> {
        let mut left = self.negation()?;
        loop {
            let connective = match self.peek() {
                Word::Name(name) if name == "and" => Connective::And,
                Word::Name(name) if name == "or" => Connective::Or,
                Word::Name(name) if name == "impl" => Connective::Implies,
                Word::Name(name) if name == "iff" => Connective::Iff,
                _ => return Some(left),
            };
            self.next += 1;
            let right = self.negation()?;
            let span = left.span.to(right.span);
            // `a and b and c` becomes one list, so that long requirements make shallow trees.
            if let Shape::Connected { connective: same, parts } = &mut left.shape
                && *same == connective
                && matches!(connective, Connective::And | Connective::Or)
            {
                parts.push(right);
                left.span = span;
                continue;
            }
            self.lengthen()?;
            left = Expression { span, shape: Shape::Connected { connective, parts: vec![left, right] } };
        }
    }

    fn negation(&mut self) -> Read<Expression> {
        let start = self.here();
        if self.take_name("not") {
            let inner = self.deeper(Self::negation)?;
            let span = start.to(inner.span);
            return Some(Expression { span, shape: Shape::Not(Box::new(inner)) });
        }
        self.comparison()
    }

    fn comparison(&mut self) -> Read<Expression> {
        let left = self.sum()?;
        let operator = match self.peek() {
            Word::Sign("<=") => Comparison::AtMost,
            Word::Sign("=") => Comparison::Equal,
            Word::Sign(">=") => Comparison::AtLeast,
            Word::Sign("<") => Comparison::Less,
            Word::Sign(">") => Comparison::Greater,
            Word::Sign("!=") => Comparison::Different,
            _ => return Some(left),
        };
        self.next += 1;
        let right = self.sum()?;
        let span = left.span.to(right.span);
        let shape = Shape::Comparison { operator, left: Box::new(left), right: Box::new(right) };
        Some(Expression { span, shape })
    }

    fn sum(&mut self) -> Read<Expression> {
        let mut left = self.product()?;
        loop {
            let operator = match self.peek() {
                Word::Sign("+") => Arithmetic::Add,
                Word::Sign("-") => Arithmetic::Subtract,
                _ => return Some(left),
            };
            self.next += 1;
            self.lengthen()?;
            let right = self.product()?;
            left = arithmetic(operator, left, right);
        }
    }

    fn product(&mut self) -> Read<Expression> {
        let mut left = self.term()?;
        while self.take_sign("*") {
            self.lengthen()?;
            let right = self.term()?;
            left = arithmetic(Arithmetic::Multiply, left, right);
        }
        Some(left)
    }

    fn term(&mut self) -> Read<Expression> {
        let start = self.here();
        let shape = match self.peek().clone() {
            Word::Integer(value) => {
                self.next += 1;
                Shape::Integer(value)
            }
            Word::Sign("(") => {
                self.next += 1;
                let inner = self.deeper(Self::formula)?;
                self.require_sign(")")?;
                return Some(Expression { span: start.to(self.before()), shape: inner.shape });
            }
            Word::Sign("-") => {
                self.next += 1;
                let inner = self.deeper(Self::term)?;
                let zero = Expression { span: start, shape: Shape::Integer(0) };
                return Some(arithmetic(Arithmetic::Subtract, zero, inner));
            }
            Word::Name(name) => match name.as_str() {
                "true" | "false" => {
                    self.next += 1;
                    Shape::Truth(name == "true")
                }
                "abs" => {
                    self.next += 1;
                    Shape::Absolute(Box::new(self.deeper(Self::term)?))
                }
                "forall" => self.deeper(|parser| parser.quantified(Quantifier::Forall))?,
                "exists" => self.deeper(|parser| parser.quantified(Quantifier::Exists))?,
                "sum" => self.deeper(|parser| parser.quantified(Quantifier::Sum))?,
                "bind" if self.bindings => self.bind()?,
                "cost" => return self.expected("a number or a count (`cost` can only be a preference of its own)"),
                name if is_reserved(name) => return self.expected("a number, a count, a quantifier or `(`"),
                _ => self.count()?,
            },
            Word::Variable(_) => self.count()?,
            _ => return self.expected("a number, a count, a quantifier or `(`"),
        };
        Some(Expression { span: start.to(self.before()), shape })
    }

    /// `Type`, `?x`, `?x.Type`, `?x.?y`, `class[2].Type`, `class.Type`.
    fn count(&mut self) -> Read<Shape> {
        let head = self.reference("a component or a location")?;
        let mut index = None;
        if matches!(head, Reference::Name(_)) && self.take_sign("[") {
            let Word::Integer(value) = *self.peek() else { return self.expected("the number of a node") };
            self.next += 1;
            index = Some(value);
            self.require_sign("]")?;
        }
        if !self.take_sign(".") {
            return match index {
                None => Some(Shape::Count { place: None, component: head }),
                Some(_) => self.expected("`.` and a component, as in `large[0].Web`"),
            };
        }
        let place = match head {
            Reference::Variable(name) => Place::Variable(name),
            Reference::Name(class) => Place::Node { class, index: index.unwrap_or(0) },
        };
        let component = self.reference("a component")?;
        Some(Shape::Count { place: Some(place), component })
    }

    fn reference(&mut self, what: &str) -> Read<Reference> {
        match self.peek().clone() {
            Word::Name(name) if !is_reserved(&name) => {
                self.next += 1;
                Some(Reference::Name(name))
            }
            Word::Variable(name) => {
                self.next += 1;
                Some(Reference::Variable(name))
            }
            _ => self.expected(what),
        }
    }

    fn quantified(&mut self, quantifier: Quantifier) -> Read<Shape> {
        self.next += 1;
        let variable_span = self.here();
        let variable = self.variable()?;
        let of_type = self.type_filter()?;
        if !self.take_name("in") {
            return self.expected("`in`");
        }
        let domain_span = self.here();
        let domain = self.domain()?;
        self.require_sign(":")?;
        let body = match quantifier {
            Quantifier::Sum => self.sum()?,
            Quantifier::Forall | Quantifier::Exists => self.formula()?,
        };
        let parts = Quantified { quantifier, variable, variable_span, of_type, domain, domain_span, body };
        Some(Shape::Quantified(Box::new(parts)))
    }

    fn variable(&mut self) -> Read<String> {
        let Word::Variable(name) = self.peek().clone() else { return self.expected("a variable, as in `?x`") };
        self.next += 1;
        Some(name)
    }

    fn type_filter(&mut self) -> Read<Option<TypeFilter>> {
        if !self.bindings || !self.take_name("of") {
            return Some(None);
        }
        if !self.take_name("type") {
            return self.expected("`type`");
        }
        let filter = match self.peek().clone() {
            Word::Name(name) if !is_reserved(&name) => TypeFilter::Name(name),
            Word::Pattern(text) => TypeFilter::Pattern(text),
            _ => return self.expected("a component type or a pattern in quotes"),
        };
        self.next += 1;
        Some(Some(filter))
    }

    fn domain(&mut self) -> Read<Domain> {
        let domain = match self.peek().clone() {
            Word::Name(name) if name == "components" && !self.bindings => Domain::Components,
            Word::Name(name) if name == "locations" => Domain::Locations,
            Word::Name(name) if name == "ports" && self.bindings => Domain::Ports,
            Word::Pattern(text) => Domain::Pattern(text),
            _ if self.bindings => return self.expected("`locations`, `ports` or a pattern in quotes"),
            _ => return self.expected("`components`, `locations` or a pattern in quotes"),
        };
        self.next += 1;
        Some(domain)
    }

    fn bind(&mut self) -> Read<Shape> {
        self.next += 1;
        self.require_sign("(")?;
        let one = self.variable()?;
        self.require_sign(",")?;
        let other = self.variable()?;
        self.require_sign(",")?;
        let port = self.reference("a port")?;
        self.require_sign(")")?;
        Some(Shape::Bind { one, other, port })
    }

    /// Runs a rule one level deeper, so that no text can exhaust the stack.
    fn deeper<T>(&mut self, rule: impl FnOnce(&mut Self) -> Read<T>) -> Read<T> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            let reason = format!("this is nested more than {DEPTH_MAX} levels deep");
            self.complaints.push(Complaint::new(self.here(), reason));
            return None;
        }
        let value = rule(self);
        self.depth -= 1;
        value
    }

    /// Counts the links of chains that make the tree deeper, such as `a + b + c`.
    fn lengthen(&mut self) -> Read<()> {
        self.links += 1;
        if self.links > LINKS_MAX {
            let reason = format!("this part has more than {LINKS_MAX} operators");
            self.complaints.push(Complaint::new(self.here(), reason));
            return None;
        }
        Some(())
    }

    fn peek(&self) -> &Word {
        &self.words[self.next.min(self.words.len() - 1)].0
    }

    fn here(&self) -> Span {
        self.words[self.next.min(self.words.len() - 1)].1
    }

    fn before(&self) -> Span {
        self.words[self.next.saturating_sub(1).min(self.words.len() - 1)].1
    }

    fn take_sign(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), Word::Sign(found) if *found == sign);
        self.next += usize::from(found);
        found
    }

    fn take_name(&mut self, name: &str) -> bool {
        let found = matches!(self.peek(), Word::Name(found) if found == name);
        self.next += usize::from(found);
        found
    }

    fn require_sign(&mut self, sign: &str) -> Read<()> {
        if self.take_sign(sign) { Some(()) } else { self.expected(&format!("`{sign}`")) }
    }

    fn expected<T>(&mut self, what: &str) -> Read<T> {
        let reason = format!("expected {what}, found {}", self.peek().describe());
        self.complaints.push(Complaint::new(self.here(), reason));
        None
    }
}

fn arithmetic(operator: Arithmetic, left: Expression, right: Expression) -> Expression {
    let span = left.span.to(right.span);
    Expression { span, shape: Shape::Arithmetic { operator, left: Box::new(left), right: Box::new(right) } }
}
