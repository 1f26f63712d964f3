//! The cost of the real programs on this machine: a manager, agents, and the messages between them.
//!
//! ```text
//! cargo build --release --package cli --package bench
//! target/release/real chain|tiers|many|idle [DIRECTORY]
//! ```
//!
//! | word | what is measured |
//! |---|---|
//! | `chain` | 15 components in a chain on 15 agents, whose operations do nothing: from the request to the end of the change |
//! | `tiers` | 48 agents in 3 tiers, one to one, 0.2 s for each start: deploy, and replace one provider |
//! | `many` | 10 components on each of 10, 30 and 100 agents, in 5 tiers; operations do nothing, then processes |
//! | `idle` | memory and processor time of an idle agent, and of a manager with 100 agents |
//!
//! Everything is started here, on loopback, and ended by process id. The directory is for data; the default is the
//! system's directory for temporary files.

use bench::site::{Outcome, Site};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const ROUNDS: usize = 11;
const CHAIN: usize = 15;
const TIERS: usize = 3;
const COLUMNS: usize = 16;
const START_S: f64 = 0.2;
/// How long idle programs are observed.
const WATCHED: Duration = Duration::from_secs(10);
/// The kernel counts processor time in hundredths of a second.
const TICKS_PER_S: f64 = 100.0;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let what = arguments.next().unwrap_or_default();
    let parent = arguments.next().map_or_else(std::env::temp_dir, PathBuf::from);
    println!("load average {}", fs::read_to_string("/proc/loadavg")?.trim());
    match what.as_str() {
        "chain" => chain(&parent).await,
        "tiers" => tiers(&parent).await,
        "many" => many(&parent).await,
        "idle" => idle(&parent).await,
        _ => Err("usage: real chain|tiers|many|idle [DIRECTORY]".into()),
    }
}

/// A component with these operations; it needs the one below it, or nothing.
fn component(name: &str, vm: usize, needs: bool, operations: &Value) -> Value {
    let imports = if needs { json!({ "below": { "export": "service" } }) } else { json!({}) };
    json!({ "add-component": {
        "name": name, "vm": format!("vm{vm}"), "imports": imports, "exports": { "service": {} },
        "recipe": { "version": 1, "operations": operations },
    }})
}

fn bind(client: &str, provider: &str) -> Value {
    json!({ "bind": format!("{client}.below → {provider}.service") })
}

fn remove(name: &str) -> Value {
    json!({ "remove-component": name })
}

async fn chain(parent: &Path) -> Outcome<()> {
    let mut site = Site::open(parent)?;
    site.add_agents(CHAIN as u64).await?;
    let names: Vec<String> = (0..CHAIN).map(|place| format!("link{place}")).collect();
    let mut up: Vec<Value> = Vec::new();
    for (place, name) in names.iter().enumerate() {
        up.push(component(name, place, place > 0, &json!({})));
    }
    up.extend(names.windows(2).map(|pair| bind(&pair[1], &pair[0])));
    let down: Vec<Value> = names.iter().map(|name| remove(name)).collect();
    let mut samples = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        samples[0].push(site.make(up.clone()).await?.0);
        samples[1].push(site.make(down.clone()).await?.0);
    }
    let first = samples[0].remove(0);
    println!("chain of {CHAIN}, up, the first time (agents meet): {first:.1?}");
    for (what, samples) in ["up", "down"].iter().zip(samples) {
        println!("chain of {CHAIN}, {what}: {}", told(&samples));
    }
    site.close().await
}

async fn tiers(parent: &Path) -> Outcome<()> {
    let mut site = Site::open(parent)?;
    site.add_agents((TIERS * COLUMNS) as u64).await?;
    let operations = json!({
        "start": { "script": { "run": ["sleep", START_S.to_string()] } },
        "stop": { "command": { "run": ["true"] } },
    });
    let name = |tier: usize, column: usize| format!("t{tier}c{column}");
    let add = |tier, column| component(&name(tier, column), tier * COLUMNS + column, tier > 0, &operations);
    let places = || (0..TIERS).flat_map(|tier| (0..COLUMNS).map(move |column| (tier, column)));
    let mut deploy: Vec<Value> = places().map(|(tier, column)| add(tier, column)).collect();
    deploy.extend(places().filter(|(tier, _)| *tier > 0).map(|(tier, it)| bind(&name(tier, it), &name(tier - 1, it))));
    let replace = vec![remove("t0c0"), add(0, 0), bind("t1c0", "t0c0")];
    let undo: Vec<Value> = places().map(|(tier, column)| remove(&name(tier, column))).collect();
    let mut samples = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        samples[0].push(site.make(deploy.clone()).await?.0);
        samples[1].push(site.make(replace.clone()).await?.0);
        site.make(undo.clone()).await?;
    }
    let critical = Duration::from_secs_f64(START_S * TIERS as f64);
    println!("deploy, the first time (agents meet): {:.1?}", samples[0].remove(0));
    for (what, samples) in ["deploy", "replace"].iter().zip(samples) {
        let over = 100.0 * (median(&samples).as_secs_f64() / critical.as_secs_f64() - 1.0);
        println!(
            "{what} {} agents: {}, critical path {critical:.1?}, over {over:.1} %",
            TIERS * COLUMNS,
            told(&samples)
        );
    }
    site.close().await
}

