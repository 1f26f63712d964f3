//! How application files grow: tiers that each use the one before, one to one and all to all, from one instance to ten
//! thousand.
//!
//! ```text
//! cargo run --release -p bench --bin language
//! ```
//!
//! Each case runs in a process of its own, so that its peak of memory is its own. Measured are: reading and checking the
//! file; expanding it (counting out, placing, wiring, checking); the difference to the same with one instance more in each
//! tier, and what that asks of the manager.

use deploy::{Application, Difference, Expansion, Inputs, Surroundings};
use std::{
    collections::BTreeMap,
    env,
    error::Error,
    fmt::Write,
    fs,
    process::Command,
    time::{Duration, Instant},
};

const ONE_TO_ONE: [u32; 5] = [1, 10, 100, 1_000, 10_000];
const ALL_TO_ALL: [u32; 4] = [1, 10, 100, 1_000];

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if let [tiers, way, instances] = arguments.as_slice() {
        println!("{}", measure(tiers.parse()?, way, instances.parse()?)?);
        return Ok(());
    }
    println!(
        "| tiers | wiring | instances | components | bindings | read | expand | grow by one, difference | wishes | peak memory |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for (way, sizes) in [("index", &ONE_TO_ONE[..]), ("all", &ALL_TO_ALL[..])] {
        for tiers in [2, 3] {
            for instances in sizes {
                let case = [tiers.to_string(), way.to_owned(), instances.to_string()];
                let output = Command::new(env::current_exe()?).args(&case).output()?;
                if !output.status.success() {
                    return Err(format!("{case:?}: {}", String::from_utf8_lossy(&output.stderr)).into());
                }
                print!("{}", String::from_utf8_lossy(&output.stdout));
            }
        }
    }
    Ok(())
}

fn measure(tiers: u32, way: &str, instances: u32) -> Result<String, Box<dyn Error>> {
    let begun = Instant::now();
    let application = read(&file(tiers, way, instances))?;
    let read_in = begun.elapsed();
    let begun = Instant::now();
    let before = application.expand(&Surroundings::default())?;
    let expanded_in = begun.elapsed();
    let begun = Instant::now();
    let larger = read(&file(tiers, way, instances + 1))?;
    let after = larger.expand(&Surroundings { before: Some(&before), others: &[] })?;
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
    let wiring = if way == "index" { "one to one" } else { "all to all" };
    let (components, bindings, wishes) = (before.components.len(), before.bindings(), planned.change.wishes.len());
    Ok(format!(
        "| {tiers} | {wiring} | {instances} | {components} | {bindings} | {} | {} | {} | {wishes} in {} | {} MB |",
        shown(read_in),
        shown(expanded_in),
        shown(compared_in),
        shown(planned_in),
        peak_kb()? / 1_024,
    ))
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

fn shown(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1_000.0)
}

/// The most memory that this process has had.
fn peak_kb() -> Result<u64, Box<dyn Error>> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("the system does not say how much memory")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}
