//! Stories of components that are confined: limits that are enforced, another user, fewer privileges, a temporary directory
//! of their own. What this machine or this user cannot enforce must be refused with the reason; the stories look for either.

mod stage;

use protocol::Work;
use serde_json::{Value, json};
use stage::{Stage, eventually, marked, recipe, start, task};
use std::{fs, os::unix::fs::MetadataExt, path::Path};

fn is_root() -> bool {
    rustix::process::getuid().is_root()
}

/// A process that runs these commands and stays.
fn staying(commands: &str, more: &Value) -> Value {
    let mut recipe = recipe(json!({
        "start": { "process": { "run": format!("{commands}; echo ready > ready; exec sleep 1000") } },
        "check": { "probe": { "command": { "run": "test -e ready" } } },
        "stop": { "grace_ms": 500 }
    }));
    for (field, value) in more.as_object().expect("it is a map") {
        recipe[field] = value.clone();
    }
    recipe
}

#[tokio::test]
async fn the_number_of_open_files_is_limited() {
    let mut stage = Stage::new().await;
    let recipe = staying("ulimit -n > files", &json!({ "limits": { "files": 64 } }));
    stage.carry_out(&task(1, &recipe, start())).await;
    assert_eq!(stage.read(1, "files"), "64\n");
    stage.carry_out(&task(2, &recipe, Work::Stop)).await;
}

/// The cgroups of component 1, as its record has them.
fn groups(stage: &Stage) -> Vec<String> {
    let groups = stage.record(1)["run"]["cgroups"].clone();
    serde_json::from_value(groups).unwrap_or_default()
}

