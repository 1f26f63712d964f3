//! The part of a type that becomes a recipe: values, environment, files and operations.

use crate::{
    component_type::entries,
    driver, kept_data,
    nearest::nearest,
    node::{Content, Key, Node},
    paths,
    reading::{Fields, Reading},
    restrictions,
    restrictions::Restrictions,
    source::Span,
};
use protocol::Name;
use recipe::{
    At, Command, CommandLine, HandedOut, Operations, Rebind, Recipe, RenderedFile, Signal, Start, Stop,
    value_type::ValueType,
};
use std::collections::BTreeMap;

pub(crate) const OPERATION_FIELDS: &[&str] =
    &["install", "announce", "configure", "start", "identify", "check", "rebind", "reload", "stop", "purge"];
pub(crate) const COMMAND_FIELDS: &[&str] = &["run", "time-limit"];
pub(crate) const CHECK_FIELDS: &[&str] = &[
    "tcp",
    "host",
    "http",
    "command",
    "interval",
    "ready-within",
    "attempt",
    "every",
    "liveness",
    "failures",
    "listener",
];
pub(crate) const REBIND_FIELDS: &[&str] = &["command", "signal", "time-limit"];
/// What stands for `rebind` where a restart tells a component of new bindings.
pub(crate) const RESTART: &str = "restart";
pub(crate) const STOP_FIELDS: &[&str] = &["command", "signal", "grace", "time-limit"];
pub(crate) const VALUE_FIELDS: &[&str] = &["template", "at"];
pub(crate) const FILE_TEMPLATE_FIELDS: &[&str] = &["template", "from", "mode"];
pub(crate) const SIGNALS: [(&str, Signal); 7] = [
    ("HUP", Signal::Hup),
    ("INT", Signal::Int),
    ("QUIT", Signal::Quit),
    ("TERM", Signal::Term),
    ("USR1", Signal::Usr1),
    ("USR2", Signal::Usr2),
    ("KILL", Signal::Kill),
];
/// Default time limit of a command.
pub(crate) const TIME_LIMIT_MS: u64 = 60_000;

/// A template, its position, and what it can see there.
#[derive(Clone, Debug)]
pub(crate) struct TemplateText {
    pub(crate) text: String,
    pub(crate) span: Span,
    pub(crate) stage: Stage,
    /// The value that it is the text of, if it is one.
    pub(crate) value: Option<Name>,
}

/// When a template is rendered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// When the component is known, before its imports are.
    Prepare,
    /// For a value that is announced: the same, and ports are available.
    EarlyValue,
    /// For a value that is chosen at each start.
    LateValue,
    /// In a run: imports are known.
    Run,
}

/// Opens a file that is named at a position; returns its text, and where that is.
pub(crate) type Open<'a> = dyn FnMut(Span, &str) -> Result<(String, Span), String> + 'a;

