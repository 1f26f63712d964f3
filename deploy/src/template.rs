//! What templates read, checked before anything runs: each name must be there when the template is rendered.
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
use minijinja::machinery::{WhitespaceConfig, ast, parse};
use protocol::Name;
use std::collections::{BTreeMap, BTreeSet};

/// The values that travel with each export, over all types that have one of that name.
pub(crate) type ExportedValues = BTreeMap<Name, BTreeSet<Name>>;

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
}

/// The values of each export.
pub(crate) fn exported_values(types: &BTreeMap<String, (Span, ComponentType)>) -> ExportedValues {
    let mut values = ExportedValues::new();
    for (name, export) in types.values().flat_map(|(_, it)| &it.exports) {
        values.entry(name.clone()).or_default().extend(export.values.iter().cloned());
    }
    values
}

/// Checks every template of a type.
pub(crate) fn check(
    component_type: &ComponentType,
    exported: &ExportedValues,
    sources: &Sources,
    reading: &mut Reading,
) {
    let mut own: BTreeSet<String> = component_type.recipe.values.keys().map(Name::to_string).collect();
    own.extend(component_type.exports.values().flat_map(|it| &it.values).map(Name::to_string));
    for template in &component_type.templates {
        let parsed = parse(&template.text, "template", Default::default(), WhitespaceConfig::default());
        match parsed {
            Ok(parsed) => {
                let mut walk =
                    Walk { component_type, exported, own: &own, template, sources, reading, scopes: Vec::new() };
                walk.statement(&parsed);
            }
            Err(error) => {
                let detail = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
                reading.wrong(template.span, format!("no template: {detail}"));
            }
        }
    }
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
            ast::Expr::UnaryOp(it) => self.several([&it.expr]),
            ast::Expr::BinOp(it) => self.several([&it.left, &it.right]),
            ast::Expr::Compare(it) => {
                self.meaning(&it.expr);
                self.several(it.ops.iter().map(|it| &it.expr))
            }
            ast::Expr::List(it) => self.several(&it.items),
            ast::Expr::Map(it) => self.several(it.keys.iter().chain(&it.values)),
            ast::Expr::Const(_) => Meaning::Anything,
        }
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
            "name" | "host" | "directory" => Meaning::Anything,
            _ if self.own.contains(name) => Meaning::Anything,
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
            Meaning::Anything => {}
            Meaning::Parameters => {
                let known: Vec<&str> = self.component_type.parameters.keys().map(String::as_str).collect();
                if !known.contains(&name) {
                    self.wrong(
                        name,
                        format!(
                            "the template reads `parameters.{name}`, and there is no such parameter{}",
                            hint(name, known)
                        ),
                    );
                }
            }
            Meaning::Values => {
                if !self.own.contains(name) && !self.writes_values() {
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
                // Whoever exports it may be in another application.
                let Some(values) = self.exported.get(&export) else { return Meaning::Anything };
                if !values.iter().any(|it| it.as_str() == name) {
                    let right = hint(name, values.iter().map(Name::as_str));
                    let says = format!(
                        "the template reads `{name}` of import `{import}`, but export `{export}` has no such value{right}"
                    );
                    self.wrong(name, says);
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
