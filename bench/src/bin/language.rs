//! How application files scale: tiers that each use the previous one, one to one and all to all, from one instance to ten
//! thousand.
//!
//! ```text
//! cargo run --release -p bench --bin language [-- --svg FILE]
//! ```
//!
//! Each case runs in a process of its own, so that its peak memory is its own. Measured are: reading and checking the
//! file; expanding it (counting, placing, wiring, checking); the difference to the same with one more instance in each
//! tier; the changes of a first deployment; and, where there are not too many bindings, the simulator's prediction of that
//! deployment, as `holdfast plan` makes it. With `--svg`, the curves are drawn.

use application::{Application, Difference, Existing, Expansion, Inputs};
use bench::curves::{Curve, Curves};
use model_check::{
    environment::Line,
    inspector::Pace,
    simulate::{self, Settings, Timing},
};
use protocol::manager::Request;
use std::{
    collections::BTreeMap,
    env,
    error::Error,
    fmt::Write,
    fs,
    process::Command,
    sync::Arc,
    time::{Duration, Instant},
};

const ONE_TO_ONE: [u32; 9] = [1, 2, 5, 10, 20, 50, 100, 1_000, 10_000];
const ALL_TO_ALL: [u32; 9] = [1, 2, 5, 10, 20, 50, 100, 300, 1_000];
/// With more bindings than this, a prediction is measured once.
const ONCE: f64 = 20_000.0;
/// How often each case is measured.
const TURNS: usize = 5;
/// The output of one process for the other: a number for each of these.
const FIELDS: [&str; 8] = ["components", "bindings", "edits", "read", "expand", "difference", "plan", "peak"];

/// One case: the tiers, how they are wired, how many of each, and what was measured.
struct Case {
    tiers: u32,
    way: &'static str,
    instances: u32,
    measured: BTreeMap<&'static str, f64>,
    /// Time, orders and memory of the prediction.
    predicted: [f64; 3],
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let drawing = match words.as_slice() {
        ["measure", tiers, way, instances] => {
            println!("{}", measure(tiers.parse()?, way, instances.parse()?)?);
            return Ok(());
        }
        ["predict", tiers, way, instances] => {
            println!("{}", predict(tiers.parse()?, way, instances.parse()?)?);
            return Ok(());
        }
        ["--svg", path] => Some(*path),
        [] => None,
        _ => return Err("usage: language [--svg FILE]".into()),
    };
    println!(
        "| tiers | wiring | instances | components | bindings | edits | orders | read | expand | grow by one | plan | peak memory | predict | peak memory |"
    );
    println!("|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
    let mut cases = Vec::new();
    for (way, sizes) in [("index", &ONE_TO_ONE[..]), ("all", &ALL_TO_ALL[..])] {
        for tiers in [2, 3] {
            for instances in sizes {
                let case = Case::run(tiers, way, *instances)?;
                println!("{}", case.row());
                cases.push(case);
            }
        }
    }
    if let Some(path) = drawing {
        fs::write(path, curves(&cases).to_svg())?;
    }
    Ok(())
}

impl Case {
    fn run(tiers: u32, way: &'static str, instances: u32) -> Result<Self, Box<dyn Error>> {
        let numbers = |what: &str| -> Result<Vec<f64>, Box<dyn Error>> {
            let case = [what.to_owned(), tiers.to_string(), way.to_owned(), instances.to_string()];
            let output = Command::new(env::current_exe()?).args(&case).output()?;
            if !output.status.success() {
                return Err(format!("{case:?}: {}", String::from_utf8_lossy(&output.stderr)).into());
            }
            let text = String::from_utf8(output.stdout)?;
            Ok(text.split_whitespace().map(str::parse).collect::<Result<_, _>>()?)
        };
        // The minimum of several: other load on this machine can only add to it.
        let least = |what: &str, turns: usize| -> Result<Vec<f64>, Box<dyn Error>> {
            let mut best = numbers(what)?;
            for _ in 1..turns {
                best.iter_mut().zip(numbers(what)?).for_each(|(best, it)| *best = best.min(it));
            }
            Ok(best)
        };
        let measured: BTreeMap<&str, f64> = FIELDS.into_iter().zip(least("measure", TURNS)?).collect();
        // What takes seconds is measured once.
        let turns = if measured["bindings"] > ONCE { 1 } else { TURNS };
        let [seconds, orders, peak] = least("predict", turns)?[..] else {
            return Err("a prediction prints three numbers".into());
        };
        let predicted = [seconds, orders, peak];
        Ok(Self { tiers, way, instances, measured, predicted })
    }

    fn wiring(&self) -> &'static str {
        if self.way == "index" { "one to one" } else { "all to all" }
    }

    fn row(&self) -> String {
        let Self { tiers, instances, measured, predicted, .. } = self;
        let count = |name: &str| measured[name].to_string();
        let time = |name: &str| shown(measured[name]);
        let [predict, orders, memory] = predicted;
        let predict = shown(*predict);
        format!(
            "| {tiers} | {} | {instances} | {} | {} | {} | {orders} | {} | {} | {} | {} | {:.0} MB | {predict} | {memory:.0} MB |",
            self.wiring(),
            count("components"),
            count("bindings"),
            count("edits"),
            time("read"),
            time("expand"),
            time("difference"),
            time("plan"),
            measured["peak"],
        )
    }
}

