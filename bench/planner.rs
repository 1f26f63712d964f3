//! Measures the planner: time to a proven optimum for known problems, and how it grows with nodes, classes, types and
//! instances. Prints markdown.
//!
//! `planner` measures all of that; `planner FILE…` measures these problems; `planner --again [TYPES]…` measures planning
//! again after a small change; `planner --write DIRECTORY` writes the generated problems as JSON instead, so that other
//! solvers can be given the same ones (`planner_rivals.py`).

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use planner::Progress;
use planner::configuration::Configuration;
use planner::memory::Memory;
use planner::plan::{Plan, PlanError, Status, plan, plan_again};
use planner::problem::Problem;
use planner::zephyrus::read;
use serde_json::{Value, json};

/// Stop looking for a proof after this long.
const LIMIT: Duration = Duration::from_secs(60);

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [] => measure_all(),
        [option, directory] if option == "--write" => {
            for (name, problem) in growth().into_iter().flat_map(|table| table.problems) {
                let path = format!("{directory}/{name}.json");
                std::fs::write(&path, problem.to_string()).unwrap_or_else(|error| panic!("{path}: {error}"));
            }
        }
        [option, types @ ..] if option == "--again" => {
            let types = types.iter().map(|number| number.parse().expect("a number of types"));
            let types: Vec<i64> = types.collect();
            measure_again(if types.is_empty() { &[40, 80, 120, 160, 200] } else { &types });
        }
        [option, ..] if option.starts_with('-') => {
            eprintln!("usage: planner [FILE… | --again [TYPES]… | --write DIRECTORY]");
            std::process::exit(2);
        }
        files => {
            for path in files {
                let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"));
                let problem = read(&text).unwrap_or_else(|error| panic!("{path}: {error}"));
                report(path, &problem);
            }
        }
    }
}

fn measure_all() {
    println!("### Known problems\n");
    println!("| problem | status | objectives | time (median of 5) |\n|---|---|---|---|");
    for name in known() {
        let problem = read(&instance(&name).to_string()).expect("known problems are well formed");
        report(&name, &problem);
    }
    println!("\n### The e-mail pipeline, each step from the configuration of the step before\n");
    for preferences in ["cost; stopped; (sum ?y in components: ?y)", "stopped; cost; (sum ?y in components: ?y)"] {
        println!("Preferences `{preferences}`:\n");
        println!("| step | status | objectives | time (median of 5) |\n|---|---|---|---|");
        let mut today = Configuration::default();
        for (step, name) in ["initial 10K", "+20K", "+50K", "+80K"].iter().enumerate() {
            let mut problem = pipeline(step, preferences);
            problem.today = today;
            today = report(name, &problem).target;
        }
        println!();
    }
    for table in growth() {
        println!("### {}\n", table.title);
        println!("| problem | status | objectives | time (median of 5) |\n|---|---|---|---|");
        for (name, problem) in table.problems {
            let problem = read(&problem.to_string()).expect("generated problems are well formed");
            report(&name, &problem);
        }
        println!();
    }
}

/// Measures planning again after one instance of the first type was added, with and without the memory of the problem before.
fn measure_again(sizes: &[i64]) {
    println!("### Planning again after a small change\n");
    println!(
        "| types | first time | the same again | changed, from nothing | changed, warm | status |\n|---|---|---|---|---|---|"
    );
    for types in sizes {
        let mut file = generated(5, 1_000, *types, 10 * types);
        let before = read(&file.to_string()).expect("generated problems are well formed");
        let specification = file["specification"].as_str().expect("it has one");
        file["specification"] = json!(specification.replacen("m00 = 10", "m00 = 11", 1));
        let after = read(&file.to_string()).expect("generated problems are well formed");
        let mut memory = Memory::default();
        let (first, _) = timed(|go_on| plan_again(&before, &mut memory, go_on));
        let (same, _) = timed(|go_on| plan_again(&before, &mut memory, go_on));
        let (cold, fresh) = timed(|go_on| plan(&after, go_on));
        let (warm, again) = timed(|go_on| plan_again(&after, &mut memory, go_on));
        assert!(
            again.status != Status::Optimal || fresh.status != Status::Optimal || again.objectives == fresh.objectives,
            "a memory changed the answer"
        );
        println!(
            "| {types} | {first:.0} ms | {same:.0} ms | {cold:.0} ms | {warm:.0} ms | {}, {} |",
            fresh.status.word(),
            again.status.word()
        );
    }
}

/// The answer of one solution, and the milliseconds of processor time that it took.
fn timed(solve: impl FnOnce(&mut dyn FnMut(&Progress) -> bool) -> Result<Plan, PlanError>) -> (f64, Plan) {
    let (start, before) = (Instant::now(), processor_time());
    let found = solve(&mut |_| start.elapsed() < LIMIT).expect("the problem can be modelled");
    ((processor_time() - before).as_secs_f64() * 1_000.0, found)
}

/// Processor time of this thread.
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("this is Linux");
    let nanoseconds = text.split(' ').next().and_then(|first| first.parse().ok());
    Duration::from_nanos(nanoseconds.expect("the first field is a number of nanoseconds"))
}

/// Solves a problem a few times and prints a row.
fn report(name: &str, problem: &Problem) -> Plan {
    let mut times = Vec::new();
    let mut answer = None;
    while times.len() < 5 {
        let start = Instant::now();
        let found = plan(problem, &mut |_| start.elapsed() < LIMIT).expect("the problem can be modelled");
        times.push(start.elapsed());
        answer = Some(found);
        // A slow one is measured once.
        if times[0] > Duration::from_secs(5) {
            break;
        }
    }
    times.sort();
    let answer = answer.expect("it was solved at least once");
    let mut values = String::new();
    for objective in &answer.objectives {
        let _ = write!(values, "{} ", objective.value);
    }
    let time = times[times.len() / 2].as_secs_f64() * 1_000.0;
    println!("| {name} | {} | {} | {time:.1} ms |", answer.status.word(), values.trim());
    answer
}

