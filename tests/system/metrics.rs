//! Numbers for Prometheus: what a real manager says of itself, and whether the files in `deploy` fit to it.

use crate::site::Site;
use std::{
    collections::BTreeSet,
    fs,
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
};

const THREE_TIER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/applications/three-tier.yaml");
const DEPLOY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy");
const PROMTOOL: &str = "/usr/bin/promtool";

/// The value of a series.
fn value(text: &str, series: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("{series} is missing:\n{text}")).parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_happened_is_counted_and_goes_on_after_a_restart() {
    let mut site = Site::open("metrics");
    site.done(&["apply", THREE_TIER, "--yes"]);
    site.done(&["component", "restart", "shop/mysql[0]"]);
    let before = site.client.text("/metrics").await.unwrap();
    for (series, expected) in [
        ("holdfast_components{state=\"started\"}", 5.0),
        ("holdfast_components{state=\"failed\"}", 0.0),
        ("holdfast_machines{state=\"well\"}", 3.0),
        ("holdfast_bindings{state=\"held\"}", 4.0),
        ("holdfast_changes_total{outcome=\"done\"}", 2.0),
        ("holdfast_change_seconds_count", 2.0),
        ("holdfast_operations_total{operation=\"start\",outcome=\"done\"}", 8.0),
        ("holdfast_operations_total{operation=\"stop\",outcome=\"done\"}", 3.0),
        ("holdfast_changes_under_way", 0.0),
    ] {
        assert!((value(&before, series) - expected).abs() < 0.5, "{series}\n{before}");
    }
    assert!(value(&before, "holdfast_plan_seconds_count") >= 1.0);
    // No name of anything is a label.
    assert!(!before.contains("mysql") && !before.contains("shop"), "{before}");
    site.kill_manager();
    site.restart_manager();
    let after = site.client.text("/metrics").await.unwrap();
    let changes = "holdfast_changes_total{outcome=\"done\"}";
    assert!((value(&after, changes) - value(&before, changes)).abs() < 0.5, "{after}");
    the_files_in_deploy_use_what_there_is(&before);
    check_with_promtool(&before);
}

/// Every name in alert rules and in the Grafana dashboard is one that the manager gives.
fn the_files_in_deploy_use_what_there_is(text: &str) {
    let given: BTreeSet<&str> =
        text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    for file in ["prometheus-alerts.yaml", "grafana-dashboard.json"] {
        let used = fs::read_to_string(Path::new(DEPLOY).join(file)).unwrap();
        let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        for word in used.split(|letter| !is_word(letter)).filter(|word| word.starts_with("holdfast_")) {
            let base =
                ["_total", "_bucket", "_count", "_sum"].iter().find_map(|end| word.strip_suffix(end)).unwrap_or(word);
            assert!(given.contains(base), "{file} uses {word}, and the manager gives {given:?}");
        }
    }
}

/// Prometheus's own tool accepts the rules and the numbers.
fn check_with_promtool(text: &str) {
    if !Path::new(PROMTOOL).exists() {
        eprintln!("skipped: {PROMTOOL} is missing (it comes with Debian's package prometheus)");
        return;
    }
    let rules = Path::new(DEPLOY).join("prometheus-alerts.yaml");
    let checked = Command::new(PROMTOOL).args(["check", "rules"]).arg(rules).output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    let mut command = Command::new(PROMTOOL);
    let command =
        command.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // The tool reads the older format, in which there is no end mark and no info.
    let plain: String = text
        .lines()
        .filter(|line| *line != "# EOF" && !line.contains("holdfast_build"))
        .map(|line| format!("{line}\n"))
        .collect();
    child.stdin.take().unwrap().write_all(plain.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let complaints = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!complaints.contains("error while linting"), "{complaints}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_is_written_as_one_page() {
    let site = Site::open("report");
    site.done(&["apply", THREE_TIER, "--yes"]);
    site.done(&["show", "1", "--html", "change.html"]);
    let page = fs::read_to_string(site.place.join("change.html")).unwrap();
    for part in ["<title>Change 1", "class=\"bar critical\"", "data:image/svg+xml,", "everything that was checked held"]
    {
        assert!(page.contains(part), "{part} is missing");
    }
    assert!(!page.contains("<script") && !page.contains("src=\"http"), "it needs something else");
}
