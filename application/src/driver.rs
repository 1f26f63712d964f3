//! Drivers: what starts a component, a plain program, a systemd unit, or a container.
//!
//! A unit and a container become plain commands here. So an agent knows nothing of them, and its guarantees (a start
//! that is asked for twice starts one, what was started outlives the agent, a death is noticed) hold for them for the
//! same reasons. What the file says itself has priority.

use crate::{
    kept_data::{self, Mount},
    node::{Content, Node},
    operations::{Builder, SIGNALS, Stage, TIME_LIMIT_MS},
    restrictions::Restrictions,
};
use recipe::{Check, Command, CommandLine, Probe, Process, Signal, Start, Stop};

pub(crate) const START_FIELDS: &[&str] = &["process", "script", "systemd", "container", "settle", "time-limit"];
pub(crate) const CONTAINER_FIELDS: &[&str] = &["image", "command", "volumes", "options", "job", "engine"];
/// The name under which templates see the container of a component.
pub(crate) const CONTAINER: &str = "container";
/// Letters, digits, dots and dashes, and unique among the components of one machine.
const CONTAINER_NAME: &str = "{{ name | replace('/', '-') | replace('[', '-') | replace(']', '') }}";
/// The interval at which systemd is asked for the state of a unit.
const LIVENESS_MS: u64 = 2_000;
/// How long systemd may take to answer: after an upgrade it restarts itself.
const UNIT_ATTEMPT_MS: u64 = 30_000;
/// A unit that was started is up already.
const UNIT_READY_MS: u64 = 5_000;
/// How long a unit may take to start or to stop. systemd itself gives up after 90 s, and reports why.
const UNIT_MS: u64 = 120_000;

/// A unit that is running already was started from outside (by a package, at boot), before its files were written: so
/// it is restarted. Earlier failures are reset, because `patience` decides how often to retry. The invocation id of the
/// unit is kept for the check.
const UNIT_START: &str = r#"
systemctl reset-failed "$1" 2> /dev/null
systemctl restart "$1" && systemctl is-active --quiet "$1" &&
    systemctl show --property=InvocationID "$1" > "$HOLDFAST_DIRECTORY/.unit" && exit
systemctl status --no-pager --full --lines=10 "$1"
exit 1"#;

/// The settings of the component, in addition to the unit's own, until the next boot.
const UNIT_SETTINGS: &str = r#"
case $1 in *.*) unit=$1 ;; *) unit=$1.service ;; esac
mkdir -p "/run/systemd/system/$unit.d" && printf %s "$2" > "/run/systemd/system/$unit.d/holdfast.conf" || exit
systemctl daemon-reload || exit"#;

/// Takes them back.
const UNIT_FORGET: &str = r#"
case $1 in *.*) unit=$1 ;; *) unit=$1.service ;; esac
rm -f "/run/systemd/system/$unit.d/holdfast.conf"
rmdir "/run/systemd/system/$unit.d" 2> /dev/null
systemctl daemon-reload"#;

/// A failed unit reports why, once. A unit that does not exist (5) is not running.
const UNIT_STOP: &str = r#"
if systemctl is-failed --quiet "$1"; then
    systemctl status --no-pager --full --lines=10 "$1"
    systemctl reset-failed "$1"
fi
systemctl stop "$1"
code=$?
[ $code -eq 5 ] || exit $code"#;

/// A unit with another invocation id than the one that was started has died, even if systemd or a person has restarted
/// it: its clients must be told. No answer from systemd says nothing about the unit, so it is asked again.
const UNIT_CHECK: &str = r#"
until told=$(systemctl show --property=ActiveState,InvocationID "$1"); do sleep 1; done
case $told in
    *ActiveState=active* | *ActiveState=reloading*) ;;
    *) systemctl status --no-pager --full --lines=10 "$1"; exit 1 ;;
esac
case $told in *"$(cat "$HOLDFAST_DIRECTORY/.unit")"*) exit ;; esac
echo "$1 was restarted from outside Holdfast"
exit 1"#;

/// The unit's own processes: its main process, and all that are in its cgroup.
const UNIT_IDENTIFY: &str = r#"
systemctl show --property=MainPID,ControlGroup "$1" |
    sed -n 's/^MainPID=/process /p; s/^ControlGroup=\(.\)/cgroup \1/p'"#;

/// The container's own process, and the addresses at which the engine publishes its ports.
const CONTAINER_IDENTIFY: &str = r#"
"$1" inspect --format="process {{ '{{.State.Pid}}' }}" "$2" || exit
"$1" port "$2" | sed -n 's/^.* -> /address /p'"#;

/// Whether the container is running: its client may still be fetching the image.
const CONTAINER_CHECK: &str = r#"
[ "$("$1" inspect --format="{{ '{{.State.Running}}' }}" "$2" 2>&1)" = true ] || { echo "the container does not run yet"; exit 1; }"#;
/// Fetching an image may take long; if it cannot be fetched, the client ends at once.
const CONTAINER_READY_MS: u64 = 600_000;

