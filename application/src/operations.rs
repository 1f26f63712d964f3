//! The part of a type that becomes a recipe: values, environment, files and operations.

use crate::{
    component_type::entries,
    driver,
    node::{Content, Node},
    reading::{Fields, Reading},
    source::Span,
};
use protocol::{Export, Name};
use std::collections::BTreeMap;
use vm_agent::recipe::{
    At, Check, Command, CommandLine, HandedOut, Operations, Probe, Rebind, Recipe, RenderedFile, Signal, Start, Stop,
};

pub(crate) const OPERATION_FIELDS: &[&str] =
    &["install", "announce", "configure", "start", "check", "rebind", "stop", "purge"];
pub(crate) const COMMAND_FIELDS: &[&str] = &["run", "time-limit"];
pub(crate) const CHECK_FIELDS: &[&str] =
    &["tcp", "host", "http", "command", "interval", "ready-within", "attempt", "liveness", "failures"];
pub(crate) const REBIND_FIELDS: &[&str] = &["command", "signal", "time-limit"];
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
/// As long as a command may take if nothing is said.
pub(crate) const TIME_LIMIT_MS: u64 = 60_000;

/// A template, where it stands, and what it can see there.
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
    /// When the component is known, before anything it imports is.
    Prepare,
    /// For a value that is announced: as before, and ports can be had.
    EarlyValue,
    /// For a value that is chosen at each start.
    LateValue,
    /// In a run: imports are known.
    Run,
}

