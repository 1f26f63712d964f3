//! One service of a compose file: what it says, and what it says that has no counterpart.

use super::{
    Importer, Phrase, With, compose,
    fields::{FIELDS, LEFT_OUT, OPTIONS, ValueType},
    health::{self, HealthCheck},
    mounts::{self, Mount, Volume},
    tree, words,
};
use crate::{
    document::beside,
    node::{Content, Key, Node},
    source::Span,
};

/// One service.
#[derive(Debug)]
pub(super) struct Service {
    pub(super) name: String,
    pub(super) span: Span,
    pub(super) image: Option<Phrase>,
    pub(super) build: Option<Build>,
    pub(super) entrypoint: Option<Vec<Phrase>>,
    pub(super) command: Option<Vec<Phrase>>,
    pub(super) environment: Vec<(String, Phrase)>,
    /// The ports at which it listens.
    pub(super) ports: Vec<Port>,
    pub(super) needs: Vec<Needed>,
    pub(super) check: Option<HealthCheck>,
    pub(super) count: Option<Phrase>,
    /// It runs only if one of its profiles is selected.
    pub(super) is_optional: bool,
    /// It is to run to its end before those who need it start.
    pub(super) is_job: bool,
    pub(super) signal: Option<&'static str>,
    pub(super) grace_ms: Option<u64>,
    pub(super) retries: Option<u32>,
    pub(super) folder: Option<Phrase>,
    pub(super) volumes: Vec<Volume>,
    pub(super) configs: Vec<Mount>,
    pub(super) secrets: Vec<Mount>,
    /// Options of `docker run`.
    pub(super) options: Vec<(&'static str, Option<Phrase>)>,
}

/// How an image is made.
#[derive(Debug)]
pub(super) struct Build {
    pub(super) context: Phrase,
    /// Options of `docker build`.
    pub(super) options: Vec<(&'static str, Phrase)>,
}

/// A port at which a service listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Port {
    /// The port itself.
    pub(super) number: u16,
    /// What it is published as, where that is something else.
    pub(super) published: Option<String>,
    pub(super) span: Span,
}

/// Another service that has to be there first.
#[derive(Debug)]
pub(super) struct Needed {
    pub(super) service: String,
    pub(super) span: Span,
    /// It must have run to its end.
    pub(super) completed: bool,
    pub(super) required: bool,
}

const SIGNALS: [&str; 7] = ["HUP", "INT", "QUIT", "TERM", "USR1", "USR2", "KILL"];

/// Reads one service.
pub(super) fn read(
    key: &Key,
    node: &Node,
    with: With,
    importer: &mut Importer,
    open: &mut dyn FnMut(&str) -> Result<String, String>,
) -> Service {
    let all: Vec<&str> = FIELDS
        .iter()
        .copied()
        .chain(OPTIONS.iter().map(|(field, _, _)| *field))
        .chain(LEFT_OUT.iter().map(|(field, _)| *field))
        .collect();
    let shown = compose::known(node, "a service", &all, importer);
    let mut service = Service::new(&key.text, key.span);
    let mut reader = Reader { service: &mut service, importer, with, open };
    for (key, node) in shown {
        reader.field(key, node);
    }
    service
}

struct Reader<'a> {
    service: &'a mut Service,
    importer: &'a mut Importer,
    with: With,
    open: &'a mut dyn FnMut(&str) -> Result<String, String>,
}

