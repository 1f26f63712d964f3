//! The servers and the browser that some tests run, from Debian's packages. If they are missing and can be installed, they are
//! installed; the services that the packages contain are never started.

use std::{
    fs, io,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Stdio},
};

/// Each package, and a program that it contains.
const PACKAGES: &[(&str, &str)] = &[
    ("nginx", "/usr/sbin/nginx"),
    ("redis-server", "/usr/bin/redis-server"),
    // The client alone contains psql, but not this.
    ("postgresql", "/usr/bin/pg_createcluster"),
    ("python3", "/usr/bin/python3"),
    ("chromium", "/usr/bin/chromium"),
    ("chromium-driver", "/usr/bin/chromedriver"),
];
/// Debian runs it before a service is started; exit code 101 means no.
const POLICY: &str = "/usr/sbin/policy-rc.d";

/// Installs the packages. Where that is not possible it prints a note, and the tests that need them are skipped.
pub(crate) fn ensure() {
    let missing: Vec<&str> =
        PACKAGES.iter().filter(|(_, program)| !Path::new(program).exists()).map(|(package, _)| *package).collect();
    if missing.is_empty() {
        return;
    }
    let names = missing.join(", ");
    if !Path::new("/etc/debian_version").exists() || !is_root() {
        eprintln!(
            "xtask: {names} are not installed, and only root on Debian can install them: the tests that need them will be skipped"
        );
        return;
    }
    eprintln!("xtask: installing {names}");
    if let Err(why) = install(&missing) {
        eprintln!("xtask: {names} cannot be installed ({why}): the tests that need them will be skipped");
    }
}

fn install(packages: &[&str]) -> Result<(), String> {
    let message = |error: io::Error| error.to_string();
    // An existing policy is kept.
    let ours = !Path::new(POLICY).exists();
    if ours {
        fs::write(POLICY, "#!/bin/sh\nexit 101\n").map_err(message)?;
        fs::set_permissions(POLICY, fs::Permissions::from_mode(0o755)).map_err(message)?;
    }
    let words = [&["install", "-y", "--no-install-recommends"], packages].concat();
    // The package list may be missing or old.
    let done = apt(&words).or_else(|_| apt(&["update"]).and_then(|()| apt(&words)));
    if ours {
        fs::remove_file(POLICY).map_err(message)?;
    }
    done
}

fn apt(words: &[&str]) -> Result<(), String> {
    let mut command = Command::new("apt-get");
    command.args(words).env("DEBIAN_FRONTEND", "noninteractive").stdin(Stdio::null()).stdout(Stdio::null());
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("apt-get {} ended with {status}", words.join(" "))),
        Err(error) => Err(format!("apt-get: {error}")),
    }
}

fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output();
    output.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}
