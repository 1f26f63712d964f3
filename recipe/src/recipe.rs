//! A recipe: how the operations of one kind of component are carried out.
//!
//! The protocol carries it unread (`Kind::recipe`). It is JSON, because recipes are in journals and outlive programs: a
//! field can be added without breaking older recipes, and an unknown field is an error rather than a silent difference.
//! Every text that may contain `{{ … }}` is a template; see [`crate::template`] for what templates see.
//!
//! Commands run in the component's directory. Their environment is small: `PATH` and a few others, the variables of the
//! recipe, and `HOLDFAST_NAME`, `HOLDFAST_DIRECTORY`, `HOLDFAST_TASK` (the number of the task), `HOLDFAST_DATA_<NAME>`,
//! `HOLDFAST_<IMPORT>_<n>_<VALUE>` for each value of each binding, and for `install`, `announce` and a start script
//! `HOLDFAST_VALUES`, the file to which they write values as `name=value` lines.
//!
//! ```json
//! {
//!   "version": 1,
//!   "values": { "port": { "template": "{{ free_port() }}", "at": "prepare" } },
//!   "sorts": { "values": { "port": "port" }, "imports": { "cache": { "key": "secret" } } },
//!   "environment": { "PORT": "{{ port }}" },
//!   "data": { "directories": ["files"] },
//!   "operations": {
//!     "start": { "process": { "run": ["mydb", "--port", "{{ port }}", "--files", "{{ data.files }}"] } },
//!     "check": { "probe": { "tcp": { "port": "{{ port }}" } } }
//!   }
//! }
//! ```

use crate::{Confinement, Data, Limits, value_type::RecipeTypes};
use protocol::{Name, bounds::RECIPE_BYTES_MAX};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The version of this format.
const VERSION: u32 = 1;

/// How the operations of a kind are carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// The version of its format.
    pub version: u32,
    /// How many components its group has, if a template reads `group.count`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_count: Option<u32>,
    /// Constant values, which templates see as `parameters.<name>`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, serde_json::Value>,
    /// The same, but secret.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub secrets: BTreeMap<String, String>,
    /// The types of values: its own, and those that come with its imports.
    #[serde(default, rename = "sorts", alias = "conceals", skip_serializing_if = "RecipeTypes::is_empty")]
    pub types: RecipeTypes,
    /// Values that the component passes to its clients.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<Name, HandedOut>,
    /// Environment variables of a run: of `configure`, `start`, `check`, `rebind` and `stop`. Each is a template.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// Files that are written before `configure` and again before `rebind`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<RenderedFile>,
    /// What outlives the component: directories that are kept for its name.
    #[serde(default, skip_serializing_if = "Data::is_empty")]
    pub data: Data,
    /// What its processes may use.
    #[serde(default, skip_serializing_if = "Limits::is_none")]
    pub limits: Limits,
    /// What its processes may do.
    #[serde(default, skip_serializing_if = "Confinement::is_none")]
    pub confinement: Confinement,
    /// Its operations.
    #[serde(default)]
    pub operations: Operations,
}

/// A value that the component passes to its clients.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HandedOut {
    /// Its text. `{{ free_port() }}` is a port that this component keeps for as long as it exists.
    pub template: String,
    /// When it is chosen.
    #[serde(default)]
    pub at: At,
}

/// When a value is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum At {
    /// Announced as soon as the component is known, before its imports are. If the kind does not prepare, it is chosen
    /// at the first start.
    #[default]
    Prepare,
    /// Chosen at each start; may refer to imports.
    Start,
}

/// A file that is rendered from a template.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RenderedFile {
    /// Its path: relative to the component's directory, or absolute. A template itself.
    pub path: String,
    /// Its contents.
    pub template: String,
    /// Its mode, in octal.
    #[serde(default = "default_mode")]
    pub mode: String,
}

/// The operations of a component. Omitted ones do nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Operations {
    /// Installs what the component needs; one at a time on each VM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub install: Option<Command>,
    /// Determines values to announce.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub announce: Option<Command>,
    /// Runs before each start, after the files are written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configure: Option<Command>,
    /// Starts it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<Start>,
    /// Prints what belongs to the component, where another program starts its processes: lines of `process PID`,
    /// `cgroup PATH` or `address HOST:PORT`. Descendants of a process belong to it too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identify: Option<Command>,
    /// Readiness and liveness check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<Check>,
    /// Tells it of a new set of bindings, after the files are written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rebind: Option<Rebind>,
    /// Makes it read its files again while it runs. It also tells it of new bindings if there is no `rebind`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reload: Option<Rebind>,
    /// Stops it.
    #[serde(default)]
    pub stop: Stop,
    /// Undoes `install`; one at a time on each VM. The component's directory is removed afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purge: Option<Command>,
}