/// Reads the recipe and its templates. `exported` are the values that travel to others.
pub(crate) fn read(
    fields: &Fields<'_>,
    exported: &BTreeMap<Name, (ValueType, Span)>,
    reading: &mut Reading,
    open: &mut Open<'_>,
) -> (Recipe, Vec<TemplateText>) {
    let mut builder = Builder { reading, templates: Vec::new() };
    let mut recipe = Recipe::default();
    for (key, node) in entries(builder.reading, fields.get("values"), "`values`") {
        let name = builder.reading.name(&key.text, key.span);
        let value = builder.value(node);
        if let (Some(_), Some(template)) = (&value, builder.templates.last_mut()) {
            template.value.clone_from(&name);
        }
        recipe.values.extend(name.zip(value));
    }
    for (key, node) in entries(builder.reading, fields.get("environment"), "`environment`") {
        let is_variable = !key.text.is_empty() && key.text.chars().all(|it| it.is_ascii_alphanumeric() || it == '_');
        if !is_variable {
            builder.reading.wrong(
                key.span,
                format!("`{}` is not a valid name for an environment variable", key.text.escape_debug()),
            );
        }
        let text = builder.template(node, "an environment variable", Stage::Run);
        recipe.environment.extend(text.map(|text| (key.text.clone(), text)));
    }
    for (key, node) in entries(builder.reading, fields.get("files"), "`files`") {
        recipe.files.extend(builder.file(key, node, open));
    }
    paths::check(fields.get("files").map(Node::entries).unwrap_or_default(), builder.reading);
    let kept = kept_data::read(fields.get("data"), builder.reading);
    recipe.data = kept.data;
    let operations_read =
        fields.get("operations").map(|node| builder.reading.fields(node, "`operations`", OPERATION_FIELDS));
    let restrictions = restrictions::read(fields, builder.reading);
    if let Some(fields) = &operations_read {
        builder.operations(fields, &restrictions, &kept.mounts, &mut recipe);
    }
    // The address of a component is known wherever it runs.
    let host = Name::new("host").expect("it is made of letters");
    if exported.contains_key(&host) {
        recipe.values.entry(host).or_insert(HandedOut { template: "{{ host }}".into(), at: At::Prepare });
    }
    let operations = &recipe.operations;
    let writes = operations.install.is_some()
        || operations.announce.is_some()
        || matches!(operations.start, Some(Start::Script(_)));
    // It may be what could not be read.
    let is_lost = |value: &Name| {
        let is_there = fields.get("values").is_some_and(|it| it.get(value.as_str()).is_some());
        is_there
            || fields.may_have(&["values", "operations"])
            || operations_read.as_ref().is_some_and(|it| it.may_have(&["install", "announce", "start"]))
    };
    let nowhere = |value: &Name| !writes && !recipe.values.contains_key(value) && !is_lost(value);
    for (value, (_, span)) in exported.iter().filter(|(value, _)| nowhere(value)) {
        let right = match nearest(value.as_str(), recipe.values.keys().map(Name::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "add it to `values`, or write it to $HOLDFAST_VALUES in `announce`".into(),
        };
        let says = format!("an export passes on `{value}`, but nothing defines it ({right})");
        builder.reading.wrong(*span, says);
    }
    (recipe, builder.templates)
}

pub(crate) struct Builder<'a> {
    pub(crate) reading: &'a mut Reading,
    templates: Vec<TemplateText>,
}

