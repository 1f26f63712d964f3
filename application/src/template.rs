//! Checks what templates read before anything runs: each name must exist when the template is rendered, and a text is
//! not calculated with.
//!
//! The template is parsed as the agent will parse it, and its expressions are followed: through `imports.db[0]`, loops,
//! `with` and `set`. If the meaning of an expression cannot be known, nothing is reported.

use crate::{
    component_type::ComponentType,
    nearest::hint,
    operations::TemplateText,
    reading::Reading,
    source::{Sources, Span},
    template_names::ALWAYS,
    template_reads::{self, Part, Reads},
    template_words::TESTS,
};
use minijinja::{
    machinery::{WhitespaceConfig, ast, parse},
    value::ValueKind,
};
use protocol::Name;
use recipe::{template_bounds::excess, value_type::ValueType};
use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

/// The values that travel with each export, over all types that have one of that name; each with its type if all say the
/// same.
pub(crate) type ExportedValues = BTreeMap<Name, BTreeMap<Name, Option<ValueType>>>;

/// The meaning of an expression, as far as it can be known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// Unknown.
    Anything,
    Parameters,
    Values,
    Imports,
    /// All that is bound to an import.
    Import(Name),
    /// What came with one binding of an import.
    Binding(Name),
    /// Directories that outlive the component.
    Data,
    /// The group of the component.
    Group,
    Text,
    Number,
    Boolean,
}

impl From<ValueType> for Meaning {
    fn from(value_type: ValueType) -> Self {
        match value_type {
            ValueType::Text | ValueType::Secret => Self::Text,
            ValueType::Integer | ValueType::Number | ValueType::Port => Self::Number,
            ValueType::Boolean => Self::Boolean,
            ValueType::Any => Self::Anything,
        }
    }
}

/// The values of each export.
pub(crate) fn exported_values(types: &BTreeMap<String, (Span, ComponentType)>) -> ExportedValues {
    let mut values = ExportedValues::new();
    for (_, component_type) in types.values() {
        for (name, export) in &component_type.exports {
            let known = values.entry(name.clone()).or_default();
            for value in &export.values {
                let value_type = Some(component_type.recipe.types.values.of(value));
                let before = *known.entry(value.clone()).or_insert(value_type);
                known.insert(value.clone(), value_type.filter(|_| before == value_type));
            }
        }
    }
    // What could not be read may be one of the values.
    let unknown = types.values().filter(|(_, it)| !it.knows_exports).flat_map(|(_, it)| it.exports.keys());
    unknown.for_each(|name| drop(values.remove(name)));
    values
}

/// Checks every template of a type. Returns what they read.
pub(crate) fn check(
    component_type: &ComponentType,
    exported: &ExportedValues,
    sources: &Sources,
    reading: &mut Reading,
) -> Reads {
    let mut reads = Reads::default();
    let mut own: BTreeSet<String> = component_type.recipe.values.keys().map(Name::to_string).collect();
    own.extend(component_type.exports.values().flat_map(|it| &it.values).map(Name::to_string));
    for template in &component_type.templates {
        let text = &template.text;
        if let Some((at, why)) = excess(text) {
            let place = sources.within(template.span, text, at..at + 2);
            reading.wrong(place.unwrap_or(template.span), format!("template: {why}"));
            continue;
        }
        match parse(text, "template", Default::default(), WhitespaceConfig::default()) {
            Ok(parsed) => {
                let mut walk = Walk {
                    component_type,
                    exported,
                    own: &own,
                    template,
                    sources,
                    reading,
                    scopes: Vec::new(),
                    reads: &mut reads,
                    asked: BTreeSet::new(),
                    branches: 0,
                    loops: 0,
                    deciding: 0,
                };
                walk.statement(&parsed);
            }
            Err(error) => {
                let (piece, says) = explain(&error, text);
                let place = sources.within(template.span, text, piece);
                reading.wrong(place.unwrap_or(template.span), says);
            }
        }
    }
    template_reads::check_order(&reads.needs, &component_type.templates, reading);
    reads
}

