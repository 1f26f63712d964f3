//! How large an application the simulator can take: `cargo run --release -p model-check --example scale -- [VMS…]`.
//!
//! Deploys layered applications (ten components on each VM, three bindings for each component) and then replaces one per
//! cent of the components that have clients. Prints a table. Processor time is shown next to wall time, because it says
//! more on a machine that has other things to do. Given `--plot FILE` at the end, draws processor time for each VM.
//!
//! What is simulated does not fit into any cache, and with pages of 4 kB the processor looks up more addresses than it
//! remembers. So glibc is asked for large pages, which it must know before the program begins: the program runs itself
//! once more. Given `--small-pages` first, it does not.

mod curves;

use model_check::{
    inspector::Pace,
    shapes::Layered,
    simulate::{Settings, simulate},
};
use std::{os::unix::process::CommandExt, process::Command, sync::Arc, time::Instant};

/// Tells glibc to ask for large pages.
const LARGE_PAGES: (&str, &str) = ("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1");

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let small = arguments.first().is_some_and(|argument| argument == "--small-pages");
    if !small && std::env::var_os(LARGE_PAGES.0).is_none() {
        let error = Command::new("/proc/self/exe").args(&arguments).env(LARGE_PAGES.0, LARGE_PAGES.1).exec();
        eprintln!("without large pages: {error}");
    }
    let sizes: Vec<usize> = arguments.iter().filter_map(|argument| argument.parse().ok()).collect();
    let sizes = if sizes.is_empty() { vec![1_000, 2_000, 5_000, 10_000] } else { sizes };
    println!(
        "| VMs | components | bindings | steps | messages | stopped | wall time | processor time | µs per step | peak memory | in large pages |"
    );
    println!("|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
    let mut curve = Vec::new();
    for vms in sizes {
        let application = Layered::new(vms, 5, 1);
        let script: Arc<[_]> = vec![application.deploy(), application.replace(10)].into();
        let settings = Settings { pace: Pace::Named { whole_every: 5_000_000 }, ..Settings::seeded(1) };
        let (began, worked) = (Instant::now(), processor_seconds());
        let (report, world) = simulate(&script, &settings);
        let (took, worked) = (began.elapsed().as_secs_f64(), processor_seconds() - worked);
        let large = memory_mb("/proc/self/smaps_rollup", "AnonHugePages:");
        drop(world);
        assert_eq!(report.violation, None);
        assert!(report.refused.is_empty(), "{:?}", report.refused.first());
        let (components, bindings) = (application.components(), application.bindings());
        let (steps, messages, stopped) = (report.steps, report.messages.total(), report.stopped.len());
        let each = worked * 1e6 / steps as f64;
        // The most there ever was: it does not go down between rows.
        let memory = memory_mb("/proc/self/status", "VmHWM:");
        println!(
            "| {vms} | {components} | {bindings} | {steps} | {messages} | {stopped} | {took:.1} s | {worked:.1} s | \
             {each:.1} | {memory} MB | {large} MB |"
        );
        curve.push((vms, worked * 1e6 / vms as f64));
    }
    if let [.., option, file] = &arguments[..]
        && option == "--plot"
    {
        let curve = ("ten components and thirty bindings on each VM", curve);
        let plot = curves::plot("µs of processor time for each VM, by number of VMs", &[curve]);
        if let Err(error) = std::fs::write(file, plot) {
            eprintln!("{file}: {error}");
        }
    }
}

/// How long this process has kept a processor busy, as the kernel tells it, in hundredths of a second.
fn processor_seconds() -> f64 {
    let status = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = status.rsplit(')').next().unwrap_or_default();
    let ticks = |place: usize| after_name.split_whitespace().nth(place).and_then(|text| text.parse().ok());
    (ticks(11).unwrap_or(0.0) + ticks(12).unwrap_or(0.0)) / 100.0
}

/// A line about the memory of this process, as the kernel tells it.
fn memory_mb(file: &str, line: &str) -> u64 {
    let status = std::fs::read_to_string(file).unwrap_or_default();
    let found = status.lines().find_map(|it| it.strip_prefix(line));
    found.and_then(|text| text.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) / 1024
}