/// A program to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum CommandLine {
    /// A text for `/bin/sh -c`; use the filter `quote` for what may contain spaces.
    Shell(String),
    /// A program and its arguments, without a shell.
    Program(Vec<String>),
}

/// A program that ends, under a time limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Command {
    /// What to run.
    pub run: CommandLine,
    /// After this time it is killed, with all its descendants, and has failed.
    #[serde(default = "default_time_limit_ms")]
    pub time_limit_ms: u64,
}

/// How a component is started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Start {
    /// A program that keeps running.
    Process(Process),
    /// A program that ends once the component is started; `stop` then needs a command.
    Script(Command),
}

/// A program that keeps running.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Process {
    /// What to run. A shell text should end in `exec …`, so that signals reach the program itself.
    pub run: CommandLine,
    /// Without a check, it counts as started once it has been running for this long.
    #[serde(default = "default_settle_ms", skip_serializing_if = "is_default_settle_ms")]
    pub settle_ms: u64,
}

impl Process {
    /// A process with default settings.
    pub fn of(run: CommandLine) -> Self {
        Self { run, settle_ms: default_settle_ms() }
    }
}

/// When a component counts as ready, and when as dead.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// The probe.
    pub probe: Probe,
    /// The longest pause between two attempts while it is not ready yet; the first pauses are shorter.
    #[serde(default = "default_interval_ms")]
    pub interval_ms: u64,
    /// A start that is not ready within this time has failed.
    #[serde(default = "default_ready_within_ms")]
    pub ready_within_ms: u64,
    /// An attempt without an answer within this time has failed.
    #[serde(default = "default_attempt_ms")]
    pub attempt_ms: u64,
    /// The pause between two attempts once it was ready; `null` for no liveness check.
    #[serde(default = "default_liveness_ms")]
    pub liveness_ms: Option<u64>,
    /// This many failed attempts in a row mean that it has died.
    #[serde(default = "default_failures_max")]
    pub failures_max: u32,
    /// Whose listening socket may answer.
    #[serde(default, skip_serializing_if = "Listener::is_own")]
    pub listener: Listener,
}

/// Whose listening socket may answer a TCP or HTTP probe of an address of this machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Listener {
    /// The component's own: its processes, its unit or its container hold it.
    #[default]
    Own,
    /// Any: the component is behind something else, such as a proxy.
    Any,
}

impl Listener {
    fn is_own(&self) -> bool {
        *self == Self::Own
    }
}

/// How readiness is tested.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Probe {
    /// A connection is accepted.
    Tcp {
        /// The port, a template.
        port: String,
        /// The address, a template; default is the VM's own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        host: Option<String>,
    },
    /// A GET is answered with a status from 200 to 399.
    Http {
        /// `http://host:port/path`, a template.
        url: String,
    },
    /// A command ends with exit code 0.
    Command {
        /// What to run.
        run: CommandLine,
    },
}

/// How a running component is told of new bindings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rebind {
    /// By running a command.
    Command(Command),
    /// By a signal to its process.
    Signal(Signal),
    /// By a restart, which the manager plans. The host is never asked to do it.
    Restart,
}

/// How a component is stopped: the command if there is one, then the signal to all its processes, then, after the grace,
/// SIGKILL to all that are left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stop {
    /// The command that is run first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Command>,
    /// The signal to its processes.
    #[serde(default)]
    pub signal: Signal,
    /// The grace before SIGKILL.
    #[serde(default = "default_grace_ms")]
    pub grace_ms: u64,
}

/// A signal that a recipe may send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Signal {
    /// SIGHUP.
    Hup,
    /// SIGINT.
    Int,
    /// SIGQUIT.
    Quit,
    /// SIGTERM.
    #[default]
    Term,
    /// SIGUSR1.
    Usr1,
    /// SIGUSR2.
    Usr2,
    /// SIGKILL.
    Kill,
}

/// Bytes that are not a recipe, or a recipe that cannot be carried out.
#[derive(Debug, thiserror::Error)]
pub enum RecipeError {
    /// Longer than the protocol carries.
    #[error("the recipe is {0} bytes long (at most {RECIPE_BYTES_MAX})")]
    TooLong(usize),
    /// Not the JSON of a recipe.
    #[error("cannot read the recipe: {0}")]
    Unreadable(serde_json::Error),
    /// Of another version.
    #[error("the recipe has version {0}, and this program reads version {VERSION} (upgrade the program)")]
    Version(u32),
    /// Valid, but it cannot work.
    #[error("the recipe cannot work: {0}")]
    Unworkable(String),
}