/// Which piece of a text is why it is no template, and what to do about it.
fn explain(error: &minijinja::Error, text: &str) -> (Range<usize>, String) {
    let detail = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
    let opened = text.rfind("{{").max(text.rfind("{%")).unwrap_or(0);
    let unclosed = !text[opened..].contains("}}") && !text[opened..].contains("%}");
    if detail.contains("end of input") && unclosed {
        let (opens, closes) = if text[opened..].starts_with("{%") { ("{%", "%}") } else { ("{{", "}}") };
        let says = format!(
            "template: `{opens}` is not closed with `{closes}` (for a literal `{opens}` write {{{{ '{opens}' }}}})"
        );
        return (opened..opened + 2, says);
    }
    if let Some((at, word)) = open_block(text).filter(|_| detail.contains("end of input")) {
        let says = format!("template: `{{% {word} … %}}` is not closed with `{{% end{word} %}}`");
        return (at..at + 2, says);
    }
    // Where the place is not known exactly, it is the line.
    let line = error.line().unwrap_or(1).saturating_sub(1);
    let start: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
    let letters = text[start..].len() - text[start..].trim_start().len();
    let whole = start + letters..start + text[start..].lines().next().map_or(0, str::len);
    let exact = error.range().filter(|it| text.get(it.clone()).is_some_and(|it| !it.trim().is_empty()));
    (exact.unwrap_or(whole), format!("template: {detail}"))
}

/// The last block that is opened and not closed.
fn open_block(text: &str) -> Option<(usize, &str)> {
    let mut open = Vec::new();
    for (at, _) in text.match_indices("{%") {
        let rest = text[at + 2..].trim_start_matches(['-', '+']).trim_start();
        let word = &rest[..rest.find(|it: char| !it.is_ascii_alphabetic()).unwrap_or(rest.len())];
        if word.starts_with("end") {
            open.pop();
        } else if ["if", "for", "with", "filter", "autoescape"].contains(&word) {
            open.push((at, word));
        }
    }
    open.pop()
}

pub(crate) struct Walk<'a> {
    pub(crate) component_type: &'a ComponentType,
    pub(crate) exported: &'a ExportedValues,
    pub(crate) own: &'a BTreeSet<String>,
    pub(crate) template: &'a TemplateText,
    pub(crate) sources: &'a Sources,
    pub(crate) reading: &'a mut Reading,
    /// Names that the template itself makes, the innermost last.
    pub(crate) scopes: Vec<BTreeMap<String, Meaning>>,
    pub(crate) reads: &'a mut Reads,
    /// Names whose existence was tested: the template copes if they are missing.
    pub(crate) asked: BTreeSet<String>,
    /// How many conditions there are around this place.
    pub(crate) branches: usize,
    /// How many loops, which may go round never.
    pub(crate) loops: usize,
    /// How many expressions that only decide something, and become no part of the text.
    pub(crate) deciding: usize,
}