fn instances_directory() -> String {
    concat!(env!("CARGO_MANIFEST_DIR"), "/../planner/tests/instances").to_owned()
}

fn known() -> Vec<String> {
    let text =
        std::fs::read_to_string(format!("{}/expected.json", instances_directory())).expect("it is in the repository");
    let expected: BTreeMap<String, Value> = serde_json::from_str(&text).expect("it is JSON");
    expected.into_keys().collect()
}

fn instance(name: &str) -> Value {
    let path = format!("{}/{name}.json", instances_directory());
    let text = std::fs::read_to_string(path).expect("known problems are in the repository");
    serde_json::from_str(&text).expect("known problems are JSON")
}

/// Instances of each microservice at each step.
const COUNTS: [(&str, [u64; 4]); 12] = [
    ("MessageReceiver", [1, 1, 1, 1]),
    ("MessageParser", [1, 1, 2, 2]),
    ("HeaderAnalyser", [1, 1, 2, 2]),
    ("LinkAnalyser", [1, 1, 2, 2]),
    ("TextAnalyser", [1, 2, 4, 6]),
    ("SentimentAnalyser", [1, 4, 8, 14]),
    ("VirusScanner", [1, 4, 8, 14]),
    ("AttachmentsManager", [1, 2, 4, 6]),
    ("ImageAnalyser", [1, 2, 4, 6]),
    ("NSFWDetector", [1, 4, 8, 14]),
    ("ImageRecognizer", [1, 4, 8, 14]),
    ("MessageAnalyser", [1, 2, 4, 6]),
];

/// The pipeline at a step; each step may draw on forty further nodes of each class.
fn pipeline(step: usize, preferences: &str) -> Problem {
    let mut file = instance("01-email-initial-10k");
    for class in ["c4_large", "c4_xlarge", "c4_2xlarge"] {
        file["locations"][class]["num"] = json!(40 * (step + 1));
    }
    let specification = file["specification"].as_str().expect("it has one");
    let from = specification.find("forall").expect("balancers are alone");
    let to = specification.find(';').expect("it has preferences");
    let counts: Vec<String> = COUNTS.iter().map(|(name, counts)| format!("{name} = {}", counts[step])).collect();
    let requirements = format!("DB = 1 and {} and {}; {preferences}", counts.join(" and "), &specification[from..to]);
    file["specification"] = json!(requirements);
    read(&file.to_string()).expect("the pipeline is well formed")
}

struct Table {
    title: &'static str,
    problems: Vec<(String, Value)>,
}

fn growth() -> Vec<Table> {
    let of = |title, problems: Vec<(String, Value)>| Table { title, problems };
    let row = |name: &str, size: i64, problem: Value| (format!("{name}-{size}"), problem);
    vec![
        of(
            "Growth with identical nodes (10 types, 20 instances)",
            [10, 100, 1_000, 10_000].map(|n| row("nodes", n, generated(1, n, 10, 20))).into(),
        ),
        of(
            "Growth with identical nodes, two instances for each node",
            [10, 100, 1_000, 10_000].map(|n| row("full-nodes", n, generated(1, n, 10, 2 * n))).into(),
        ),
        of(
            "Growth with classes (20 types, 200 instances, 1,000 nodes of each)",
            [1, 3, 5, 10, 20].map(|n| row("classes", n, generated(n, 1_000, 20, 200))).into(),
        ),
        of(
            "Growth with types (5 classes, 10 instances of each type)",
            [5, 10, 20, 40, 80, 120, 160, 200].map(|n| row("types", n, generated(5, 1_000, n, 10 * n))).into(),
        ),
        of(
            "Growth with instances (5 classes, 20 types)",
            [20, 200, 2_000, 20_000].map(|n| row("instances", n, generated(5, 20_000, 20, n))).into(),
        ),
    ]
}

/// A problem of the shape of the largest known one: `classes` of `nodes` each, `types` with `instances` in all.
fn generated(classes: i64, nodes: i64, types: i64, instances: i64) -> Value {
    let mut state = 12_345_u64;
    let mut dice = move |sides: i64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        i64::try_from((state >> 33) % sides.unsigned_abs()).expect("it is below the number of sides")
    };
    let mut components = serde_json::Map::new();
    let mut requirements = Vec::new();
    for number in 0..types {
        let cores = [1, 1, 2, 2, 3, 4, 6][usize::try_from(dice(7)).expect("it is below 7")];
        let memory = 100 * (1 + dice(8));
        let requires = if number >= 5 && dice(3) == 0 { json!({ format!("I{}", number - 5): 1 }) } else { json!({}) };
        let described = json!({
            "resources": { "Cores": cores, "Memory": memory },
            "requires": requires,
            "provides": [ { "ports": [ format!("I{number}") ], "num": -1 } ],
        });
        components.insert(format!("m{number:02}"), described);
        requirements.push(format!("m{number:02} = {}", instances / types));
    }
    let mut locations = serde_json::Map::new();
    for number in 0..classes {
        let size = if classes == 1 { 4 } else { 1 << (number % 3) };
        let (cores, memory) = (2 * size, 400 * size * (1 + number / 3 % 3));
        let cost = 60 * cores + memory / 100 + number % 7;
        let class = json!({ "num": nodes, "cost": cost, "resources": { "Cores": cores, "Memory": memory } });
        locations.insert(format!("c{number:02}"), class);
    }
    json!({
        "components": components,
        "locations": locations,
        "specification": format!("{}; cost; (sum ?x in components: ?x)", requirements.join(" and ")),
    })
}