impl Default for Recipe {
    fn default() -> Self {
        Self {
            version: VERSION,
            group_count: None,
            parameters: BTreeMap::new(),
            secrets: BTreeMap::new(),
            types: RecipeTypes::default(),
            values: BTreeMap::new(),
            environment: BTreeMap::new(),
            files: Vec::new(),
            data: Data::default(),
            limits: Limits::default(),
            confinement: Confinement::default(),
            operations: Operations::default(),
        }
    }
}

impl Check {
    /// A check with default settings.
    pub fn of(probe: Probe) -> Self {
        Self {
            probe,
            interval_ms: default_interval_ms(),
            ready_within_ms: default_ready_within_ms(),
            attempt_ms: default_attempt_ms(),
            liveness_ms: default_liveness_ms(),
            failures_max: default_failures_max(),
            listener: Listener::default(),
        }
    }
}

impl Default for Stop {
    fn default() -> Self {
        Self { command: None, signal: Signal::default(), grace_ms: default_grace_ms() }
    }
}

impl Recipe {
    /// The bytes that a kind carries.
    pub fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("maps of a recipe have texts as keys")
    }

    /// Decodes what a kind carries, and checks everything that can be checked in advance.
    pub fn decode(bytes: &[u8]) -> Result<Self, RecipeError> {
        if bytes.len() > RECIPE_BYTES_MAX {
            return Err(RecipeError::TooLong(bytes.len()));
        }
        // The version is checked first: a field of another version is not an unknown field.
        let Version { version } = serde_json::from_slice(bytes).map_err(RecipeError::Unreadable)?;
        if version != VERSION {
            return Err(RecipeError::Version(version));
        }
        let recipe: Self = serde_json::from_slice(bytes).map_err(RecipeError::Unreadable)?;
        match recipe.complaint() {
            None => Ok(recipe),
            Some(complaint) => Err(RecipeError::Unworkable(complaint)),
        }
    }

    fn complaint(&self) -> Option<String> {
        let operations = &self.operations;
        if matches!(operations.start, Some(Start::Script(_))) && operations.stop.command.is_none() {
            return Some("it starts with a script and has no stop command".into());
        }
        if operations.check.as_ref().is_some_and(|check| check.failures_max == 0 || check.liveness_ms == Some(0)) {
            return Some("check: failures_max and liveness_ms must be at least 1".into());
        }
        let is_variable = |name: &str| {
            !name.is_empty() && name.chars().all(|character| character.is_ascii_alphanumeric() || character == '_')
        };
        if let Some(name) = self.environment.keys().find(|name| !is_variable(name)) {
            return Some(format!("{name:?} is not a valid name for an environment variable"));
        }
        if let Some(file) = self.files.iter().find(|file| file.permissions().is_none()) {
            return Some(format!("file {:?}: {:?} is not an octal mode", file.path, file.mode));
        }
        let is_empty = |line: &CommandLine| match line {
            CommandLine::Shell(text) => text.trim().is_empty(),
            CommandLine::Program(words) => words.is_empty(),
        };
        self.command_lines().into_iter().any(is_empty).then(|| "a command is empty".into())
    }

    fn command_lines(&self) -> Vec<&CommandLine> {
        let Operations { install, announce, configure, start, identify, check, rebind, reload, stop, purge } =
            &self.operations;
        let commands = [install, announce, configure, identify, &stop.command, purge];
        let mut lines: Vec<_> = commands.into_iter().flatten().map(|command| &command.run).collect();
        lines.extend(start.iter().map(|start| match start {
            Start::Process(process) => &process.run,
            Start::Script(command) => &command.run,
        }));
        if let Some(Check { probe: Probe::Command { run }, .. }) = check {
            lines.push(run);
        }
        for told in [rebind, reload] {
            if let Some(Rebind::Command(command)) = told {
                lines.push(&command.run);
            }
        }
        lines
    }
}

impl RenderedFile {
    /// The mode as a number, if it is one.
    pub fn permissions(&self) -> Option<u32> {
        u32::from_str_radix(&self.mode, 8).ok().filter(|mode| *mode <= 0o7777)
    }
}

#[derive(Deserialize)]
struct Version {
    version: u32,
}

