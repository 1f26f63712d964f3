//! What templates read, checked before anything runs: each name must be there when the template is rendered, and a text is
//! not calculated with.
//!
//! The template is parsed as the agent will parse it, and its expressions are followed: through `imports.db[0]`, loops,
//! `with` and `set`. Where it cannot be known what an expression is, nothing is said.

use crate::{
    component_type::ComponentType,
    nearest::hint,
    operations::{Stage, TemplateText},
    reading::Reading,
    source::{Sources, Span},
};
use minijinja::{
    machinery::{WhitespaceConfig, ast, parse},
    value::ValueKind,
};
use protocol::Name;
use std::collections::{BTreeMap, BTreeSet};
use vm_agent::sort::Sort;

/// The values that travel with each export, over all types that have one of that name; each with its sort where all say the
/// same.
pub(crate) type ExportedValues = BTreeMap<Name, BTreeMap<Name, Option<Sort>>>;

/// Functions that templates can call.
const FUNCTIONS: [&str; 4] = ["range", "dict", "debug", "namespace"];

/// What an expression is, as far as can be known.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Meaning {
    /// Nobody knows.
    Anything,
    Parameters,
    Values,
    Imports,
    /// All that is bound to an import.
    Import(Name),
    /// What came with one binding of an import.
    Binding(Name),
    Text,
    Number,
    Boolean,
}

impl From<Sort> for Meaning {
    fn from(sort: Sort) -> Self {
        match sort {
            Sort::Text | Sort::Secret => Self::Text,
            Sort::Integer | Sort::Number | Sort::Port => Self::Number,
            Sort::Boolean => Self::Boolean,
            Sort::Any => Self::Anything,
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
                let sort = Some(component_type.recipe.sorts.values.of(value));
                let before = *known.entry(value.clone()).or_insert(sort);
                known.insert(value.clone(), sort.filter(|_| before == sort));
            }
        }
    }
    values
}

/// Checks every template of a type. Returns what they read of imports: the import, and the value.
pub(crate) fn check(
    component_type: &ComponentType,
    exported: &ExportedValues,
    sources: &Sources,
    reading: &mut Reading,
) -> BTreeSet<(Name, Name)> {
    let mut reads = BTreeSet::new();
    let mut own: BTreeSet<String> = component_type.recipe.values.keys().map(Name::to_string).collect();
    own.extend(component_type.exports.values().flat_map(|it| &it.values).map(Name::to_string));
    for template in &component_type.templates {
        let parsed = parse(&template.text, "template", Default::default(), WhitespaceConfig::default());
        match parsed {
            Ok(parsed) => {
                let scopes = Vec::new();
                let reads = &mut reads;
                let mut walk = Walk { component_type, exported, own: &own, template, sources, reading, scopes, reads };
                walk.statement(&parsed);
            }
            Err(error) => {
                let detail = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
                reading.wrong(template.span, format!("no template: {detail}"));
            }
        }
    }
    reads
}

struct Walk<'a> {
    component_type: &'a ComponentType,
    exported: &'a ExportedValues,
    own: &'a BTreeSet<String>,
    template: &'a TemplateText,
    sources: &'a Sources,
    reading: &'a mut Reading,
    /// Names that the template itself makes, the innermost last.
    scopes: Vec<BTreeMap<String, Meaning>>,
    /// What is read of imports.
    reads: &'a mut BTreeSet<(Name, Name)>,
}