impl Reader<'_> {
    fn field(&mut self, key: &Key, node: &Node) {
        match key.text.as_str() {
            "image" => self.service.image = self.phrase(node, "an image"),
            "build" => self.service.build = self.build(node),
            "command" => self.service.command = self.words(node, "a command"),
            "entrypoint" => self.service.entrypoint = self.words(node, "an entrypoint"),
            "environment" => self.environment(node),
            "env_file" => self.environment_files(node),
            "ports" => self.ports(node, false),
            "expose" => self.ports(node, true),
            "depends_on" | "links" => self.needs(key, node),
            "healthcheck" => self.service.check = health::read(&self.service.name.clone(), node, self.importer),
            "restart" => self.restart(node),
            "deploy" => self.deploy(node),
            "scale" => self.service.count = self.phrase(node, "`scale`"),
            "stop_signal" => self.signal(node),
            "stop_grace_period" => self.service.grace_ms = self.time(node, "`stop_grace_period`"),
            "volumes" => {
                self.service.volumes = mounts::volumes(&self.service.name.clone(), node, self.with, self.importer);
            }
            "configs" => {
                self.service.configs = mounts::mounts(&self.service.name.clone(), node, "config", self.importer);
            }
            "secrets" => {
                self.service.secrets = mounts::mounts(&self.service.name.clone(), node, "secret", self.importer);
            }
            "working_dir" => self.service.folder = self.phrase(node, "`working_dir`"),
            "profiles" => {
                self.service.is_optional = true;
                self.remark(node.span, "`profiles` is omitted: raise its `count` to run it");
            }
            field => {
                if let Some((_, option, value_type)) = OPTIONS.iter().find(|(it, _, _)| *it == field) {
                    self.option(field, option, *value_type, node);
                } else if let Some((_, instead)) =
                    LEFT_OUT.iter().find(|(it, instead)| *it == field && !instead.is_empty())
                {
                    self.remark(key.span, &format!("`{field}` is omitted: {instead}"));
                }
            }
        }
    }

    fn remark(&mut self, span: Span, says: &str) {
        self.importer.remark(span, Some(&self.service.name.clone()), says);
    }

    fn phrase(&mut self, node: &Node, what: &str) -> Option<Phrase> {
        let text = self.importer.reading.text(node, what)?;
        Some(self.importer.phrase(text, node.span, Some(&self.service.name)))
    }

    fn now(&mut self, node: &Node, what: &str) -> Option<String> {
        let text = self.importer.reading.text(node, what)?;
        Some(self.importer.now(text, node.span, Some(&self.service.name)))
    }

    fn time(&mut self, node: &Node, what: &str) -> Option<u64> {
        let text = self.now(node, what)?;
        health::time(&text, node, what, self.importer)
    }

    /// A command: a list of words, or a text that is split as a shell would.
    fn words(&mut self, node: &Node, what: &str) -> Option<Vec<Phrase>> {
        if let Content::List { items, .. } = &node.content {
            return items.iter().map(|it| self.phrase(it, "a word of a command")).collect();
        }
        let text = self.importer.reading.text(node, what)?;
        let Some(words) = words::split(text) else {
            self.importer.wrong(node.span, format!("{what} has a quote that is not closed"));
            return None;
        };
        Some(words.iter().map(|it| self.importer.phrase(it, node.span, Some(&self.service.name))).collect())
    }

    fn build(&mut self, node: &Node) -> Option<Build> {
        if let Content::Scalar { .. } = node.content {
            return Some(Build { context: self.phrase(node, "`build`")?, options: Vec::new() });
        }
        let mut context = None;
        let mut options = Vec::new();
        let fields = [("dockerfile", "--file"), ("target", "--target"), ("args", "--build-arg")];
        for (key, node) in self.importer.reading.entries(node, "`build`").to_vec() {
            match key.text.as_str() {
                "context" => context = self.phrase(&node, "a context"),
                "args" => {
                    for (name, value) in tree::as_map(&node).entries().to_vec() {
                        let text = if value.is_nothing() {
                            name.text.clone()
                        } else {
                            format!("{}={}", name.text, plain(&value))
                        };
                        let phrase = self.importer.phrase(&text, value.span, Some(&self.service.name));
                        options.push(("--build-arg", phrase));
                    }
                }
                name => match fields.iter().find(|(field, _)| *field == name) {
                    Some((_, option)) => options.extend(self.phrase(&node, name).map(|it| (*option, it))),
                    None => self.remark(key.span, &format!("`build.{}` is omitted", key.text.escape_debug())),
                },
            }
        }
        Some(Build { context: context.unwrap_or(Phrase::literal(".", node.span)), options })
    }

    fn environment(&mut self, node: &Node) {
        let map = tree::as_map(node);
        for (key, value) in self.importer.reading.entries(&map, "`environment`").to_vec() {
            // Without a value it comes from the environment of the caller: that is a variable.
            let text = match &value.content {
                Content::Scalar { .. } if value.is_nothing() && key.span == value.span => format!("${{{}}}", key.text),
                Content::Scalar { text, .. } if !value.is_nothing() => text.clone(),
                Content::Scalar { .. } => format!("${{{}}}", key.text),
                _ => {
                    self.importer.reading.text(&value, "an environment variable");
                    continue;
                }
            };
            self.variable(&key.text, &text, value.span);
        }
    }

    fn variable(&mut self, name: &str, text: &str, span: Span) {
        let fits = !name.is_empty() && name.chars().all(|it| it.is_ascii_alphanumeric() || it == '_');
        if !fits {
            let says = format!(
                "the variable `{}` is omitted: its name must consist of letters, digits and _",
                name.escape_debug()
            );
            self.remark(span, &says);
            return;
        }
        let phrase = self.importer.phrase(text, span, Some(&self.service.name));
        self.service.environment.retain(|(known, _)| known != name);
        self.service.environment.push((name.into(), phrase));
    }

    /// What the files say comes first: `environment` has the last word.
    fn environment_files(&mut self, node: &Node) {
        let said = std::mem::take(&mut self.service.environment);
        let folder = self.importer.sources.name(node.span.file).rsplit_once('/').map_or("", |(it, _)| it).to_owned();
        let items = match &node.content {
            Content::Map { .. } => vec![node.clone()],
            _ => self.importer.reading.items(node, "`env_file`").to_vec(),
        };
        for item in items {
            let (node, required) = match item.get("path") {
                Some(path) => (path, item.get("required").is_none_or(|it| plain(it) != "false")),
                None => (&item, true),
            };
            let Some(name) = self.now(node, "a file of variables") else { continue };
            match (self.open)(&beside(&folder, &name)) {
                Ok(text) => {
                    for (name, value) in words::variables(&text) {
                        // A dollar sign alone is only that.
                        let value = value.unwrap_or_default();
                        let value = if value.contains("${") { value } else { value.replace('$', "$$") };
                        self.variable(&name, &value, node.span);
                    }
                }
                Err(_) if !required => {}
                Err(why) => self.remark(node.span, &format!("the variables of {name} are missing: {why}")),
            }
        }
        for (name, phrase) in said {
            self.service.environment.retain(|(known, _)| *known != name);
            self.service.environment.push((name, phrase));
        }
    }

    fn ports(&mut self, node: &Node, exposed: bool) {
        for item in self.importer.reading.items(node, "`ports`").to_vec() {
            let found = match &item.content {
                Content::Map { .. } => {
                    let target = item.get("target").and_then(|it| self.now(it, "`target`"));
                    let published = item.get("published").and_then(|it| self.now(it, "`published`"));
                    let address = item.get("host_ip").and_then(|it| self.now(it, "`host_ip`"));
                    target.map(|target| (target, published, address))
                }
                _ => self.now(&item, "a port").map(|text| {
                    let text = text.split('/').next().unwrap_or_default().to_owned();
                    match text.rsplit_once(':') {
                        Some((before, target)) => {
                            // An address of the machine may stand before the port, in brackets if it has colons itself.
                            let (address, published) = before.rsplit_once(':').unwrap_or(("", before));
                            let published = Some(published.to_owned()).filter(|it| !it.is_empty());
                            (target.to_owned(), published, Some(address.to_owned()))
                        }
                        None => (text, None, None),
                    }
                }),
            };
            let Some((target, published, address)) = found else {
                self.importer.wrong(item.span, "write a port like 8080:80, or as a map with `target` and `published`");
                continue;
            };
            if let Some(address) = address.filter(|it| !["", "0.0.0.0", "::", "[::]"].contains(&it.as_str())) {
                let says = format!("port {target} is open at every address of its VM, not only at {address}");
                self.remark(item.span, &says);
            }
            let range = target.split_once('-');
            let numbers = range.map_or((target.parse(), target.parse()), |(first, last)| (first.parse(), last.parse()));
            let (Ok(first), Ok(last)) = numbers else {
                let says = format!("`{}` is not a port from 1 to 65535 (write it like 8080:80)", target.escape_debug());
                self.importer.wrong(item.span, says);
                continue;
            };
            let (first, last): (u16, u16) = (first, last);
            if first == 0 || last < first {
                self.importer.wrong(item.span, "a port must be from 1 to 65535, and a range must ascend");
                continue;
            }
            if last - first > 20 {
                self.remark(item.span, &format!("of the ports {first} to {last}, only {first} is exported"));
            }
            let published = published.filter(|it| !exposed && *it != target);
            let last = if last - first > 20 { first } else { last };
            for number in first..=last {
                if !self.service.ports.iter().any(|it| it.number == number) {
                    let published = published.clone().filter(|_| first == last);
                    self.service.ports.push(Port { number, published, span: item.span });
                }
            }
        }
    }

    fn needs(&mut self, key: &Key, node: &Node) {
        let words = ["service_started", "service_healthy", "service_completed_successfully"];
        let mut found: Vec<Needed> = Vec::new();
        match &node.content {
            Content::Map { entries, .. } => {
                for (key, node) in entries {
                    let condition = node.get("condition").and_then(|it| self.now(it, "`condition`"));
                    if let Some(condition) = condition.as_deref().filter(|it| !words.contains(it)) {
                        let right = crate::nearest::hint(condition, words);
                        let span = node.get("condition").map_or(node.span, |it| it.span);
                        self.importer.wrong(span, format!("unknown condition `{}`{right}", condition.escape_debug()));
                    }
                    let required = node.get("required").is_none_or(|it| plain(it) != "false");
                    let completed = condition.as_deref() == Some(words[2]);
                    found.push(Needed { service: key.text.clone(), span: key.span, completed, required });
                }
            }
            _ => {
                for item in self.importer.reading.items(node, &format!("`{}`", key.text)) {
                    let Some(text) = self.importer.reading.text(item, "a service") else { continue };
                    // A link may give it another name.
                    let service = text.split(':').next().unwrap_or_default().to_owned();
                    if service != text && key.text == "links" {
                        let says =
                            format!("the alias in the link `{}` is omitted: use `{service}`", text.escape_debug());
                        self.importer.remark(item.span, Some(&self.service.name), says);
                    }
                    found.push(Needed { service, span: item.span, completed: false, required: true });
                }
            }
        }
        for needed in found {
            match self.service.needs.iter_mut().find(|it| it.service == needed.service) {
                Some(known) => {
                    known.completed |= needed.completed;
                    known.required |= needed.required;
                }
                None => self.service.needs.push(needed),
            }
        }
    }

    fn restart(&mut self, node: &Node) {
        let Some(text) = self.now(node, "`restart`") else { return };
        let (word, number) = text.split_once(':').map_or((text.as_str(), None), |(word, number)| (word, Some(number)));
        match (word, number.map(str::parse::<u32>)) {
            ("always" | "unless-stopped" | "on-failure", None) => {}
            ("on-failure", Some(Ok(number))) => self.service.retries = Some(number),
            ("no" | "false", None) => {
                self.remark(
                    node.span,
                    "`restart: no` is omitted: a component that dies is restarted, and after too many deaths manual action is required",
                );
            }
            _ => {
                let says = format!(
                    "`restart` must be `no`, `always`, `unless-stopped` or `on-failure:3`, not `{}`",
                    text.escape_debug()
                );
                self.importer.wrong(node.span, says);
            }
        }
    }

    fn deploy(&mut self, node: &Node) {
        for (key, node) in self.importer.reading.entries(node, "`deploy`").to_vec() {
            match key.text.as_str() {
                "replicas" => self.service.count = self.phrase(&node, "`replicas`"),
                "restart_policy" => {
                    let text = node.get("max_attempts").and_then(|it| self.now(it, "`max_attempts`"));
                    self.service.retries = text.and_then(|it| it.parse().ok()).or(self.service.retries);
                }
                "resources" => {
                    let limits = node.get("limits").cloned();
                    for (field, option) in [("cpus", "--cpus"), ("memory", "--memory")] {
                        let limit = limits.as_ref().and_then(|it| it.get(field)).cloned();
                        if let Some(limit) = limit {
                            self.option(&format!("deploy.resources.limits.{field}"), option, ValueType::One, &limit);
                        }
                    }
                    if node.get("reservations").is_some() {
                        self.remark(
                            key.span,
                            "`deploy.resources.reservations` is omitted: set `resources` in the type and in the VMs",
                        );
                    }
                }
                "mode" if plain(&node) == "replicated" => {}
                "mode" | "placement" => {
                    self.remark(key.span, &format!("`deploy.{}` is omitted: choose the VMs with `on`", key.text));
                }
                "update_config" | "rollback_config" => {
                    let says = format!("`deploy.{}` is omitted: use `apply --strategy`", key.text);
                    self.remark(key.span, &says);
                }
                other => self.remark(key.span, &format!("`deploy.{}` is omitted", other.escape_debug())),
            }
        }
    }

    fn signal(&mut self, node: &Node) {
        let Some(text) = self.now(node, "`stop_signal`") else { return };
        let name = text.strip_prefix("SIG").unwrap_or(&text);
        self.service.signal = SIGNALS.iter().find(|it| **it == name).copied();
        if self.service.signal.is_none() {
            let known = SIGNALS.join(", ");
            self.remark(
                node.span,
                &format!("it is stopped with TERM instead of {}: the known signals are {known}", text.escape_debug()),
            );
        }
    }

    fn option(&mut self, field: &str, option: &'static str, value_type: ValueType, node: &Node) {
        if self.with == With::Process {
            self.remark(node.span, &format!("`{field}` is omitted: a process is confined only by its user"));
            return;
        }
        match value_type {
            ValueType::Flag if plain(node) == "true" => self.service.options.push((option, None)),
            ValueType::Flag => {}
            ValueType::One => {
                let phrase = self.phrase(node, &format!("`{field}`"));
                self.service.options.extend(phrase.map(|it| (option, Some(it))));
            }
            ValueType::Many => {
                let map = match &node.content {
                    Content::Map { entries, .. } => entries
                        .iter()
                        .map(|(key, node)| {
                            self.importer.phrase(&format!("{}:{}", key.text, plain(node)), node.span, None)
                        })
                        .collect(),
                    _ => {
                        let items = self.importer.reading.items(node, &format!("`{field}`")).to_vec();
                        items.iter().filter_map(|it| self.phrase(it, field)).collect::<Vec<_>>()
                    }
                };
                self.service.options.extend(map.into_iter().map(|it| (option, Some(it))));
            }
        }
    }
}

/// The text of a scalar; nothing of anything else.
pub(super) fn plain(node: &Node) -> &str {
    if let Content::Scalar { text, .. } = &node.content { text } else { "" }
}

impl Service {
    fn new(name: &str, span: Span) -> Self {
        Self {
            name: name.into(),
            span,
            image: None,
            build: None,
            entrypoint: None,
            command: None,
            environment: Vec::new(),
            ports: Vec::new(),
            needs: Vec::new(),
            check: None,
            count: None,
            is_optional: false,
            is_job: false,
            signal: None,
            grace_ms: None,
            retries: None,
            folder: None,
            volumes: Vec::new(),
            configs: Vec::new(),
            secrets: Vec::new(),
            options: Vec::new(),
        }
    }
}
