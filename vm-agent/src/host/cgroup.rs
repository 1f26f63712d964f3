//! Control groups: limits on memory and CPU time that the kernel enforces for all processes of a component together.
//!
//! Version 2 of the kernel's interface needs a group above that passes the controllers on: the nearest one above the
//! agent in which it may create groups. Root may always; others where the system has delegated one to them. In version
//! 1 each controller has a tree of its own, and a group can be created below any. Where neither is possible, a limit is
//! refused with the reason: a limit that is not enforced would be a lie.

use super::failure::{Attempt, Failure};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::time::{sleep, timeout};

/// The period over which CPU time is counted, in microseconds; the kernel's default.
const PERIOD_US: u64 = 100_000;
/// How long the kernel may take to end a process after SIGKILL.
const AFTER_KILL: Duration = Duration::from_secs(20);
/// The pause before the processes of a group are looked at again.
const PAUSE: Duration = Duration::from_millis(10);

/// A controller that is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Controller {
    /// The memory of all processes together.
    Memory {
        /// At most this many bytes.
        bytes: u64,
    },
    /// The CPU time of all processes together.
    Cpu {
        /// At most this many thousandths of one CPU.
        thousandths: u64,
    },
}

impl Controller {
    fn name(self) -> &'static str {
        match self {
            Self::Memory { .. } => "memory",
            Self::Cpu { .. } => "cpu",
        }
    }

    /// The files to write, and what.
    fn settings(self, is_unified: bool) -> Vec<(&'static str, String)> {
        match (self, is_unified) {
            (Self::Memory { bytes }, true) => vec![("memory.max", bytes.to_string())],
            (Self::Memory { bytes }, false) => vec![("memory.limit_in_bytes", bytes.to_string())],
            (Self::Cpu { thousandths }, is_unified) => {
                let quota = (thousandths.saturating_mul(PERIOD_US) / 1_000).max(1_000);
                match is_unified {
                    true => vec![("cpu.max", format!("{quota} {PERIOD_US}"))],
                    false => {
                        vec![("cpu.cfs_period_us", PERIOD_US.to_string()), ("cpu.cfs_quota_us", quota.to_string())]
                    }
                }
            }
        }
    }
}

/// Creates the groups of a component and sets their limits; returns their directories. Left-over groups of the same name
/// are used again.
pub(super) fn create(name: &str, controllers: &[Controller]) -> Result<Vec<PathBuf>, Failure> {
    if controllers.is_empty() {
        return Ok(Vec::new());
    }
    let own = fs::read_to_string("/proc/self/cgroup").attempt("read /proc/self/cgroup")?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").attempt("read /proc/self/mountinfo")?;
    create_below(&Trees { own: &own, mounts: &mounts }, name, controllers)
}

fn create_below(trees: &Trees<'_>, name: &str, controllers: &[Controller]) -> Result<Vec<PathBuf>, Failure> {
    let mut made: Vec<PathBuf> = Vec::new();
    let unified = trees.unified().filter(|tree| tree.has_all(controllers));
    let is_unified = unified.is_some();
    let outcome = match unified {
        Some(tree) => tree.create(name, controllers).map(|path| made.push(path)),
        None => controllers.iter().try_for_each(|controller| {
            let word = controller.name();
            let parent = trees.separate(word).ok_or_else(|| {
                Failure::new(format!("the kernel offers no cgroup controller `{word}` to this agent"))
            })?;
            let path = parent.join(name);
            make(&path).map_err(|error| refused(&path, &error))?;
            made.push(path);
            Ok(())
        }),
    };
    let outcome = outcome.and_then(|()| {
        for (place, controller) in controllers.iter().enumerate() {
            let path = if is_unified { &made[0] } else { &made[place] };
            for (file, text) in controller.settings(is_unified) {
                fs::write(path.join(file), &text).map_err(|error| refused(&path.join(file), &error))?;
            }
        }
        Ok(())
    });
    match outcome {
        Ok(()) => Ok(made),
        Err(failure) => {
            remove(&made);
            Err(failure)
        }
    }
}

fn refused(path: &Path, error: &io::Error) -> Failure {
    let advice = "run the agent as root, or with a delegated cgroup";
    Failure::new(format!("limits cannot be enforced: {} cannot be written: {error} ({advice})", path.display()))
}