impl Builder<'_> {
    pub(crate) fn template(&mut self, node: &Node, what: &str, stage: Stage) -> Option<String> {
        let text = match &node.content {
            Content::Scalar { text, .. } => text.clone(),
            _ => self.reading.text(node, what)?.to_owned(),
        };
        self.templates.push(TemplateText { text: text.clone(), span: node.span, stage, value: None });
        Some(text)
    }

    fn value(&mut self, node: &Node) -> Option<HandedOut> {
        if !matches!(node.content, Content::Map { .. }) {
            return Some(HandedOut { template: self.template(node, "a value", Stage::EarlyValue)?, at: At::Prepare });
        }
        let fields = self.reading.fields(node, "a value", VALUE_FIELDS);
        let at = fields.get("at").map_or(Some(At::Prepare), |node| {
            self.reading.one_of(
                node,
                "the time at which a value is chosen",
                &[("prepare", At::Prepare), ("start", At::Start)],
            )
        })?;
        let stage = if at == At::Prepare { Stage::EarlyValue } else { Stage::LateValue };
        let Some(template) = fields.get("template") else {
            self.reading.missing(&fields, &["template"], node.span, "a value needs a `template`");
            return None;
        };
        Some(HandedOut { template: self.template(template, "a template", stage)?, at })
    }

    fn file(&mut self, key: &Key, node: &Node, open: &mut Open<'_>) -> Option<RenderedFile> {
        // Where no mode is given, it depends on whether a secret is in the file; see `file_mode`.
        let (path, mode) = (key.text.as_str(), String::new());
        self.templates.push(TemplateText { text: path.into(), span: key.span, stage: Stage::Run, value: None });
        if !matches!(node.content, Content::Map { .. }) {
            return Some(RenderedFile {
                path: path.into(),
                template: self.template(node, "a file", Stage::Run)?,
                mode,
            });
        }
        let fields = self.reading.fields(node, "a file", FILE_TEMPLATE_FIELDS);
        let template = match (fields.get("template"), fields.get("from")) {
            (Some(template), None) => self.template(template, "a template", Stage::Run),
            (None, Some(from)) => {
                let name = self.reading.text(from, "a file's name")?;
                match open(from.span, name) {
                    Ok((text, span)) => {
                        let stage = Stage::Run;
                        self.templates.push(TemplateText { text: text.clone(), span, stage, value: None });
                        Some(text)
                    }
                    Err(why) => {
                        self.reading.wrong(from.span, format!("{name} cannot be read: {why}"));
                        None
                    }
                }
            }
            _ => {
                let says = "a file needs exactly one of `template` and `from`";
                self.reading.not_one_of(&fields, &["template", "from"], says);
                None
            }
        };
        let given = fields.get("mode").and_then(|node| Some((node.span, self.reading.text(node, "a mode")?)));
        let file =
            RenderedFile { path: path.into(), template: template?, mode: given.map_or(mode, |(_, mode)| mode.into()) };
        if let Some((span, mode)) = given.filter(|_| file.permissions().is_none()) {
            self.reading.wrong(span, format!("`{}` is not an octal mode such as \"0600\"", mode.escape_debug()));
        }
        Some(file)
    }

    /// Fills in the operations of a recipe, and the consequences of how it is started.
    fn operations(
        &mut self,
        fields: &Fields<'_>,
        restrictions: &Restrictions,
        data: &[kept_data::Mount],
        recipe: &mut Recipe,
    ) {
        let mut stop = fields.get("stop").map(|node| self.stop(node)).unwrap_or_default();
        let environment: Vec<String> = recipe.environment.keys().cloned().collect();
        let driver = fields.get("start").and_then(|node| {
            let around = driver::Surroundings { stop: &stop, environment: &environment, restrictions, data };
            driver::read(self, node, &around)
        });
        let mut operations = Operations {
            install: fields.get("install").and_then(|node| self.command(node, Stage::Prepare)),
            announce: fields.get("announce").and_then(|node| self.command(node, Stage::Prepare)),
            configure: fields.get("configure").and_then(|node| self.command(node, Stage::Run)),
            start: None,
            identify: fields.get("identify").and_then(|node| self.command(node, Stage::Run)),
            check: fields.get("check").and_then(|node| self.check(node)),
            rebind: fields.get("rebind").and_then(|node| self.rebind(node, "rebind")),
            reload: fields.get("reload").and_then(|node| self.rebind(node, "reload")),
            stop: Stop::default(),
            purge: fields.get("purge").and_then(|node| self.command(node, Stage::Prepare)),
        };
        if let Some(driver) = driver {
            stop.command = stop.command.or(driver.stop);
            operations.identify = operations.identify.or(driver.identify);
            operations.check = operations.check.or(driver.check);
            operations.purge = operations.purge.or(driver.purge);
            if let (Start::Script(_), None, Some((key, _))) = (&driver.start, &stop.command, fields.entry("start")) {
                let says = "a component that starts with a script needs a stop command (`stop: { command: … }`)";
                self.reading.wrong(key.span, says);
            }
            for (name, told) in [("rebind", &operations.rebind), ("reload", &operations.reload)] {
                if let (Start::Script(_), Some(Rebind::Signal(_)), Some((key, _))) =
                    (&driver.start, told, fields.entry(name))
                {
                    let says = format!("there is no process to send a signal to (use `{name}: {{ command: … }}`)");
                    self.reading.wrong(key.span, says);
                }
            }
            operations.start = Some(driver.start);
            if !driver.restricts {
                (recipe.limits, recipe.confinement) = (restrictions.limits, restrictions.confinement.clone());
            }
            if let Some(template) = driver.container {
                let name = Name::new(driver::CONTAINER).expect("it is made of letters");
                recipe.values.entry(name).or_insert(HandedOut { template: template.into(), at: At::Prepare });
            }
        }
        operations.stop = stop;
        recipe.operations = operations;
    }

    /// A command: a text, a list of words, or a map that says more.
    fn command(&mut self, node: &Node, stage: Stage) -> Option<Command> {
        if !matches!(node.content, Content::Map { .. }) {
            return Some(Command { run: self.line(node, stage)?, time_limit_ms: TIME_LIMIT_MS });
        }
        let fields = self.reading.fields(node, "a command", COMMAND_FIELDS);
        let limit = self.time(&fields, "time-limit", TIME_LIMIT_MS);
        let Some(run) = fields.get("run") else {
            self.reading.missing(&fields, &["run"], node.span, "a command needs `run`");
            return None;
        };
        let run = self.line(run, stage);
        Some(Command { run: run?, time_limit_ms: limit? })
    }

    pub(crate) fn line(&mut self, node: &Node, stage: Stage) -> Option<CommandLine> {
        let empty = match &node.content {
            Content::List { items, .. } => items.is_empty(),
            Content::Scalar { text, .. } => text.trim().is_empty(),
            Content::Map { .. } => false,
        };
        if empty {
            self.reading.wrong(node.span, "the command is empty");
            return None;
        }
        let Content::List { items, .. } = &node.content else {
            return Some(CommandLine::Shell(self.template(node, "a command", stage)?));
        };
        let words = items.iter().enumerate().map(|(place, node)| match place {
            0 => self.naming(node, "a program", stage),
            _ => self.template(node, "a word of a command", stage),
        });
        let words: Vec<_> = words.collect();
        Some(CommandLine::Program(words.into_iter().collect::<Option<_>>()?))
    }

    /// A time within which something must happen: it cannot be zero.
    pub(crate) fn time(&mut self, fields: &Fields<'_>, name: &str, usual: u64) -> Option<u64> {
        let Some(node) = fields.get(name) else { return Some(usual) };
        let time = self.reading.duration_ms(node, &format!("`{name}`"))?;
        if time == 0 {
            self.reading.wrong(node.span, format!("`{name}` must be longer than zero"));
        }
        Some(time)
    }

    /// A template that names something, and so cannot be empty.
    pub(crate) fn naming(&mut self, node: &Node, what: &str, stage: Stage) -> Option<String> {
        let text = self.template(node, what, stage)?;
        if text.trim().is_empty() || node.is_nothing() {
            self.reading.wrong(node.span, format!("{what} must be a text, not {}", node.in_words()));
        }
        Some(text)
    }

    /// Reads `rebind` or `reload`.
    fn rebind(&mut self, node: &Node, name: &str) -> Option<Rebind> {
        if let Content::Scalar { text, .. } = &node.content
            && text == RESTART
            && name == "rebind"
        {
            return Some(Rebind::Restart);
        }
        let fields = self.reading.fields(node, &format!("`{name}`"), REBIND_FIELDS);
        let limit = self.time(&fields, "time-limit", TIME_LIMIT_MS);
        match (fields.get("command"), fields.get("signal")) {
            (Some(command), None) => {
                let run = self.line(command, Stage::Run);
                Some(Rebind::Command(Command { run: run?, time_limit_ms: limit? }))
            }
            (None, Some(signal)) => {
                self.without_command(&fields);
                Some(Rebind::Signal(self.reading.one_of(signal, "a signal", &SIGNALS)?))
            }
            _ => {
                let says = format!("`{name}` needs exactly one of `command` and `signal`");
                self.reading.not_one_of(&fields, &["command", "signal"], &says);
                None
            }
        }
    }

    /// Without a command there is nothing to limit.
    fn without_command(&mut self, fields: &Fields<'_>) {
        if let Some((key, _)) = fields.entry("time-limit") {
            self.reading.wrong(key.span, "`time-limit` applies to a `command`, and there is none");
        }
    }

    fn stop(&mut self, node: &Node) -> Stop {
        let usual = Stop::default();
        let fields = self.reading.fields(node, "`stop`", STOP_FIELDS);
        let limit = self.time(&fields, "time-limit", TIME_LIMIT_MS).unwrap_or(TIME_LIMIT_MS);
        let command = fields.get("command").and_then(|node| self.line(node, Stage::Run));
        if fields.get("command").is_none() {
            self.without_command(&fields);
        }
        let signal = fields.get("signal").and_then(|node| self.reading.one_of(node, "a signal", &SIGNALS));
        let grace = fields.get("grace").and_then(|node| self.reading.duration_ms(node, "`grace`"));
        Stop {
            command: command.map(|run| Command { run, time_limit_ms: limit }),
            signal: signal.unwrap_or_default(),
            grace_ms: grace.unwrap_or(usual.grace_ms),
        }
    }
}