fn default_mode() -> String {
    "0644".into()
}
fn default_time_limit_ms() -> u64 {
    60_000
}
fn default_settle_ms() -> u64 {
    200
}
// Serde passes a reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_default_settle_ms(settle_ms: &u64) -> bool {
    *settle_ms == default_settle_ms()
}
fn default_interval_ms() -> u64 {
    200
}
fn default_ready_within_ms() -> u64 {
    60_000
}
fn default_attempt_ms() -> u64 {
    2_000
}
// Serde requires the type of the field.
#[allow(clippy::unnecessary_wraps)]
fn default_liveness_ms() -> Option<u64> {
    Some(5_000)
}
fn default_failures_max() -> u32 {
    3
}
fn default_grace_ms() -> u64 {
    10_000
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value_type::ValueType;
    use serde_json::json;

    fn complaint(recipe: &serde_json::Value) -> String {
        Recipe::decode(recipe.to_string().as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn a_recipe_is_the_same_after_a_journey() {
        let written = json!({
            "version": 1,
            "parameters": { "workers": 4 },
            "values": { "port": { "template": "{{ free_port() }}" }, "key": { "template": "k", "at": "start" } },
            "sorts": { "values": { "port": "port", "host": "text" }, "imports": { "db": { "key": "secret" } } },
            "environment": { "PORT": "{{ port }}" },
            "files": [{ "path": "app.conf", "template": "x", "mode": "0600" }],
            "operations": {
                "install": { "run": "apt-get install -y mydb", "time_limit_ms": 600_000 },
                "start": { "script": { "run": ["mydbctl", "start"] } },
                "check": { "probe": { "http": { "url": "http://{{ host }}:{{ port }}/" } }, "liveness_ms": null },
                "rebind": { "signal": "HUP" },
                "stop": { "command": { "run": "mydbctl stop" }, "signal": "INT" },
            }
        });
        let recipe = Recipe::decode(written.to_string().as_bytes()).unwrap();
        assert_eq!(recipe.operations.check.as_ref().unwrap().failures_max, 3);
        assert_eq!(recipe.operations.check.as_ref().unwrap().liveness_ms, None);
        assert_eq!(recipe.values[&Name::new("key").unwrap()].at, At::Start);
        assert_eq!(recipe.operations.stop.grace_ms, 10_000);
        assert!(recipe.prepares() && recipe.rebinds());
        assert!(!Recipe::default().prepares() && !Recipe::default().rebinds());
        assert_eq!(recipe.types.values.iter().collect::<Vec<_>>(), [(&Name::new("port").unwrap(), ValueType::Port)]);
        assert_eq!(Recipe::decode(&recipe.encode()).unwrap(), recipe);
    }

    #[test]
    fn a_recipe_of_an_old_journal_keeps_its_secrets() {
        let old = json!({ "version": 1, "conceals": { "values": ["key"], "imports": { "db": ["key"] } } });
        let recipe = Recipe::decode(old.to_string().as_bytes()).unwrap();
        let key = Name::new("key").unwrap();
        assert_eq!(recipe.types.values.of(&key), ValueType::Secret);
        assert_eq!(recipe.types.imports[&Name::new("db").unwrap()].of(&key), ValueType::Secret);
        assert_eq!(Recipe::decode(&recipe.encode()).unwrap(), recipe);
        assert_eq!(Recipe::decode(br#"{ "version": 1 }"#).unwrap(), Recipe::default());
    }

    #[test]
    fn what_cannot_work_is_told_before_anything_is_done() {
        let wrong = [
            (json!({ "version": 2, "new": 1 }), "has version 2"),
            (json!({ "version": 1, "operation": {} }), "unknown field `operation`"),
            (json!({ "version": 1, "operations": { "start": { "unit": "x" } } }), "unknown variant `unit`"),
            (json!({ "version": 1, "operations": { "start": { "script": { "run": "x" } } } }), "no stop command"),
            (json!({ "version": 1, "operations": { "install": { "run": [] } } }), "command is empty"),
            (json!({ "version": 1, "environment": { "A=B": "x" } }), "A=B"),
            (json!({ "version": 1, "files": [{ "path": "a", "template": "", "mode": "rw" }] }), "not an octal mode"),
            (json!({ "version": 1, "sorts": { "values": { "a": "prot" } } }), "a value is text, integer"),
            (json!({ "version": 1, "values": { "a b": { "template": "" } } }), "a b"),
        ];
        for (recipe, expected) in wrong {
            assert!(complaint(&recipe).contains(expected), "{}", complaint(&recipe));
        }
        for garbage in [&b""[..], b"\xff\x00", b"[]", b"{\"version\":1"] {
            assert!(matches!(Recipe::decode(garbage), Err(RecipeError::Unreadable(_))));
        }
        assert!(matches!(Recipe::decode(&vec![b' '; RECIPE_BYTES_MAX + 1]), Err(RecipeError::TooLong(_))));
    }
}
