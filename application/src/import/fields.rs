//! The fields of a service, and what becomes of each.

/// Fields that `docker run` knows: the field, its option, and what sort it is.
pub(super) const OPTIONS: &[(&str, &str, Sort)] = &[
    ("user", "--user", Sort::One),
    ("platform", "--platform", Sort::One),
    ("shm_size", "--shm-size", Sort::One),
    ("mem_limit", "--memory", Sort::One),
    ("mem_reservation", "--memory-reservation", Sort::One),
    ("cpus", "--cpus", Sort::One),
    ("cpuset", "--cpuset-cpus", Sort::One),
    ("cpu_shares", "--cpu-shares", Sort::One),
    ("pids_limit", "--pids-limit", Sort::One),
    ("runtime", "--runtime", Sort::One),
    ("ipc", "--ipc", Sort::One),
    ("pid", "--pid", Sort::One),
    ("privileged", "--privileged", Sort::Flag),
    ("read_only", "--read-only", Sort::Flag),
    ("init", "--init", Sort::Flag),
    ("cap_add", "--cap-add", Sort::Many),
    ("cap_drop", "--cap-drop", Sort::Many),
    ("devices", "--device", Sort::Many),
    ("group_add", "--group-add", Sort::Many),
    ("security_opt", "--security-opt", Sort::Many),
    ("tmpfs", "--tmpfs", Sort::Many),
    ("extra_hosts", "--add-host", Sort::Many),
];

#[derive(Clone, Copy)]
pub(super) enum Sort {
    One,
    Flag,
    Many,
}

/// Fields that have no counterpart, each with what is so instead. Nothing is said where nothing is lost.
pub(super) const LEFT_OUT: &[(&str, &str)] = &[
    ("networks", "every process is on the network of its VM, and reaches the others through its imports"),
    ("network_mode", "every process is on the network of its VM"),
    ("container_name", "a component is called application/name[0]"),
    ("hostname", "a process has the name of its VM"),
    ("domainname", "a process has the name of its VM"),
    ("dns", "a process asks the name servers of its VM"),
    ("dns_search", "a process asks the name servers of its VM"),
    ("external_links", "bind an import to a component of another application: { from: application/component }"),
    ("volumes_from", "say the volumes themselves"),
    ("logging", "what it prints is kept by its agent: holdfast component logs"),
    ("ulimits", "set it where the agent is started"),
    ("sysctls", "set it on the machine"),
    ("develop", "Holdfast watches no sources"),
    ("cgroup_parent", "the agent knows no control groups"),
    ("post_start", "say it in `configure`, or in the command"),
    ("pre_stop", "say it in `stop: { command: … }`"),
    (
        "labels",
        "there is nobody who reads them: whoever found the service by its labels, such as a proxy, needs an import",
    ),
    ("annotations", ""),
    ("attach", ""),
    ("pull_policy", "an image is fetched when the machine does not have it"),
    ("stdin_open", ""),
    ("tty", ""),
    ("extends", ""),
];

/// Fields with a meaning of their own.
pub(super) const FIELDS: &[&str] = &[
    "image",
    "build",
    "command",
    "entrypoint",
    "environment",
    "env_file",
    "ports",
    "expose",
    "depends_on",
    "links",
    "healthcheck",
    "restart",
    "deploy",
    "scale",
    "stop_signal",
    "stop_grace_period",
    "volumes",
    "configs",
    "secrets",
    "working_dir",
    "profiles",
];