/// The extra time of an engine beyond the grace, and the time limit of a job.
const ENGINE_MS: u64 = 20_000;
const JOB_MS: u64 = 3_600_000;

/// A start, and its consequences for the other operations.
pub(crate) struct Driver {
    pub(crate) start: Start,
    pub(crate) stop: Option<Command>,
    pub(crate) identify: Option<Command>,
    pub(crate) check: Option<Check>,
    pub(crate) purge: Option<Command>,
    /// What the container is called, if it is one.
    pub(crate) container: Option<&'static str>,
    /// Whether it enforces limits and the like by itself.
    pub(crate) restricts: bool,
}

/// What else the file says that concerns a start.
#[derive(Clone, Copy)]
pub(crate) struct Surroundings<'a> {
    pub(crate) stop: &'a Stop,
    /// The names of variables.
    pub(crate) environment: &'a [String],
    pub(crate) restrictions: &'a Restrictions,
    /// The data that is kept.
    pub(crate) data: &'a [Mount],
}

impl Driver {
    fn plain(start: Start) -> Self {
        Self { start, stop: None, identify: None, check: None, purge: None, container: None, restricts: false }
    }
}

/// Reads `start`.
pub(crate) fn read(builder: &mut Builder<'_>, node: &Node, around: &Surroundings<'_>) -> Option<Driver> {
    if let Content::Scalar { text, .. } = &node.content
        && !node.is_nothing()
    {
        builder.reading.wrong(node.span, format!("write `start: {{ process: {text:?} }}`"));
        return None;
    }
    let fields = builder.reading.fields(node, "`start`", START_FIELDS);
    let limit = builder.time(&fields, "time-limit", 0).filter(|it| *it > 0);
    let types = ["process", "script", "systemd", "container"];
    if fields.get("container").is_none() {
        kept_data::check_no_paths(around.data, builder.reading);
    }
    let driver = match types.map(|name| fields.get(name)) {
        [Some(process), None, None, None] => {
            let run = builder.line(process, Stage::Run)?;
            let usual = Process::of(run);
            let settle =
                fields.get("settle").map_or(Some(usual.settle_ms), |it| builder.reading.duration_ms(it, "`settle`"));
            Some(Driver::plain(Start::Process(Process { settle_ms: settle?, ..usual })))
        }
        [None, Some(script), None, None] => {
            let run = builder.line(script, Stage::Run)?;
            Some(Driver::plain(Start::Script(Command { run, time_limit_ms: limit.unwrap_or(TIME_LIMIT_MS) })))
        }
        [None, None, Some(unit), None] => {
            let unit = builder.naming(unit, "a unit", Stage::Run)?;
            Some(systemd(&unit, limit.unwrap_or(UNIT_MS), &around.restrictions.unit_settings()))
        }
        [None, None, None, Some(node)] => container(builder, node, limit, around),
        _ => {
            let says = "`start` needs exactly one of `process` (keeps running), `script` (ends), `systemd` (a unit) and `container`";
            builder.reading.not_one_of(&fields, &types, says);
            None
        }
    };
    if let (None, Some((key, _))) = (fields.get("process"), fields.entry("settle")) {
        builder.reading.wrong(key.span, "`settle` applies to a `process`, and there is none");
    }
    if let (Some(Start::Process(_)), Some((key, _))) = (driver.as_ref().map(|it| &it.start), fields.entry("time-limit"))
    {
        builder.reading.wrong(key.span, "`time-limit` applies to commands that end, and this one keeps running");
    }
    driver
}

/// A systemd unit: started, stopped and checked by its name. What systemd reports of a unit that is not up is part of
/// the failure: the unit's own output is nowhere else.
fn systemd(unit: &str, time_limit_ms: u64, settings: &str) -> Driver {
    let shell = |text: &str| program(["/bin/sh", "-c", text, "sh", unit]);
    let command = |text: &str| Command { run: shell(text), time_limit_ms };
    let (start, purge) = match settings {
        "" => (command(UNIT_START), None),
        settings => {
            let text = format!("{UNIT_SETTINGS}{UNIT_START}");
            let run = program(["/bin/sh", "-c", text.as_str(), "sh", unit, settings]);
            (Command { run, time_limit_ms }, Some(command(UNIT_FORGET)))
        }
    };
    Driver {
        start: Start::Script(start),
        stop: Some(command(UNIT_STOP)),
        identify: Some(Command { run: shell(UNIT_IDENTIFY), time_limit_ms: UNIT_ATTEMPT_MS }),
        // It knows for certain: once is enough.
        check: Some(Check {
            ready_within_ms: UNIT_READY_MS,
            attempt_ms: UNIT_ATTEMPT_MS,
            liveness_ms: Some(LIVENESS_MS),
            failures_max: 1,
            ..Check::of(Probe::Command { run: shell(UNIT_CHECK) })
        }),
        purge,
        container: None,
        restricts: true,
    }
}