impl Walk<'_> {
    fn statement(&mut self, statement: &ast::Stmt<'_>) {
        match statement {
            ast::Stmt::Template(it) => {
                self.scopes.push(BTreeMap::new());
                self.body(&it.children);
            }
            ast::Stmt::EmitExpr(it) => drop(self.meaning(&it.expr)),
            ast::Stmt::ForLoop(it) => {
                let items = self.meaning(&it.iter);
                let item = self.item(&items);
                self.scopes.push(BTreeMap::from([("loop".to_owned(), Meaning::Anything)]));
                self.assign(&it.target, item);
                it.filter_expr.iter().for_each(|it| drop(self.meaning(it)));
                self.body(&it.body);
                self.scopes.pop();
                self.body(&it.else_body);
            }
            ast::Stmt::IfCond(it) => {
                self.meaning(&it.expr);
                self.body(&it.true_body);
                self.body(&it.false_body);
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
            ast::Stmt::FilterBlock(it) => self.body(&it.body),
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

    fn argument(&mut self, argument: &ast::CallArg<'_>) {
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
    fn item(&self, many: &Meaning) -> Meaning {
        if let Meaning::Import(import) = many { Meaning::Binding(import.clone()) } else { Meaning::Anything }
    }

    fn meaning(&mut self, expression: &ast::Expr<'_>) -> Meaning {
        match expression {
            ast::Expr::Var(it) => self.root(it.id, it.span()),
            ast::Expr::GetAttr(it) => {
                let whole = self.meaning(&it.expr);
                self.part(&whole, it.name)
            }
            ast::Expr::GetItem(it) => {
                let whole = self.meaning(&it.expr);
                self.meaning(&it.subscript_expr);
                let named = it.subscript_expr.as_const().and_then(|value| value.as_str().map(str::to_owned));
                match named {
                    Some(name) => self.part(&whole, &name),
                    None => self.item(&whole),
                }
            }
            ast::Expr::Filter(it) => {
                let meaning = it.expr.as_ref().map_or(Meaning::Anything, |it| self.meaning(it));
                it.args.iter().for_each(|it| self.argument(it));
                match it.name {
                    "first" | "last" | "min" | "max" => self.item(&meaning),
                    "list" | "reverse" | "sort" | "unique" | "selectattr" | "rejectattr" => meaning,
                    _ => Meaning::Anything,
                }
            }
            ast::Expr::Call(it) => {
                it.args.iter().for_each(|it| self.argument(it));
                match &it.expr {
                    ast::Expr::Var(function) => self.function(function.id),
                    other => drop(self.meaning(other)),
                }
                Meaning::Anything
            }
            ast::Expr::Slice(it) => {
                [&it.start, &it.stop, &it.step].into_iter().flatten().for_each(|it| drop(self.meaning(it)));
                self.meaning(&it.expr)
            }
            ast::Expr::IfExpr(it) => {
                self.meaning(&it.test_expr);
                let one = self.meaning(&it.true_expr);
                let other = it.false_expr.as_ref().map(|it| self.meaning(it));
                if other.is_none_or(|other| other == one) { one } else { Meaning::Anything }
            }
            // Whether something is there may be asked of anything.
            ast::Expr::Test(it) if ["defined", "undefined"].contains(&it.name) => Meaning::Anything,
            ast::Expr::Test(it) => {
                self.meaning(&it.expr);
                it.args.iter().for_each(|it| self.argument(it));
                Meaning::Anything
            }
            ast::Expr::UnaryOp(it) if matches!(it.op, ast::UnaryOpKind::Neg) => {
                let meaning = self.meaning(&it.expr);
                self.calculate(&[(&it.expr, meaning)])
            }
            ast::Expr::UnaryOp(it) => self.several([&it.expr]),
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
                self.meaning(&it.expr);
                self.several(it.ops.iter().map(|it| &it.expr))
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
                "the template calculates with `{name}`, which is a text (where it comes from, give it a type such as `integer`; or write `{name} | int`)"
            );
            self.wrong(name, says);
        }
        Meaning::Number
    }

    fn several<'e, 's: 'e>(&mut self, expressions: impl IntoIterator<Item = &'e ast::Expr<'s>>) -> Meaning {
        expressions.into_iter().for_each(|it| drop(self.meaning(it)));
        Meaning::Anything
    }

    fn root(&mut self, name: &str, _: minijinja::machinery::Span) -> Meaning {
        if let Some(meaning) = self.scopes.iter().rev().find_map(|scope| scope.get(name)) {
            return meaning.clone();
        }
        match name {
            "imports" => Meaning::Imports,
            "parameters" => Meaning::Parameters,
            "values" => Meaning::Values,
            "name" | "host" | "directory" => Meaning::Text,
            _ if self.own.contains(name) => self.own_value(name),
            // A command may write a value that no export hands on.
            _ if self.writes_values() => Meaning::Anything,
            _ => {
                let meant = if self.component_type.parameters.contains_key(name) {
                    format!(" (did you mean `parameters.{name}`?)")
                } else if self.component_type.imports.keys().any(|it| it.as_str() == name) {
                    format!(" (did you mean `imports.{name}[0]`?)")
                } else {
                    let known = ["imports", "parameters", "values", "name", "host", "directory"];
                    hint(name, known.into_iter().chain(self.own.iter().map(String::as_str)))
                };
                self.wrong(name, format!("the template reads `{name}`, which is not there{meant}"));
                Meaning::Anything
            }
        }
    }

    fn own_value(&self, name: &str) -> Meaning {
        let sorts = &self.component_type.recipe.sorts.values;
        Name::new(name).map_or(Meaning::Anything, |name| sorts.of(&name).into())
    }

    fn writes_values(&self) -> bool {
        let operations = &self.component_type.recipe.operations;
        operations.install.is_some()
            || operations.announce.is_some()
            || matches!(operations.start, Some(vm_agent::recipe::Start::Script(_)))
    }

    fn function(&mut self, name: &str) {
        let ports = matches!(self.template.stage, Stage::EarlyValue | Stage::LateValue);
        if name == "free_port" && !ports {
            self.wrong(name, "`free_port()` can be asked for in `values` only (name the value here)");
        } else if name != "free_port"
            && !FUNCTIONS.contains(&name)
            && !self.scopes.iter().any(|it| it.contains_key(name))
        {
            let known = FUNCTIONS.into_iter().chain(["free_port"]);
            self.wrong(name, format!("there is no function `{name}`{}", hint(name, known)));
        }
    }

    fn part(&mut self, whole: &Meaning, name: &str) -> Meaning {
        match whole {
            Meaning::Anything | Meaning::Text | Meaning::Number | Meaning::Boolean => {}
            Meaning::Parameters => {
                let Some(parameter) = self.component_type.parameters.get(name) else {
                    let right = hint(name, self.component_type.parameters.keys().map(String::as_str));
                    let says = format!("the template reads `parameters.{name}`, and there is no such parameter{right}");
                    self.wrong(name, says);
                    return Meaning::Anything;
                };
                // A default that is written without quotes stays what it is.
                let plain = parameter.default.as_ref().is_some_and(|it| !it.is_string());
                return if plain && parameter.sort == Sort::Text { Meaning::Anything } else { parameter.sort.into() };
            }
            Meaning::Values => {
                if self.own.contains(name) {
                    return self.own_value(name);
                }
                if !self.writes_values() {
                    let right = hint(name, self.own.iter().map(String::as_str));
                    self.wrong(name, format!("the template reads `values.{name}`, and there is no such value{right}"));
                }
            }
            Meaning::Imports => {
                let imports = &self.component_type.imports;
                if matches!(self.template.stage, Stage::Prepare | Stage::EarlyValue) {
                    self.wrong(name, format!("the template reads `imports.{name}` before anything is bound (imports are known from `configure` on, and in values `at: start`)"));
                    return Meaning::Anything;
                }
                match imports.keys().find(|it| it.as_str() == name) {
                    Some(import) => return Meaning::Import(import.clone()),
                    None => {
                        let right = hint(name, imports.keys().map(Name::as_str));
                        self.wrong(
                            name,
                            format!("the template reads `imports.{name}`, and there is no such import{right}"),
                        );
                    }
                }
            }
            Meaning::Import(import) => {
                self.wrong(
                    name,
                    format!(
                        "`imports.{import}` is a list (write `imports.{import}[0].{name}`, or go through it with `for`)"
                    ),
                );
            }
            Meaning::Binding(import) => {
                let Some(export) = self.component_type.imports.get(import).map(|it| it.export.clone()) else {
                    return Meaning::Anything;
                };
                let value = Name::new(name).ok();
                self.reads.extend(value.clone().map(|value| (import.clone(), value)));
                // Whoever exports it may be in another application.
                let Some(values) = self.exported.get(&export) else { return Meaning::Anything };
                match value.and_then(|value| values.get(&value)) {
                    Some(sort) => return sort.map_or(Meaning::Anything, Meaning::from),
                    None => {
                        let right = hint(name, values.keys().map(Name::as_str));
                        let says = format!(
                            "the template reads `{name}` of import `{import}`, but export `{export}` has no such value{right}"
                        );
                        self.wrong(name, says);
                    }
                }
            }
        }
        Meaning::Anything
    }

    /// Points at the name inside of the template if it is found there, else at the template.
    fn wrong(&mut self, name: &str, says: impl Into<String>) {
        let Span { file, start, .. } = self.template.span;
        let text = self.sources.slice(self.template.span);
        let is_letter = |it: char| it.is_alphanumeric() || it == '_';
        let mut inside = text.match_indices(name).filter(|(at, _)| {
            let (before, after) = (&text[..*at], &text[at + name.len()..]);
            let open = before.rfind("{{").max(before.rfind("{%"));
            let closed = before.rfind("}}").max(before.rfind("%}"));
            !before.ends_with(is_letter) && !after.starts_with(is_letter) && open.is_some() && open > closed
        });
        let found = inside.next().map(|(at, _)| Span { file, start: start + at, end: start + at + name.len() });
        self.reading.wrong(found.unwrap_or(self.template.span), says);
    }
}
