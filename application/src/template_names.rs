//! The meaning of names in templates: of the component itself, of its bindings, and of functions.

use crate::{
    nearest::{hint, nearest},
    operations::Stage,
    source::Span,
    template::{Meaning, Walk},
    template_reads::{ImportRead, Part},
    template_words::{FILTERS, FUNCTIONS},
};
use minijinja::machinery::ast;
use protocol::Name;
use recipe::{At, Start, value_type::ValueType};

/// Names that always exist, whatever the component's own values are called.
pub(crate) const ALWAYS: [&str; 6] = ["imports", "parameters", "values", "name", "host", "directory"];
/// Names that exist unless a value of the component is called so.
const USUALLY: [&str; 4] = ["key", "index", "group", "data"];

impl Walk<'_> {
    pub(crate) fn filter(&mut self, it: &ast::Filter<'_>) -> Meaning {
        if !FILTERS.contains(&it.name) {
            self.wrong(it.name, format!("unknown filter `{}`{}", it.name, hint(it.name, FILTERS)));
        }
        let is_default = ["default", "d"].contains(&it.name);
        let meaning = match &it.expr {
            Some(expression) if is_default => {
                self.by_default(expression);
                Meaning::Anything
            }
            // How long something is does not say what it is.
            Some(expression) if ["length", "count"].contains(&it.name) => {
                self.decide(expression);
                Meaning::Anything
            }
            Some(expression) => self.meaning(expression),
            None => Meaning::Anything,
        };
        it.args.iter().for_each(|it| self.argument(it));
        let attribute = it.args.iter().find_map(|argument| match argument {
            ast::CallArg::Kwarg("attribute", ast::Expr::Const(it)) => it.value.as_str().map(str::to_owned),
            _ => None,
        });
        match (it.name, attribute) {
            ("map" | "sum", Some(attribute)) => {
                let item = self.item(&meaning);
                self.part(&item, &attribute);
                Meaning::Anything
            }
            ("first" | "last", _) => self.item_at(&meaning, 0, it.name),
            ("min" | "max", _) => self.item(&meaning),
            ("list" | "reverse" | "sort" | "unique" | "selectattr" | "rejectattr", _) => meaning,
            ("length" | "count", _) => Meaning::Number,
            _ => {
                self.whole(&meaning);
                Meaning::Anything
            }
        }
    }

    pub(crate) fn root(&mut self, name: &str) -> Meaning {
        if let Some(meaning) = self.scopes.iter().rev().find_map(|scope| scope.get(name)) {
            return meaning.clone();
        }
        match name {
            "imports" => Meaning::Imports,
            "parameters" => Meaning::Parameters,
            "values" => Meaning::Values,
            "name" | "host" | "directory" => Meaning::Text,
            _ if self.own.contains(name) => self.own_value(name),
            "key" => Meaning::Text,
            "index" => Meaning::Number,
            "group" => Meaning::Group,
            "data" => Meaning::Data,
            _ if self.asked.contains(name) => Meaning::Anything,
            _ => {
                let known = ALWAYS.into_iter().chain(USUALLY).chain(self.own.iter().map(String::as_str));
                // A command may write a value that no export passes on; but a misspelling looks the same.
                let writes = self.writes_values();
                let also = if writes { format!(" If a command writes it, use `values.{name}`") } else { String::new() };
                let meant = if self.component_type.parameters.contains_key(name) {
                    format!(" (did you mean `parameters.{name}`?{also})")
                } else if self.component_type.imports.keys().any(|it| it.as_str() == name) {
                    format!(" (did you mean `imports.{name}[0]`?{also})")
                } else if writes {
                    let Some(near) = nearest(name, known) else { return Meaning::Anything };
                    format!(" (did you mean `{near}`?{also})")
                } else {
                    hint(name, known)
                };
                self.wrong(name, format!("the template reads the unknown name `{name}`{meant}"));
                Meaning::Anything
            }
        }
    }

    /// A value of the component itself, which must have been chosen by then.
    pub(crate) fn own_value(&mut self, text: &str) -> Meaning {
        let Ok(name) = Name::new(text) else { return Meaning::Anything };
        self.note(Part::Own(name.clone()));
        let chosen = self.component_type.recipe.values.get(&name);
        let is_early = matches!(self.template.stage, Stage::Prepare | Stage::EarlyValue);
        match chosen {
            Some(value) if value.at == At::Start && is_early => {
                let says =
                    format!("the template reads `{text}` before it is chosen, which is at each start (`at: start`)");
                self.wrong(text, says);
            }
            None if self.template.stage == Stage::EarlyValue => {
                let says =
                    format!("the template reads `{text}` before any command has written it (add `at: start` here)");
                self.wrong(text, says);
            }
            Some(_) if self.branches == 0 => {
                if let Some(value) = &self.template.value {
                    self.reads.needs.entry(value.clone()).or_default().insert(name.clone());
                }
            }
            _ => {}
        }
        self.component_type.recipe.types.values.of(&name).into()
    }

    fn writes_values(&self) -> bool {
        let operations = &self.component_type.recipe.operations;
        operations.install.is_some()
            || operations.announce.is_some()
            || matches!(operations.start, Some(Start::Script(_)))
    }

    pub(crate) fn function(&mut self, name: &str, has_arguments: bool) {
        let ports = matches!(self.template.stage, Stage::EarlyValue | Stage::LateValue);
        if name == "free_port" && !ports {
            self.wrong(name, "`free_port()` is available in `values` only (define a value, and use it here)");
        } else if name == "free_port" && has_arguments {
            self.wrong(name, "`free_port()` takes no arguments");
        } else if name != "free_port"
            && !FUNCTIONS.contains(&name)
            && !self.scopes.iter().any(|it| it.contains_key(name))
        {
            let known = FUNCTIONS.into_iter().chain(["free_port"]);
            self.wrong(name, format!("unknown function `{name}`{}", hint(name, known)));
        }
    }

    pub(crate) fn part(&mut self, whole: &Meaning, name: &str) -> Meaning {
        match whole {
            Meaning::Anything | Meaning::Text | Meaning::Number | Meaning::Boolean => {}
            Meaning::Data => {
                let directories = &self.component_type.recipe.data.directories;
                if !directories.iter().any(|it| it.as_str() == name) {
                    let right = match directories.is_empty() {
                        true => format!(" (declare it: `data: {name}`)"),
                        false => hint(name, directories.iter().map(Name::as_str)),
                    };
                    self.wrong(name, format!("the template reads the unknown data directory `data.{name}`{right}"));
                }
                return Meaning::Text;
            }
            Meaning::Group => {
                if name == "count" {
                    self.reads.group_count = true;
                } else {
                    self.wrong(name, format!("the template reads `group.{name}`, and a group has only a `count`"));
                }
                return Meaning::Number;
            }
            Meaning::Parameters => {
                let Some(parameter) = self.component_type.parameters.get(name) else {
                    let right = hint(name, self.component_type.parameters.keys().map(String::as_str));
                    let says = format!("the template reads the unknown parameter `parameters.{name}`{right}");
                    self.wrong(name, says);
                    return Meaning::Anything;
                };
                self.note(Part::Parameter(name.to_owned()));
                // A default that is written without quotes stays what it is.
                let plain = parameter.default.as_ref().is_some_and(|it| !it.is_string());
                return if plain && parameter.value_type == ValueType::Text {
                    Meaning::Anything
                } else {
                    parameter.value_type.into()
                };
            }
            Meaning::Values => {
                if self.own.contains(name) {
                    return self.own_value(name);
                }
                if !self.writes_values() && !self.asked.contains(name) {
                    let right = hint(name, self.own.iter().map(String::as_str));
                    self.wrong(name, format!("the template reads the unknown value `values.{name}`{right}"));
                }
            }
            Meaning::Imports => {
                let imports = &self.component_type.imports;
                if matches!(self.template.stage, Stage::Prepare | Stage::EarlyValue) {
                    self.wrong(name, format!("the template reads `imports.{name}` before anything is bound (imports are available from `configure` on, and in values with `at: start`)"));
                    return Meaning::Anything;
                }
                match imports.keys().find(|it| it.as_str() == name) {
                    Some(import) => return Meaning::Import(import.clone()),
                    None => {
                        let right = hint(name, imports.keys().map(Name::as_str));
                        self.wrong(name, format!("the template reads the unknown import `imports.{name}`{right}"));
                    }
                }
            }
            Meaning::Import(import) => {
                self.wrong(
                    name,
                    format!(
                        "`imports.{import}` is a list (write `imports.{import}[0].{name}`, or loop over it with `for`)"
                    ),
                );
            }
            Meaning::Binding(import) => {
                let Some(export) = self.component_type.imports.get(import).map(|it| it.export.clone()) else {
                    return Meaning::Anything;
                };
                let value = Name::new(name).ok();
                let known = value.as_ref().and_then(|value| self.exported.get(&export)?.get(value));
                if let Some(value) = &value {
                    self.note(Part::Imported(import.clone(), Some(value.clone())));
                }
                match (known.copied(), self.exported.get(&export)) {
                    (Some(value_type), _) => {
                        self.import_read(import, value);
                        return value_type.map_or(Meaning::Anything, Meaning::from);
                    }
                    // The provider may be in another application.
                    (None, None) => self.import_read(import, value),
                    (None, Some(_)) if self.asked.contains(name) => {}
                    (None, Some(values)) => {
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

    /// Notes that a value of an import is read.
    fn import_read(&mut self, import: &Name, value: Option<Name>) {
        let Some(value) = value else { return };
        let in_any_case = self.branches == 0 && !self.asked.contains(value.as_str());
        let read = ImportRead { span: self.place(value.as_str()), in_any_case };
        let known = self.reads.imported.entry((import.clone(), value)).or_insert(read);
        if in_any_case && !known.in_any_case {
            *known = read;
        }
    }

    pub(crate) fn wrong(&mut self, name: &str, says: impl Into<String>) {
        let place = self.place(name);
        self.reading.wrong(place, says);
    }

    /// The name inside of the template if it is found there, else the template.
    pub(crate) fn place(&self, name: &str) -> Span {
        if name.is_empty() {
            return self.template.span;
        }
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
        found.unwrap_or(self.template.span)
    }
}