/// Sizes, and the time to plan.
fn curves(cases: &[Case]) -> Curves {
    let mut curves =
        Curves::new("instances of each tier", ["components and bindings", "milliseconds to plan (dashed: to predict)"]);
    for (way, tiers) in [("index", 2), ("index", 3), ("all", 2), ("all", 3)] {
        let own: Vec<&Case> = cases.iter().filter(|it| it.way == way && it.tiers == tiers).collect();
        let Some(name) = own.first().map(|it| format!("{tiers} tiers, {}", it.wiring())) else { continue };
        let whole = |it: &Case| ["read", "expand", "difference", "plan"].iter().map(|name| it.measured[name]).sum();
        let points = |y: &dyn Fn(&Case) -> f64| -> Vec<(f64, f64)> {
            own.iter().map(|it| (f64::from(it.instances), y(it))).collect()
        };
        let size = points(&|it| it.measured["components"] + it.measured["bindings"]);
        let time = points(&|it| whole(it));
        let predicted = points(&|it| it.predicted[0]);
        curves.add(0, Curve { name: name.clone(), points: size, dashed: false });
        curves.add(1, Curve { name: name.clone(), points: time, dashed: false });
        curves.add(1, Curve { name, points: predicted, dashed: true });
    }
    curves
}

fn measure(tiers: u32, way: &str, instances: u32) -> Result<String, Box<dyn Error>> {
    let begun = Instant::now();
    let application = read(&file(tiers, way, instances))?;
    let read_in = begun.elapsed();
    let begun = Instant::now();
    let before = application.expand(&Existing::default())?;
    let expanded_in = begun.elapsed();
    let begun = Instant::now();
    let larger = read(&file(tiers, way, instances + 1))?;
    let after = larger.expand(&Existing { before: Some(&before), others: &[] })?;
    let difference = Difference::between(&before, &after);
    let compared_in = begun.elapsed();
    if difference.replaces() || difference.removes() {
        return Err("growing touched something that exists".into());
    }
    let begun = Instant::now();
    let empty = Expansion::empty(before.application.clone());
    let all = Difference::between(&empty, &before);
    let planned = all.planned(&empty, &before, &[], all.usual_strategy(&before), &BTreeMap::new());
    let planned_in = begun.elapsed();
    let (components, bindings, edits) = (before.components.len(), before.bindings(), planned.change.edits.len());
    let [read_in, expanded_in, compared_in, planned_in] =
        [read_in, expanded_in, compared_in, planned_in].map(milliseconds);
    Ok(format!("{components} {bindings} {edits} {read_in} {expanded_in} {compared_in} {planned_in} {}", peak_mb()?))
}

/// A first deployment in the simulator, every start a second, messages at once.
fn predict(tiers: u32, way: &str, instances: u32) -> Result<String, Box<dyn Error>> {
    let after = read(&file(tiers, way, instances))?.expand(&Existing::default())?;
    let empty = Expansion::empty(after.application.clone());
    let all = Difference::between(&empty, &after);
    let change = all.planned(&empty, &after, &[], all.usual_strategy(&after), &BTreeMap::new()).change;
    let begun = Instant::now();
    let script: Arc<[Line]> = [Line { request: Request::Make(change), patient: true }].into();
    let mut timing = Timing::uniform(Duration::ZERO);
    timing.operations = BTreeMap::from([(protocol::Operation::Start, simulate::always(Duration::from_secs(1)))]);
    let pace = Pace::Named { whole_every: u64::MAX };
    let settings = Settings { timing, pace, record: true, ..Settings::seeded(0) };
    let (report, _) = simulate::simulate(&script, &settings);
    let took = milliseconds(begun.elapsed());
    if report.violation.is_some() || report.changes.iter().any(|it| it.done.is_none()) {
        return Err("the prediction did not end".into());
    }
    Ok(format!("{took} {} {}", report.messages.orders, peak_mb()?))
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

fn read(text: &str) -> Result<Application, Box<dyn Error>> {
    Ok(Application::read("tiers.yaml", &Inputs::default(), &mut |_| Ok(text.into()))?)
}

fn file(tiers: u32, way: &str, instances: u32) -> String {
    let mut text = String::from("holdfast: 1\napplication: tiers\ntypes:\n");
    let mut vms = String::from("vms:\n");
    let mut components = String::from("components:\n");
    for tier in 0..tiers {
        let (imports, bind) = match tier.checked_sub(1) {
            Some(below) => {
                let imports = format!("    imports: {{ below: {{ export: e{below}, strong: all }} }}\n");
                (imports, format!(", bind: {{ below: {way} }}"))
            }
            None => (String::new(), String::new()),
        };
        let _ = write!(text, "  T{tier}:\n{imports}    exports: {{ e{tier}: {{ values: [host, port] }} }}\n");
        text += "    values: { port: \"{{ free_port() }}\" }\n    operations: { start: { process: \"exec serve {{ port }}\" } }\n";
        let _ = writeln!(vms, "  v{tier}: {{ count: {instances}, cloud: local }}");
        let _ = writeln!(components, "  c{tier}: {{ type: T{tier}, on: v{tier}, count: {instances}{bind} }}");
    }
    text + &vms + &components
}

/// Milliseconds with significant digits only.
fn shown(milliseconds: f64) -> String {
    match milliseconds {
        it if it < 10.0 => format!("{it:.1} ms"),
        it if it < 10_000.0 => format!("{it:.0} ms"),
        it => format!("{:.0} s", it / 1_000.0),
    }
}

/// The peak memory of this process.
fn peak_mb() -> Result<u64, Box<dyn Error>> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("the system does not report VmHWM")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? / 1_024)
}
