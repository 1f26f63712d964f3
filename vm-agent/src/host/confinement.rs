//! What a component's processes may do and use: another user, no new privileges, a private temporary directory, limits.
//!
//! Commands are confined by programs of util-linux that run before them in the same process (`unshare`, `setpriv`), and by
//! what the agent sets while the process waits to be released. Whatever cannot be enforced is refused with the reason.

use super::{
    cgroup::{self, Controller},
    component::Component,
    failure::{Attempt, Failure},
    process::ProcessMark,
    record::Run,
    spawn::Invocation,
};
use recipe::{Confinement, Limits};
use rustix::{
    fs::{AtFlags, CWD, Dir, Gid, Mode, OFlags, Uid, chownat, fchown, openat as open},
    process::{Pid, Resource, Rlimit, getuid, prlimit},
};
use std::{
    fs, io,
    os::{
        fd::OwnedFd,
        unix::fs::{MetadataExt, PermissionsExt},
    },
    path::{Path, PathBuf},
};

/// A directory, and not what a link refers to.
const DIRECTORY: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Mounts a directory in place of the temporary ones, then executes the rest.
const PRIVATE_TEMPORARY: &str = r#"mount --bind "$1" /tmp && mount --bind "$1" /var/tmp && shift && exec "$@""#;
/// The directories that it hides.
const TEMPORARY: [&str; 2] = ["/tmp", "/var/tmp"];

/// A user of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
struct User {
    uid: u32,
    gid: u32,
    /// Its name and its home directory, if it is listed.
    listed: Option<(String, String)>,
}

impl User {
    /// The user of a name, or of a number.
    fn find(text: &str, passwd: &str) -> Result<Self, Failure> {
        let number: Option<u32> = text.parse().ok();
        for line in passwd.lines() {
            let fields: Vec<&str> = line.split(':').collect();
            let [name, _, uid, gid, _, home, ..] = fields[..] else { continue };
            let (Ok(uid), Ok(gid)) = (uid.parse(), gid.parse()) else { continue };
            if name == text || Some(uid) == number {
                return Ok(Self { uid, gid, listed: Some((name.into(), home.into())) });
            }
        }
        let unknown = || Failure::new(format!("there is no user {text:?} on this machine"));
        number.map(|uid| Self { uid, gid: uid, listed: None }).ok_or_else(unknown)
    }

    /// The first directory above a path that this user may not pass through.
    fn is_kept_out_by(&self, path: &Path) -> io::Result<Option<PathBuf>> {
        for directory in path.ancestors().skip(1) {
            let found = fs::metadata(directory)?;
            let bit = match () {
                () if found.uid() == self.uid => 0o100,
                () if found.gid() == self.gid => 0o010,
                () => 0o001,
            };
            if self.uid != 0 && found.permissions().mode() & bit == 0 {
                return Ok(Some(directory.into()));
            }
        }
        Ok(None)
    }
}

impl Component {
    /// The command as it is run in a confined component.
    pub(super) fn confined(&self, invocation: Invocation, to: &Confinement) -> Result<Invocation, Failure> {
        if *to == Confinement::default() {
            return Ok(invocation);
        }
        let Invocation { words, mut environment } = invocation;
        let mut first: Vec<String> = Vec::new();
        if to.private_temporary {
            only_root("a private temporary directory")?;
            let directory = self.temporary()?;
            first.extend(["unshare", "--mount", "--propagation=private", "--"].map(String::from));
            first.extend(["/bin/sh", "-c", PRIVATE_TEMPORARY, "holdfast"].map(String::from));
            first.push(directory.display().to_string());
        }
        if to.user.is_some() || to.no_new_privileges {
            installed("setpriv")?;
            first.push("setpriv".into());
        }
        if let Some(user) = &to.user {
            let user = self.user(user)?;
            first.extend([format!("--reuid={}", user.uid), format!("--regid={}", user.gid)]);
            match user.listed {
                Some((name, home)) => {
                    first.push("--init-groups".into());
                    environment.insert("USER".into(), name.clone());
                    environment.insert("LOGNAME".into(), name);
                    environment.insert("HOME".into(), home);
                }
                None => first.push("--clear-groups".into()),
            }
        }
        if to.no_new_privileges {
            first.push("--no-new-privs".into());
        }
        if to.user.is_some() || to.no_new_privileges {
            first.push("--".into());
        }
        first.extend(words);
        Ok(Invocation { words: first, environment })
    }

    /// Lets the component's user own its directory; fails if it cannot be reached.
    pub(super) fn hand_over(&self, to: &Confinement) -> Result<(), Failure> {
        let Some(user) = &to.user else { return Ok(()) };
        let (user, home) = (self.user(user)?, self.directory.home());
        if let Some(directory) = user.is_kept_out_by(&home).attempt("examine its directory")? {
            let (directory, name) = (directory.display(), to.user.as_deref().unwrap_or_default());
            return Err(Failure::new(format!(
                "user {name} cannot reach {}: {directory} is closed to it (chmod o+x {directory}, or use another data directory)",
                home.display()
            )));
        }
        own(&home, &user).attempt(format!("change the owner of {}", home.display()))
    }