/// Reads the recipe, its templates, and the port of the check where it is a plain number.
pub(crate) fn read(
    fields: &Fields<'_>,
    exports: &BTreeMap<Name, Export>,
    reading: &mut Reading,
    open: &mut dyn FnMut(Span, &str) -> Result<String, String>,
) -> (Recipe, Vec<TemplateText>, Option<u64>) {
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
            builder
                .reading
                .wrong(key.span, format!("`{}` is no name of an environment variable", key.text.escape_debug()));
        }
        let text = builder.template(node, "an environment variable", Stage::Run);
        recipe.environment.extend(text.map(|text| (key.text.clone(), text)));
    }
    for (key, node) in entries(builder.reading, fields.get("files"), "`files`") {
        recipe.files.extend(builder.file(&key.text, node, open));
    }
    let operations =
        fields.get("operations").map(|node| builder.reading.fields(node, "`operations`", OPERATION_FIELDS));
    let mut port = None;
    if let Some(fields) = &operations {
        builder.operations(fields, &mut recipe);
        port = fields.get("check").and_then(|node| node.get("tcp")).and_then(|node| Reading::value(node).as_u64());
    }
    // The address of a component is known wherever it runs.
    let host = Name::new("host").expect("it is made of letters");
    if exports.values().any(|export| export.values.contains(&host)) {
        recipe.values.entry(host).or_insert(HandedOut { template: "{{ host }}".into(), at: At::Prepare });
    }
    let operations = &recipe.operations;
    let writes = operations.install.is_some()
        || operations.announce.is_some()
        || matches!(operations.start, Some(Start::Script(_)));
    for (name, export) in exports.iter().filter(|_| !writes) {
        for value in export.values.iter().filter(|value| !recipe.values.contains_key(*value)) {
            let says = format!(
                "export `{name}` hands out `{value}`, but nothing says what it is (add it to `values`, or write it to $HOLDFAST_VALUES in `announce`)"
            );
            builder.reading.wrong(fields.entry("exports").map_or(fields.span, |(key, _)| key.span), says);
        }
    }
    (recipe, builder.templates, port)
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
            self.reading.wrong(node.span, "a value has a `template`");
            return None;
        };
        Some(HandedOut { template: self.template(template, "a template", stage)?, at })
    }

    fn file(
        &mut self,
        path: &str,
        node: &Node,
        open: &mut dyn FnMut(Span, &str) -> Result<String, String>,
    ) -> Option<RenderedFile> {
        // Where none is given, it depends on whether a secret is in the file; see `file_mode`.
        let mode = String::new();
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
                    Ok(text) => {
                        let (span, stage) = (from.span, Stage::Run);
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
                self.reading.wrong(node.span, "a file has either a `template` or a file that it comes `from`");
                None
            }
        };
        let given = fields.get("mode").and_then(|node| Some((node.span, self.reading.text(node, "a mode")?)));
        let file =
            RenderedFile { path: path.into(), template: template?, mode: given.map_or(mode, |(_, mode)| mode.into()) };
        if let Some((span, mode)) = given.filter(|_| file.permissions().is_none()) {
            self.reading.wrong(span, format!("`{}` is no mode in octal, such as \"0600\"", mode.escape_debug()));
        }
        Some(file)
    }

    /// Fills in the operations of a recipe, and what follows from how it is started.
    fn operations(&mut self, fields: &Fields<'_>, recipe: &mut Recipe) {
        let mut stop = fields.get("stop").map(|node| self.stop(node)).unwrap_or_default();
        let environment: Vec<String> = recipe.environment.keys().cloned().collect();
        let driver = fields.get("start").and_then(|node| driver::read(self, node, &stop, &environment));
        let mut operations = Operations {
            install: fields.get("install").and_then(|node| self.command(node, Stage::Prepare)),
            announce: fields.get("announce").and_then(|node| self.command(node, Stage::Prepare)),
            configure: fields.get("configure").and_then(|node| self.command(node, Stage::Run)),
            start: None,
            check: fields.get("check").and_then(|node| self.check(node)),
            rebind: fields.get("rebind").and_then(|node| self.rebind(node)),
            stop: Stop::default(),
            purge: fields.get("purge").and_then(|node| self.command(node, Stage::Prepare)),
        };
        if let Some(driver) = driver {
            stop.command = stop.command.or(driver.stop);
            operations.check = operations.check.or(driver.check);
            operations.purge = operations.purge.or(driver.purge);
            if let (Start::Script(_), None, Some((key, _))) = (&driver.start, &stop.command, fields.entry("start")) {
                let says = "what starts with a script needs a command that stops it (`stop: { command: … }`)";
                self.reading.wrong(key.span, says);
            }
            operations.start = Some(driver.start);
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
        let time_limit_ms = self.time(&fields, "time-limit", TIME_LIMIT_MS)?;
        let Some(run) = fields.get("run") else {
            self.reading.wrong(node.span, "a command says what to `run`");
            return None;
        };
        Some(Command { run: self.line(run, stage)?, time_limit_ms })
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
        let words: Vec<_> = items.iter().map(|node| self.template(node, "a word of a command", stage)).collect();
        Some(CommandLine::Program(words.into_iter().collect::<Option<_>>()?))
    }

    fn time(&mut self, fields: &Fields<'_>, name: &str, usual: u64) -> Option<u64> {
        fields.get(name).map_or(Some(usual), |node| self.reading.duration_ms(node, &format!("`{name}`")))
    }

    fn check(&mut self, node: &Node) -> Option<Check> {
        let fields = self.reading.fields(node, "`check`", CHECK_FIELDS);
        let probe = match (fields.get("tcp"), fields.get("http"), fields.get("command")) {
            (Some(port), None, None) => {
                let host = fields.get("host").map(|node| self.template(node, "`host`", Stage::Run));
                Probe::Tcp { port: self.template(port, "`tcp`", Stage::Run)?, host: host.flatten() }
            }
            (None, Some(url), None) => Probe::Http { url: self.template(url, "`http`", Stage::Run)? },
            (None, None, Some(command)) => Probe::Command { run: self.line(command, Stage::Run)? },
            _ => {
                self.reading.wrong(node.span, "`check` tries `tcp`, `http` or a `command`: one of them");
                return None;
            }
        };
        let usual = Check::of(probe);
        let liveness_ms = match fields.get("liveness") {
            Some(node) if matches!(&node.content, Content::Scalar { text, .. } if text == "never") => None,
            Some(node) => Some(self.reading.duration_ms(node, "`liveness` (or `never`)")?),
            None => usual.liveness_ms,
        };
        let failures = fields.get("failures");
        let failures_max = failures.map_or(Some(usual.failures_max), |node| self.reading.count(node, "`failures`"))?;
        if failures_max == 0 || liveness_ms == Some(0) {
            self.reading.wrong(node.span, "`failures` and `liveness` are at least 1");
        }
        Some(Check {
            interval_ms: self.time(&fields, "interval", usual.interval_ms)?,
            ready_within_ms: self.time(&fields, "ready-within", usual.ready_within_ms)?,
            attempt_ms: self.time(&fields, "attempt", usual.attempt_ms)?,
            liveness_ms,
            failures_max,
            ..usual
        })
    }

    fn rebind(&mut self, node: &Node) -> Option<Rebind> {
        let fields = self.reading.fields(node, "`rebind`", REBIND_FIELDS);
        let limit = self.time(&fields, "time-limit", TIME_LIMIT_MS)?;
        match (fields.get("command"), fields.get("signal")) {
            (Some(command), None) => {
                Some(Rebind::Command(Command { run: self.line(command, Stage::Run)?, time_limit_ms: limit }))
            }
            (None, Some(signal)) => Some(Rebind::Signal(self.reading.one_of(signal, "a signal", &SIGNALS)?)),
            _ => {
                self.reading.wrong(node.span, "`rebind` is a `command` or a `signal`: one of them");
                None
            }
        }
    }

    fn stop(&mut self, node: &Node) -> Stop {
        let usual = Stop::default();
        let fields = self.reading.fields(node, "`stop`", STOP_FIELDS);
        let limit = self.time(&fields, "time-limit", TIME_LIMIT_MS).unwrap_or(TIME_LIMIT_MS);
        let command = fields.get("command").and_then(|node| self.line(node, Stage::Run));
        let signal = fields.get("signal").and_then(|node| self.reading.one_of(node, "a signal", &SIGNALS));
        Stop {
            command: command.map(|run| Command { run, time_limit_ms: limit }),
            signal: signal.unwrap_or_default(),
            grace_ms: self.time(&fields, "grace", usual.grace_ms).unwrap_or(usual.grace_ms),
        }
    }
}