/// Starts a component with limits. Says nothing where the machine cannot enforce them; then the reason must be given.
async fn limited(stage: &mut Stage, recipe: &Value) -> bool {
    let start = task(1, recipe, start());
    stage.begin(&start);
    match stage.outcome().await {
        protocol::HostOutcome::Done { .. } => true,
        protocol::HostOutcome::Failed { detail, .. } => {
            assert!(detail.starts_with("limits: ") && detail.contains("cgroup"), "{detail}");
            assert_eq!(marked(&stage.home(1)), [0; 0]);
            eprintln!("left out: {detail}");
            false
        }
        other @ protocol::HostOutcome::Died { .. } => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn limits_on_memory_and_cpu_time_are_set_and_gone_after_the_stop() {
    let mut stage = Stage::new().await;
    let limits = json!({ "limits": { "memory_bytes": 64 << 20, "cpu_thousandths": 1_500 } });
    // A child that leaves the group stays in the cgroup, and is stopped too.
    let recipe = staying("(setsid sleep 1000 &)", &limits);
    if !limited(&mut stage, &recipe).await {
        return;
    }
    let groups = groups(&stage);
    let set = |file: &str| groups.iter().find_map(|group| fs::read_to_string(Path::new(group).join(file)).ok());
    assert_eq!(set("memory.max").or(set("memory.limit_in_bytes")).unwrap(), "67108864\n");
    match set("cpu.max") {
        Some(cpu) => assert_eq!(cpu, "150000 100000\n"),
        None => assert_eq!(set("cpu.cfs_quota_us").unwrap(), "150000\n"),
    }
    let inside = set("cgroup.procs").unwrap();
    assert!(inside.lines().any(|pid| pid == stage.pid(1).to_string()), "{inside}");
    stage.carry_out(&task(2, &recipe, Work::Stop)).await;
    assert_eq!(marked(&stage.home(1)), [0; 0]);
    assert!(groups.iter().all(|group| !Path::new(group).exists()), "{groups:?}");
}

#[tokio::test]
async fn a_component_that_exceeds_its_memory_limit_dies_and_the_reason_is_told() {
    let mut stage = Stage::new().await;
    let eats = "import time\nopen('ready', 'w').close()\nwhile open('go').read() != 'now': time.sleep(0.01)\n\
                it = []\nwhile True: it.append(bytearray(1 << 20))";
    let mut recipe = staying("true", &json!({ "limits": { "memory_bytes": 32 << 20 } }));
    recipe["operations"]["start"] = json!({ "process": { "run": ["python3", "-c", eats] } });
    fs::create_dir_all(stage.home(1)).expect("it can be made");
    fs::write(stage.home(1).join("go"), "wait").expect("it can be written");
    if !limited(&mut stage, &recipe).await {
        return;
    }
    fs::write(stage.home(1).join("go"), "now").expect("it can be written");
    let detail = stage.died(&task(1, &recipe, start())).await;
    let why = "its memory limit of 33554432 bytes was exceeded: ended by signal 9 (KILL)";
    assert!(detail.starts_with(why), "{detail}");
    let record = groups(&stage);
    assert!(record.iter().all(|group| !Path::new(group).exists()), "{record:?}");
}

/// A user that every system has, and that owns nothing.
const OTHER: &str = "nobody";

#[tokio::test]
async fn a_component_runs_as_another_user_that_owns_its_directory() {
    let mut stage = Stage::new().await;
    let more = json!({
        "confinement": { "user": OTHER },
        "files": [{ "path": "secret", "template": "s", "mode": "0600" }]
    });
    let recipe = staying("id -un > who; cat secret > copy; echo $HOME > home", &more);
    let begun = task(1, &recipe, start());
    if !is_root() {
        let why = stage.fail(&begun).await;
        return assert!(why.contains("another user (nobody) needs an agent that runs as root"), "{why}");
    }
    let directory = stage.directory.clone();
    let closed = directory.ancestors().find(|it| fs::metadata(it).is_ok_and(|found| found.mode() & 0o001 == 0));
    if let Some(closed) = closed {
        let why = stage.fail(&begun).await;
        return assert!(why.contains(&format!("{} is closed to it", closed.display())), "{why}");
    }
    stage.carry_out(&begun).await;
    assert_eq!((stage.read(1, "who"), stage.read(1, "copy")), ("nobody\n".into(), "s".into()));
    let owner = fs::metadata(stage.home(1).join("secret")).expect("it is there").uid();
    assert_ne!(owner, 0);
    // Its records stay the agent's own.
    assert_eq!(fs::metadata(stage.place(1).join("record.json")).expect("it is there").uid(), 0);
    stage.carry_out(&task(2, &recipe, Work::Stop)).await;
    assert_eq!(marked(&stage.home(1)), [0; 0]);
    // A directory that it cannot pass through keeps it out.
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(&stage.directory, fs::Permissions::from_mode(0o700)).expect("it is ours");
    let why = stage.fail(&task(3, &recipe, start())).await;
    assert!(why.contains("user nobody cannot reach") && why.contains("chmod o+x"), "{why}");
    let unknown = staying("true", &json!({ "confinement": { "user": "no-such-user" } }));
    let why = stage.fail(&task(4, &unknown, start())).await;
    assert!(why.contains("there is no user \"no-such-user\" on this machine"), "{why}");
}

#[tokio::test]
async fn a_component_gains_no_privileges() {
    let mut stage = Stage::new().await;
    let recipe =
        staying("grep NoNewPrivs /proc/self/status > now", &json!({ "confinement": { "no_new_privileges": true } }));
    stage.carry_out(&task(1, &recipe, start())).await;
    assert_eq!(stage.read(1, "now").split_whitespace().last(), Some("1"));
    stage.carry_out(&task(2, &recipe, Work::Stop)).await;
}

#[tokio::test]
async fn a_component_has_a_temporary_directory_of_its_own() {
    let mut stage = Stage::new().await;
    let mark = format!("holdfast-private-{}", std::process::id());
    let outside = Path::new("/tmp").join(&mark);
    fs::write(&outside, "of the machine").expect("it can be written");
    let commands = format!("test ! -e /tmp/{mark} && echo hidden > seen; echo mine > /tmp/{mark}-mine");
    let recipe = staying(&commands, &json!({ "confinement": { "private_temporary": true } }));
    let begun = task(1, &recipe, start());
    if !is_root() {
        let why = stage.fail(&begun).await;
        assert!(why.contains("a private temporary directory needs an agent that runs as root"), "{why}");
    } else if stage.directory.starts_with("/tmp") {
        assert!(stage.fail(&begun).await.contains("would hide the component's own"));
    } else {
        stage.carry_out(&begun).await;
        assert_eq!(stage.read(1, "seen"), "hidden\n");
        eventually("its file is its own", || stage.place(1).join(format!("temporary/{mark}-mine")).exists()).await;
        assert!(!Path::new(&format!("/tmp/{mark}-mine")).exists());
        stage.carry_out(&task(2, &recipe, Work::Stop)).await;
    }
    fs::remove_file(outside).expect("it is ours");
}
