//! What a component may use and do: `limits`, `user`, `no-new-privileges`, `private-tmp`.
//!
//! An agent enforces them for processes and scripts. A container's engine and systemd have words of their own for the same
//! things: those of an engine are options, those of systemd are settings of the unit.

use crate::{node::Node, reading::Fields, reading::Reading};
use recipe::{Confinement, Limits};

pub(crate) const LIMITS_FIELDS: &[&str] = &["memory", "cpu", "files"];

/// What a type says of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Restrictions {
    pub(crate) limits: Limits,
    pub(crate) confinement: Confinement,
}

/// Reads the fields of a type.
pub(crate) fn read(fields: &Fields<'_>, reading: &mut Reading) -> Restrictions {
    let mut restrictions = Restrictions::default();
    if let Some(node) = fields.get("limits") {
        let fields = reading.fields(node, "`limits`", LIMITS_FIELDS);
        restrictions.limits = Limits {
            memory_bytes: fields.get("memory").and_then(|node| size(node, reading)),
            cpu_thousandths: fields.get("cpu").and_then(|node| cpus(node, reading)),
            files: fields.get("files").and_then(|node| reading.count(node, "`files`")).map(u64::from),
        };
    }
    let truths = [("true", true), ("false", false)];
    let mut truth = |name: &str| {
        let node = fields.get(name)?;
        reading.one_of(node, &format!("`{name}`"), &truths)
    };
    let (no_new_privileges, private_temporary) = (truth("no-new-privileges"), truth("private-tmp"));
    restrictions.confinement = Confinement {
        user: fields.get("user").and_then(|node| reading.text(node, "a user")).map(str::to_owned),
        no_new_privileges: no_new_privileges.unwrap_or(false),
        private_temporary: private_temporary.unwrap_or(false),
    };
    restrictions
}

fn size(node: &Node, reading: &mut Reading) -> Option<u64> {
    let text = reading.text(node, "`memory`")?;
    let read = read_size(text).filter(|bytes| *bytes > 0);
    if read.is_none() {
        reading.wrong(node.span, format!("`memory` must be a size such as 512M or 2G, not {}", node.in_words()));
    }
    read
}

/// A number of bytes, or of kibibytes, mebibytes, gibibytes or tebibytes.
fn read_size(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit: u64 = match &text[digits.len()..] {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        "T" => 1 << 40,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

fn cpus(node: &Node, reading: &mut Reading) -> Option<u64> {
    let text = reading.text(node, "`cpu`")?;
    let read = read_thousandths(text).filter(|thousandths| *thousandths > 0);
    if read.is_none() {
        let says = format!("`cpu` must be a number of CPUs such as 2 or 1.5, not {}", node.in_words());
        reading.wrong(node.span, says);
    }
    read
}

/// A decimal number with at most three digits behind the point, in thousandths.
fn read_thousandths(text: &str) -> Option<u64> {
    let (whole, fraction) = text.trim().split_once('.').unwrap_or((text.trim(), "0"));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(fraction) || fraction.len() > 3 {
        return None;
    }
    let whole: u64 = whole.parse().ok()?;
    whole.checked_mul(1_000)?.checked_add(format!("{fraction:0<3}").parse().ok()?)
}

impl Restrictions {
    /// As options of an engine's `run`.
    pub(crate) fn options(&self) -> Vec<String> {
        let Self { limits, confinement } = self;
        let mut options = Vec::new();
        options.extend(limits.memory_bytes.map(|bytes| format!("--memory={bytes}")));
        options.extend(limits.cpu_thousandths.map(|it| format!("--cpus={}.{:03}", it / 1_000, it % 1_000)));
        options.extend(limits.files.map(|files| format!("--ulimit=nofile={files}:{files}")));
        options.extend(confinement.user.as_ref().map(|user| format!("--user={user}")));
        options.extend(confinement.no_new_privileges.then(|| "--security-opt=no-new-privileges".to_owned()));
        options.extend(confinement.private_temporary.then(|| "--tmpfs=/tmp".to_owned()));
        options
    }

    /// As settings of a unit; empty if there are none.
    pub(crate) fn unit_settings(&self) -> String {
        let Self { limits, confinement } = self;
        let mut lines = Vec::new();
        lines.extend(limits.memory_bytes.map(|bytes| format!("MemoryMax={bytes}")));
        // In hundredths of one CPU, at least one.
        lines.extend(limits.cpu_thousandths.map(|it| format!("CPUQuota={}%", it.div_ceil(10))));
        lines.extend(limits.files.map(|files| format!("LimitNOFILE={files}")));
        lines.extend(confinement.user.as_ref().map(|user| format!("User={user}")));
        lines.extend(confinement.no_new_privileges.then(|| "NoNewPrivileges=yes".to_owned()));
        lines.extend(confinement.private_temporary.then(|| "PrivateTmp=yes".to_owned()));
        if lines.is_empty() { String::new() } else { format!("[Service]\n{}\n", lines.join("\n")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_cpus_are_read_exactly() {
        assert_eq!(read_size("512M"), Some(512 << 20));
        assert_eq!(read_size("4096"), Some(4096));
        assert_eq!(read_size("2G"), Some(2 << 30));
        for wrong in ["", "M", "1.5G", "512MB", "-1", "99999999999T", "1 G"] {
            assert_eq!(read_size(wrong), None, "{wrong}");
        }
        assert_eq!(
            ["2", "1.5", "0.25", "1.005"].map(read_thousandths),
            [Some(2_000), Some(1_500), Some(250), Some(1_005)]
        );
        for wrong in ["", ".5", "1.", "1.2345", "-1", "1e3", "two"] {
            assert_eq!(read_thousandths(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn an_engine_and_systemd_have_words_of_their_own() {
        let restrictions = Restrictions {
            limits: Limits { memory_bytes: Some(1 << 20), cpu_thousandths: Some(1_250), files: Some(64) },
            confinement: Confinement { user: Some("www".into()), no_new_privileges: true, private_temporary: true },
        };
        assert_eq!(
            restrictions.options().join(" "),
            "--memory=1048576 --cpus=1.250 --ulimit=nofile=64:64 --user=www --security-opt=no-new-privileges --tmpfs=/tmp"
        );
        let lines = "MemoryMax=1048576\nCPUQuota=125%\nLimitNOFILE=64\nUser=www\nNoNewPrivileges=yes\nPrivateTmp=yes";
        assert_eq!(restrictions.unit_settings(), format!("[Service]\n{lines}\n"));
        assert_eq!(Restrictions::default().unit_settings(), "");
    }
}