/// A container, run in the foreground on the network of its VM, under a name that is the component's.
fn container(builder: &mut Builder<'_>, node: &Node, limit: Option<u64>, around: &Surroundings<'_>) -> Option<Driver> {
    let Surroundings { stop, environment, restrictions, data } = *around;
    let fields = match node.content {
        Content::Map { .. } => Some(builder.reading.fields(node, "a container", CONTAINER_FIELDS)),
        _ => None,
    };
    let image = match &fields {
        Some(fields) => {
            if fields.get("image").is_none() {
                builder.reading.missing(fields, &["image"], node.span, "a container needs an `image`");
            }
            fields.get("image")?
        }
        None => node,
    };
    let image = builder.naming(image, "an image", Stage::Run);
    let get = |name: &str| fields.as_ref().and_then(|fields| fields.get(name));
    let mut words = |name: &str| -> Option<Vec<String>> {
        let Some(node) = get(name) else { return Some(Vec::new()) };
        let what = format!("`{name}`");
        let items = builder.reading.items(node, &what);
        items.iter().map(|node| builder.template(node, &what, Stage::Run)).collect()
    };
    let (volumes, options, command) = (words("volumes"), words("options"), words("command"));
    let truths = [("true", true), ("false", false)];
    let job = get("job").map_or(Some(false), |node| builder.reading.one_of(node, "`job`", &truths));
    let engine = match get("engine") {
        Some(node) => builder.naming(node, "an engine", Stage::Run),
        None => Some("docker".into()),
    };
    let (image, volumes, options, command, job, engine) = (image?, volumes?, options?, command?, job?, engine?);
    let mut run = vec![engine.clone(), "run".into(), "--rm".into(), "--name={{ container }}".into()];
    let chooses_network = |option: &String| ["--net", "--publish", "-p"].iter().any(|it| option.starts_with(it));
    if !options.iter().any(chooses_network) {
        run.push("--network=host".into());
    }
    run.extend(environment.iter().map(|name| format!("--env={name}")));
    run.extend(kept_data::volumes(data, builder.reading));
    run.extend(volumes.iter().map(|volume| format!("--volume={volume}")));
    let signal = SIGNALS.iter().find(|(_, signal)| *signal == stop.signal && stop.signal != Signal::default());
    run.extend(signal.map(|(word, _)| format!("--stop-signal={word}")));
    run.extend(restrictions.options());
    run.extend(options);
    run.push(image);
    run.extend(command);
    // A power failure may have left a container of the same name.
    let first = "\"$1\" rm --force \"$2\" > /dev/null 2>&1; shift 2; exec \"$@\"";
    let shell = ["/bin/sh", "-c", first, "sh", engine.as_str(), "{{ container }}"];
    let run = program(shell.into_iter().chain(run.iter().map(String::as_str)));
    let seconds = stop.grace_ms.div_ceil(1_000);
    let time = format!("--time={seconds}");
    let ended = Command {
        run: program([engine.as_str(), "stop", &time, "{{ container }}"]),
        time_limit_ms: stop.grace_ms.saturating_add(ENGINE_MS),
    };
    let purge = "\"$1\" rm --force --volumes \"$2\" > /dev/null 2>&1 || true";
    let purge = program(["/bin/sh", "-c", purge, "sh", engine.as_str(), "{{ container }}"]);
    let is_running = program(["/bin/sh", "-c", CONTAINER_CHECK, "sh", engine.as_str(), "{{ container }}"]);
    let identify = program(["/bin/sh", "-c", CONTAINER_IDENTIFY, "sh", engine.as_str(), "{{ container }}"]);
    Some(Driver {
        start: match job {
            true => Start::Script(Command { run, time_limit_ms: limit.unwrap_or(JOB_MS) }),
            false => Start::Process(Process::of(run)),
        },
        stop: Some(if job { Command { run: program(["true"]), time_limit_ms: TIME_LIMIT_MS } } else { ended }),
        identify: (!job).then_some(Command { run: identify, time_limit_ms: ENGINE_MS }),
        // The engine's client runs for as long as the container does; so only the beginning has to be asked for.
        check: (!job).then_some(Check {
            ready_within_ms: CONTAINER_READY_MS,
            attempt_ms: ENGINE_MS,
            liveness_ms: None,
            ..Check::of(Probe::Command { run: is_running })
        }),
        purge: Some(Command { run: purge, time_limit_ms: TIME_LIMIT_MS }),
        container: Some(CONTAINER_NAME),
        restricts: true,
    })
}

fn program<'a>(words: impl IntoIterator<Item = &'a str>) -> CommandLine {
    CommandLine::Program(words.into_iter().map(str::to_owned).collect())
}