fn make(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

/// Puts a process into groups; its descendants follow it.
pub(super) fn enter(groups: &[PathBuf], pid: i32) -> Result<(), Failure> {
    groups.iter().try_for_each(|group| {
        let path = group.join("cgroup.procs");
        fs::write(&path, pid.to_string()).map_err(|error| refused(&path, &error))
    })
}

/// Kills whatever is left in groups, and removes them. A group that cannot be removed is left behind, empty of limits'
/// subjects or not, and reported in the log.
pub(super) async fn clear(groups: &[PathBuf]) {
    let emptied = async {
        while let Some(left) = Some(processes(groups)).filter(|left| !left.is_empty()) {
            for pid in left.into_iter().filter_map(Pid::from_raw) {
                let _ = kill_process(pid, Signal::KILL);
            }
            sleep(PAUSE).await;
        }
    };
    let _ = timeout(AFTER_KILL, emptied).await;
    remove(groups);
}

fn remove(groups: &[PathBuf]) {
    for group in groups {
        match fs::remove_dir(group) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(group = %group.display(), %error, "cannot remove a cgroup");
            }
            _ => {}
        }
    }
}

/// The processes in groups.
pub(super) fn processes(groups: &[PathBuf]) -> Vec<i32> {
    let text = groups.iter().filter_map(|group| fs::read_to_string(group.join("cgroup.procs")).ok());
    text.flat_map(|text| text.lines().filter_map(|line| line.parse().ok()).collect::<Vec<_>>()).collect()
}

/// How many processes of groups the kernel has killed because their memory was used up.
pub(super) fn memory_kills(groups: &[PathBuf]) -> u64 {
    let files = groups.iter().flat_map(|group| ["memory.events", "memory.oom_control"].map(|file| group.join(file)));
    let text = files.filter_map(|path| fs::read_to_string(path).ok());
    text.map(|text| field(&text, "oom_kill").unwrap_or(0)).sum()
}

fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

/// What the kernel says of the agent's own groups, and of where they are mounted.
struct Trees<'a> {
    /// `/proc/self/cgroup`.
    own: &'a str,
    /// `/proc/self/mountinfo`.
    mounts: &'a str,
}

/// A tree of version 2.
struct UnifiedTree {
    mount: PathBuf,
    /// The agent's own group.
    own: PathBuf,
}

impl Trees<'_> {
    fn unified(&self) -> Option<UnifiedTree> {
        let (mount, root) = self.mounted(|kind, _| kind == "cgroup2")?;
        let own = self.own.lines().find_map(|line| line.strip_prefix("0::"))?;
        Some(UnifiedTree { own: below(&mount, &root, own), mount })
    }

    /// The agent's own group in the tree of one controller, in version 1.
    fn separate(&self, controller: &str) -> Option<PathBuf> {
        let has = |list: &str| list.split(',').any(|it| it == controller);
        let (mount, root) = self.mounted(|kind, options| kind == "cgroup" && has(options))?;
        let own = self.own.lines().find_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            fields.next().filter(|list| has(list))?;
            fields.next()
        })?;
        Some(below(&mount, &root, own))
    }

    /// The mount point of the first file system that fits, and which directory of it is mounted there.
    fn mounted(&self, fits: impl Fn(&str, &str) -> bool) -> Option<(PathBuf, String)> {
        self.mounts.lines().find_map(|line| {
            let (place, kind) = line.split_once(" - ")?;
            let mut kind = kind.split(' ');
            let (name, options) = (kind.next()?, kind.nth(1)?);
            let mut place = place.split(' ').skip(3);
            let (root, mount) = (place.next()?, place.next()?);
            fits(name, options).then(|| (mount.into(), root.to_owned()))
        })
    }
}

/// The directory of a group, given what part of its tree is mounted where.
fn below(mount: &Path, root: &str, group: &str) -> PathBuf {
    let inside = Path::new(group).strip_prefix(root).or_else(|_| Path::new(group).strip_prefix("/"));
    mount.join(inside.unwrap_or(Path::new("")))
}

impl UnifiedTree {
    fn has_all(&self, controllers: &[Controller]) -> bool {
        has(&self.mount.join("cgroup.controllers"), controllers)
    }