impl Walk<'_> {
    fn statement(&mut self, statement: &ast::Stmt<'_>) {
        match statement {
            ast::Stmt::Template(it) => {
                self.scopes.push(BTreeMap::new());
                self.body(&it.children);
            }
            ast::Stmt::EmitExpr(it) => {
                let meaning = self.meaning(&it.expr);
                self.whole(&meaning);
            }
            ast::Stmt::ForLoop(it) => {
                let items = self.meaning(&it.iter);
                let item = self.item(&items);
                self.scopes.push(BTreeMap::from([("loop".to_owned(), Meaning::Anything)]));
                self.assign(&it.target, item);
                it.filter_expr.iter().for_each(|it| self.decide(it));
                self.loops += 1;
                self.body(&it.body);
                self.scopes.pop();
                self.body(&it.else_body);
                self.loops -= 1;
            }
            ast::Stmt::IfCond(it) => {
                self.decide(&it.expr);
                self.branches += 1;
                self.body(&it.true_body);
                self.body(&it.false_body);
                self.branches -= 1;
            }
            ast::Stmt::WithBlock(it) => {
                self.scopes.push(BTreeMap::new());
                for (target, expression) in &it.assignments {
                    let meaning = self.meaning(expression);
                    self.assign(target, meaning);
                }
                self.body(&it.body);
                self.scopes.pop();
            }
            ast::Stmt::Set(it) => {
                let meaning = self.meaning(&it.expr);
                self.assign(&it.target, meaning);
            }
            ast::Stmt::SetBlock(it) => {
                self.body(&it.body);
                self.assign(&it.target, Meaning::Anything);
            }
            ast::Stmt::AutoEscape(it) => self.body(&it.body),
            ast::Stmt::FilterBlock(it) => {
                self.body(&it.body);
                self.meaning(&it.filter);
            }
            ast::Stmt::Do(it) => it.call.args.iter().for_each(|it| self.argument(it)),
            // Text, and what the agent's templates do not have.
            _ => {}
        }
    }

    fn body(&mut self, statements: &[ast::Stmt<'_>]) {
        statements.iter().for_each(|it| self.statement(it));
    }

    fn assign(&mut self, target: &ast::Expr<'_>, meaning: Meaning) {
        match target {
            ast::Expr::Var(it) => {
                if let Some(scope) = self.scopes.last_mut() {
                    scope.insert(it.id.into(), meaning);
                }
            }
            ast::Expr::List(it) => it.items.iter().for_each(|it| self.assign(it, Meaning::Anything)),
            _ => {}
        }
    }

    pub(crate) fn argument(&mut self, argument: &ast::CallArg<'_>) {
        match argument {
            ast::CallArg::Pos(it)
            | ast::CallArg::Kwarg(_, it)
            | ast::CallArg::PosSplat(it)
            | ast::CallArg::KwargSplat(it) => {
                drop(self.meaning(it));
            }
        }
    }

    /// One of many.
    pub(crate) fn item(&self, many: &Meaning) -> Meaning {
        if let Meaning::Import(import) = many { Meaning::Binding(import.clone()) } else { Meaning::Anything }
    }

    /// One of many, which must be there.
    pub(crate) fn item_at(&mut self, many: &Meaning, place: u64, name: &str) -> Meaning {
        if let Meaning::Import(import) = many
            && self.branches + self.loops == 0
        {
            let span = self.place(name);
            let last = self.reads.items.entry(import.clone()).or_insert((place, span));
            if place > last.0 {
                *last = (place, span);
            }
        }
        self.item(many)
    }

    /// What is asked, and becomes no part of the text.
    pub(crate) fn decide(&mut self, expression: &ast::Expr<'_>) {
        self.deciding += 1;
        self.meaning(expression);
        self.deciding -= 1;
    }

    /// What is there only under a condition.
    fn perhaps(&mut self, expression: &ast::Expr<'_>) -> Meaning {
        self.branches += 1;
        let meaning = self.meaning(expression);
        self.branches -= 1;
        meaning
    }

    /// Notes what may become part of the value whose text this is.
    pub(crate) fn note(&mut self, part: Part) {
        if let Some(value) = self.template.value.as_ref().filter(|_| self.deciding == 0) {
            self.reads.parts.entry(value.clone()).or_default().insert(part);
        }
    }

    /// Notes that all of something may become part of the text.
    pub(crate) fn whole(&mut self, meaning: &Meaning) {
        let parts: Vec<Part> = match meaning {
            Meaning::Parameters => self.component_type.parameters.keys().cloned().map(Part::Parameter).collect(),
            Meaning::Values => self.own.iter().filter_map(|it| Name::new(it).ok()).map(Part::Own).collect(),
            Meaning::Imports => self.component_type.imports.keys().map(|it| Part::Imported(it.clone(), None)).collect(),
            Meaning::Import(import) | Meaning::Binding(import) => vec![Part::Imported(import.clone(), None)],
            Meaning::Anything | Meaning::Text | Meaning::Number | Meaning::Boolean | Meaning::Data | Meaning::Group => {
                Vec::new()
            }
        };
        parts.into_iter().for_each(|part| self.note(part));
    }

    /// What is something else if it is not there.
    pub(crate) fn by_default(&mut self, expression: &ast::Expr<'_>) {
        match expression {
            ast::Expr::GetAttr(it) => {
                let whole = self.meaning(&it.expr);
                let asked = self.asked.insert(it.name.to_owned());
                self.part(&whole, it.name);
                if asked {
                    self.asked.remove(it.name);
                }
            }
            ast::Expr::GetItem(it) => {
                let whole = self.meaning(&it.expr);
                self.meaning(&it.subscript_expr);
                self.whole(&whole);
            }
            ast::Expr::Var(it) if !self.own.contains(it.id) && !ALWAYS.contains(&it.id) => {}
            other => {
                let meaning = self.meaning(other);
                self.whole(&meaning);
            }
        }
    }

    pub(crate) fn meaning(&mut self, expression: &ast::Expr<'_>) -> Meaning {
        match expression {
            ast::Expr::Var(it) => self.root(it.id),
            ast::Expr::GetAttr(it) => {
                let whole = self.meaning(&it.expr);
                self.part(&whole, it.name)
            }
            ast::Expr::GetItem(it) => {
                let whole = self.meaning(&it.expr);
                self.meaning(&it.subscript_expr);
                let key = it.subscript_expr.as_const();
                let named = key.as_ref().and_then(|key| key.as_str().map(str::to_owned));
                let place = key.and_then(|key| u64::try_from(key).ok());
                match (named, place) {
                    (Some(name), _) => self.part(&whole, &name),
                    (None, Some(place)) => self.item_at(&whole, place, last_name(&it.expr)),
                    (None, None) => self.item(&whole),
                }
            }
            ast::Expr::Filter(it) => self.filter(it),
            ast::Expr::Call(it) => {
                it.args.iter().for_each(|it| self.argument(it));
                match &it.expr {
                    ast::Expr::Var(function) => self.function(function.id, !it.args.is_empty()),
                    other => drop(self.meaning(other)),
                }
                Meaning::Anything
            }
            ast::Expr::Slice(it) => {
                [&it.start, &it.stop, &it.step].into_iter().flatten().for_each(|it| drop(self.meaning(it)));
                self.meaning(&it.expr)
            }
            ast::Expr::IfExpr(it) => {
                self.decide(&it.test_expr);
                let one = self.perhaps(&it.true_expr);
                let other = it.false_expr.as_ref().map(|it| self.perhaps(it));
                if other.is_none_or(|other| other == one) { one } else { Meaning::Anything }
            }
            // Whether something is there may be asked of anything.
            ast::Expr::Test(it) if ["defined", "undefined"].contains(&it.name) => {
                self.asked.insert(last_name(&it.expr).to_owned());
                Meaning::Anything
            }
            ast::Expr::Test(it) => {
                if !TESTS.contains(&it.name) {
                    self.wrong(it.name, format!("unknown test `{}`{}", it.name, hint(it.name, TESTS)));
                }
                self.decide(&it.expr);
                it.args.iter().for_each(|it| self.argument(it));
                Meaning::Anything
            }
            ast::Expr::UnaryOp(it) if matches!(it.op, ast::UnaryOpKind::Neg) => {
                let meaning = self.meaning(&it.expr);
                self.calculate(&[(&it.expr, meaning)])
            }
            ast::Expr::UnaryOp(it) => {
                self.decide(&it.expr);
                Meaning::Anything
            }
            // The right side is looked at only where the left one does not decide.
            ast::Expr::BinOp(it) if matches!(it.op, ast::BinOpKind::ScAnd | ast::BinOpKind::ScOr) => {
                self.meaning(&it.left);
                self.perhaps(&it.right);
                Meaning::Anything
            }
            ast::Expr::BinOp(it) if is_question(it.op) => {
                [&it.left, &it.right].into_iter().for_each(|it| self.decide(it));
                Meaning::Anything
            }
            ast::Expr::BinOp(it) => {
                let sides = [&it.left, &it.right].map(|side| (side, self.meaning(side)));
                let has_number = sides.iter().any(|(_, meaning)| *meaning == Meaning::Number);
                match it.op {
                    // Two texts are put together by it.
                    ast::BinOpKind::Add if !has_number => Meaning::Anything,
                    ast::BinOpKind::Add
                    | ast::BinOpKind::Sub
                    | ast::BinOpKind::Div
                    | ast::BinOpKind::FloorDiv
                    | ast::BinOpKind::Rem
                    | ast::BinOpKind::Pow => self.calculate(&sides),
                    _ => Meaning::Anything,
                }
            }
            ast::Expr::Compare(it) => {
                self.decide(&it.expr);
                it.ops.iter().for_each(|it| self.decide(&it.expr));
                Meaning::Anything
            }
            ast::Expr::List(it) => self.several(&it.items),
            ast::Expr::Map(it) => self.several(it.keys.iter().chain(&it.values)),
            ast::Expr::Const(it) => match it.value.kind() {
                ValueKind::Number => Meaning::Number,
                ValueKind::String => Meaning::Text,
                ValueKind::Bool => Meaning::Boolean,
                _ => Meaning::Anything,
            },
        }
    }

    /// What comes of a calculation; a text has no part in one.
    fn calculate(&mut self, sides: &[(&ast::Expr<'_>, Meaning)]) -> Meaning {
        for (side, _) in sides.iter().filter(|(_, meaning)| *meaning == Meaning::Text) {
            let name = match side {
                ast::Expr::Var(it) => it.id,
                ast::Expr::GetAttr(it) => it.name,
                _ => continue,
            };
            let says = format!(
                "the template calculates with `{name}`, which is a text (declare it with a type such as `integer`, or write `{name} | int`)"
            );
            self.wrong(name, says);
        }
        Meaning::Number
    }

    fn several<'e, 's: 'e>(&mut self, expressions: impl IntoIterator<Item = &'e ast::Expr<'s>>) -> Meaning {
        expressions.into_iter().for_each(|it| drop(self.meaning(it)));
        Meaning::Anything
    }
}

/// Whether an operator only says yes or no.
fn is_question(operator: ast::BinOpKind) -> bool {
    use ast::BinOpKind::{Eq, Gt, Gte, In, Lt, Lte, Ne};
    matches!(operator, Eq | Ne | Lt | Lte | Gt | Gte | In)
}

/// What an expression ends with, if it is a name or a part of something.
fn last_name<'a>(expression: &ast::Expr<'a>) -> &'a str {
    match expression {
        ast::Expr::Var(it) => it.id,
        ast::Expr::GetAttr(it) => it.name,
        ast::Expr::GetItem(it) => last_name(&it.expr),
        _ => "",
    }
}