    fn user(&self, name: &str) -> Result<User, Failure> {
        let passwd = fs::read_to_string("/etc/passwd").attempt("read /etc/passwd")?;
        let user = User::find(name, &passwd)?;
        if user.uid != getuid().as_raw() {
            only_root(&format!("another user ({name})"))?;
        }
        Ok(user)
    }

    /// Its private temporary directory.
    fn temporary(&self) -> Result<PathBuf, Failure> {
        installed("unshare")?;
        let home = self.directory.home();
        if let Some(hidden) = TEMPORARY.iter().find(|hidden| home.starts_with(hidden)) {
            return Err(Failure::new(format!(
                "a private temporary directory would hide the component's own, which is in {hidden} (use another data directory)"
            )));
        }
        let directory = self.directory.temporary();
        let made = fs::create_dir_all(&directory);
        let made = made.and_then(|()| fs::set_permissions(&directory, fs::Permissions::from_mode(0o1777)));
        made.attempt(format!("create {}", directory.display()))?;
        Ok(directory)
    }

    /// Sets the limits of a process that waits to be released; returns the cgroups that it is in.
    pub(super) fn limit(&self, limits: &Limits, process: &ProcessMark) -> Result<Vec<PathBuf>, Failure> {
        if let Some(files) = limits.files {
            let new = Rlimit { current: Some(files), maximum: Some(files) };
            let set = prlimit(Pid::from_raw(process.pid), Resource::Nofile, new).map_err(io::Error::from);
            set.attempt(format!("limit the number of open files to {files}"))?;
        }
        let memory = limits.memory_bytes.map(|bytes| Controller::Memory { bytes });
        let cpu = limits.cpu_thousandths.map(|thousandths| Controller::Cpu { thousandths });
        let controllers: Vec<Controller> = memory.into_iter().chain(cpu).collect();
        let groups = cgroup::create(&self.cgroup_name(), &controllers)?;
        cgroup::enter(&groups, process.pid)?;
        Ok(groups)
    }

    /// Unique on this machine: several agents may run on it.
    fn cgroup_name(&self) -> String {
        let path = self.shared.settings.directory.as_os_str().as_encoded_bytes();
        let hash = path
            .iter()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
        format!("holdfast-{hash:016x}-{}", self.id.0)
    }
}

/// Adds to a failure that the kernel killed processes because the component's memory was used up.
pub(super) fn explained(failure: Failure, run: &Run) -> Failure {
    match (cgroup::memory_kills(&run.cgroups), run.recipe.limits.memory_bytes) {
        (1.., Some(bytes)) => failure.during(format_args!("its memory limit of {bytes} bytes was exceeded")),
        _ => failure,
    }
}

fn only_root(what: &str) -> Result<(), Failure> {
    match getuid().as_raw() {
        0 => Ok(()),
        uid => Err(Failure::new(format!("{what} needs an agent that runs as root; this one runs as user {uid}"))),
    }
}

/// Fails if a program of util-linux is missing.
fn installed(program: &str) -> Result<(), Failure> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    match std::env::split_paths(&path).any(|directory| directory.join(program).is_file()) {
        true => Ok(()),
        false => Err(Failure::new(format!("the program `{program}` (util-linux) is not installed on this machine"))),
    }
}

/// Gives a directory and all that is in it to a user. Each step goes through an open directory and follows no link, because
/// other processes of that user may change what is in there meanwhile.
fn own(path: &Path, user: &User) -> io::Result<()> {
    let directory = open(CWD, path, DIRECTORY, Mode::empty())?;
    own_all(&directory, user)
}

fn own_all(directory: &OwnedFd, user: &User) -> io::Result<()> {
    let (uid, gid) = (Some(Uid::from_raw(user.uid)), Some(Gid::from_raw(user.gid)));
    fchown(directory, uid, gid)?;
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if [c".", c".."].contains(&name) {
            continue;
        }
        chownat(directory, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW)?;
        // What is no directory cannot be opened as one.
        if let Ok(inner) = open(directory, name, DIRECTORY, Mode::empty()) {
            own_all(&inner, user)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_found_by_name_and_by_number() {
        let passwd = "root:x:0:0:root:/root:/bin/bash\nwww-data:x:33:34:www:/var/www:/usr/sbin/nologin\n";
        let found = User::find("www-data", passwd).unwrap();
        assert_eq!((found.uid, found.gid), (33, 34));
        assert_eq!(User::find("33", passwd).unwrap(), found);
        assert_eq!(User::find("4711", passwd).unwrap(), User { uid: 4711, gid: 4711, listed: None });
        assert_eq!(
            User::find("nobody-at-all", passwd).unwrap_err().0,
            "there is no user \"nobody-at-all\" on this machine"
        );
    }
}