    /// Creates a group below the nearest one above the agent that passes the controllers on.
    fn create(&self, name: &str, controllers: &[Controller]) -> Result<PathBuf, Failure> {
        let mut why = None;
        for parent in self.own.ancestors().take_while(|parent| parent.starts_with(&self.mount)) {
            let passes_on = parent.join("cgroup.subtree_control");
            for controller in controllers.iter().filter(|it| !has(&passes_on, &[**it])) {
                // A group that has processes of its own cannot pass anything on; then the next one above may.
                if let Err(error) = fs::write(&passes_on, format!("+{}", controller.name())) {
                    why = Some(refused(&passes_on, &error));
                }
            }
            if !has(&passes_on, controllers) {
                continue;
            }
            match make(&parent.join(name)) {
                Ok(()) => return Ok(parent.join(name)),
                Err(error) => why = Some(refused(&parent.join(name), &error)),
            }
        }
        Err(why.unwrap_or_else(|| Failure::new("limits cannot be enforced: the agent is in no cgroup")))
    }
}

/// Whether a list of controllers has all that are needed.
fn has(list: &Path, controllers: &[Controller]) -> bool {
    let list = fs::read_to_string(list).unwrap_or_default();
    controllers.iter().all(|controller| list.split_whitespace().any(|it| it == controller.name()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID: &str = "\
29 28 0:26 / /sys/fs/cgroup/cpu rw,relatime shared:9 - cgroup cgroup rw,cpu
32 28 0:29 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
38 28 0:35 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";
    const LIMITS: [Controller; 2] = [Controller::Memory { bytes: 1 << 20 }, Controller::Cpu { thousandths: 1_500 }];

    #[test]
    fn each_controller_of_version_1_has_a_tree_of_its_own() {
        let trees = Trees { own: "4:memory:/a/b\n1:cpu:/\n0::/c\n", mounts: HYBRID };
        assert_eq!(trees.separate("memory"), Some("/sys/fs/cgroup/memory/a/b".into()));
        assert_eq!(trees.separate("cpu"), Some("/sys/fs/cgroup/cpu/".into()));
        assert_eq!(trees.separate("pids"), None);
        assert_eq!(trees.unified().map(|tree| tree.own), Some("/sys/fs/cgroup/unified/c".into()));
    }

    #[test]
    fn a_group_inside_a_container_is_found_below_what_is_mounted() {
        assert_eq!(below(Path::new("/cg"), "/docker/1", "/docker/1/x"), Path::new("/cg/x"));
        assert_eq!(below(Path::new("/cg"), "/docker/1", "/"), Path::new("/cg/"));
    }

    #[test]
    fn the_nearest_group_that_passes_controllers_on_is_taken() {
        let mount = std::env::temp_dir().join(format!("holdfast-cgroup-{}", std::process::id()));
        let own = mount.join("slice/agent.service");
        fs::create_dir_all(&own).unwrap();
        fs::write(mount.join("cgroup.controllers"), "cpu io memory").unwrap();
        let tree = UnifiedTree { mount: mount.clone(), own: own.clone() };
        assert!(tree.has_all(&LIMITS));
        // Plain files stand in for the kernel's: writing to them passes nothing on.
        fs::write(own.join("cgroup.subtree_control"), "").unwrap();
        fs::write(mount.join("slice/cgroup.subtree_control"), "cpu memory").unwrap();
        assert_eq!(tree.create("holdfast-1", &LIMITS).unwrap(), mount.join("slice/holdfast-1"));
        fs::write(mount.join("slice/cgroup.subtree_control"), "cpu").unwrap();
        let why = tree.create("holdfast-2", &LIMITS).unwrap_err();
        assert!(why.0.starts_with("limits cannot be enforced: "), "{why}");
        fs::remove_dir_all(mount).unwrap();
    }

    #[test]
    fn limits_are_written_as_the_kernel_reads_them() {
        let [memory, cpu] = LIMITS;
        assert_eq!(memory.settings(true), [("memory.max", "1048576".into())]);
        assert_eq!(memory.settings(false), [("memory.limit_in_bytes", "1048576".into())]);
        assert_eq!(cpu.settings(true), [("cpu.max", "150000 100000".into())]);
        let separate = [("cpu.cfs_period_us", "100000".into()), ("cpu.cfs_quota_us", "150000".into())];
        assert_eq!(cpu.settings(false), separate);
        assert_eq!(field("low 0\noom_kill 3\noom 5\n", "oom_kill"), Some(3));
    }
}