async fn many(parent: &Path) -> Outcome<()> {
    let nothing = json!({});
    let process = json!({ "start": { "process": { "run": ["sleep", "1000"] } } });
    for agents in [10, 30, 100] {
        let mut site = Site::open(parent)?;
        let began = Instant::now();
        site.add_agents(agents).await?;
        println!("{agents} agents join: {:.2?}", began.elapsed());
        let agents = usize::try_from(agents)?;
        let (count, tier) = (10 * agents, 2 * agents);
        let names: Vec<String> = (0..count).map(|number| format!("c{number}")).collect();
        for (what, operations) in [("nothing", &nothing), ("processes", &process)] {
            // Each is below another, on the next agent.
            let below = |number: usize| number.checked_sub(tier).map(|it| it - it % tier + (it + 1) % tier);
            let place = |number: usize| number % agents;
            let add = |number: usize| component(&names[number], place(number), below(number).is_some(), operations);
            let mut up: Vec<Value> = (0..count).map(add).collect();
            up.extend((0..count).filter_map(|number| Some(bind(&names[number], &names[below(number)?]))));
            let down: Vec<Value> = names.iter().map(|name| remove(name)).collect();
            let mut samples = [Vec::new(), Vec::new()];
            for _ in 0..3 {
                samples[0].push(site.make(up.clone()).await?.0);
                samples[1].push(site.make(down.clone()).await?.0);
            }
            let [up, down] = samples;
            println!("{count} components on {agents} agents, {what}: up {}; down {}", told(&up), told(&down));
        }
        site.close().await?;
    }
    Ok(())
}

async fn idle(parent: &Path) -> Outcome<()> {
    let mut site = Site::open(parent)?;
    site.add_agents(1).await?;
    let agent = process_of(&site.agents().next().ok_or("no agent")?)?;
    watch("an agent without components", &[agent]).await?;
    watch("a manager with 1 agent", &[site.manager()]).await?;
    let process = json!({ "start": { "process": { "run": ["sleep", "1000"] } } });
    site.make((0..10).map(|number| component(&format!("c{number}"), 0, false, &process)).collect()).await?;
    watch("an agent with 10 components", &[agent]).await?;
    site.add_agents(99).await?;
    watch("a manager with 100 agents", &[site.manager()]).await?;
    let agents: Vec<u32> = site.agents().map(|place| process_of(&place)).collect::<Outcome<_>>()?;
    watch("100 agents", &agents).await?;
    site.close().await
}

/// The process of the agent with this data directory.
fn process_of(place: &Path) -> Outcome<u32> {
    vm_agent::Presence::of(place).map(|presence| presence.pid().unsigned_abs()).ok_or_else(|| "an agent is gone".into())
}

async fn watch(what: &str, processes: &[u32]) -> Outcome<()> {
    // Lets previous work finish.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let before = processor_s(processes)?;
    tokio::time::sleep(WATCHED).await;
    let used = processor_s(processes)? - before;
    let mut memory = 0.0;
    for process in processes {
        let status = fs::read_to_string(format!("/proc/{process}/status"))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
        memory += line.trim().trim_end_matches(" kB").trim().parse::<f64>()? / 1024.0;
    }
    println!("{what}: {memory:.1} MB resident, {used:.2} s of processor time in {WATCHED:?}");
    Ok(())
}

fn processor_s(processes: &[u32]) -> Outcome<f64> {
    let mut ticks = 0.0;
    for process in processes {
        let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
        let fields = stat.rsplit_once(')').ok_or("no name")?.1.split_whitespace();
        // The 14th and 15th of the manual page.
        for field in fields.skip(11).take(2) {
            ticks += field.parse::<f64>()?;
        }
    }
    Ok(ticks / TICKS_PER_S)
}

fn median(samples: &[Duration]) -> Duration {
    let mut sorted = samples.to_vec();
    sorted.sort();
    sorted[sorted.len() / 2]
}

fn told(samples: &[Duration]) -> String {
    let (best, worst) = (samples.iter().min().copied(), samples.iter().max().copied());
    let spread = best.zip(worst).map_or(String::new(), |(best, worst)| format!(" ({best:.1?} to {worst:.1?})"));
    format!("median {:.1?}{spread} of {}", median(samples), samples.len())
}
