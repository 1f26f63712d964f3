//! Explores random small applications to the last state.
use model_check::{explore, scenario::arbitrary};
fn main() {
    let from: u64 = std::env::args().nth(1).unwrap().parse().unwrap();
    let to: u64 = std::env::args().nth(2).unwrap().parse().unwrap();
    let (mut total, mut incomplete, mut bad) = (0, 0, 0);
    for seed in from..to {
        let mut state = seed.wrapping_mul(0x9e3779b97f4a7c15);
        let s = arbitrary::scenario(format!("random-{seed}"), |n| {
            state = state.wrapping_add(0x9e3779b97f4a7c15);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58476d1ce4e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d049bb133111eb);
            (z ^ (z >> 31)) % n
        });
        let f = explore::explore(
            &s.lines,
            s.faults,
            explore::Settings { states_max: 300_000, threads: 1, ..Default::default() },
        );
        if f.states > 100_000 {
            eprintln!("seed {seed} {} states complete {}", f.states, f.complete);
        }
        total += f.states;
        incomplete += usize::from(!f.complete);
        if let Some((b, way)) = &f.breach {
            bad += 1;
            println!("seed {seed} BREACH {b} after {} actions", way.len());
            if bad <= 2 {
                println!("{s}");
                let (_, ev) = explore::retrace(&s.lines, s.faults, way);
                for e in ev {
                    println!("  {} => {:?}", e.action, e.outputs);
                }
            }
        }
    }
    println!("states {total} incomplete {incomplete} bad {bad}");
}
