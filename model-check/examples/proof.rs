//! Explores the abstract systems of `docs/PROOF.md` to the end: `cargo xtask proof`.

use model_check::proof::{binding, import};
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut sound = true;
    for value in [false, true] {
        for lossy in [false, true] {
            let found = binding::explore(value, lossy);
            let (states, moves, most) = (found.states, found.moves, found.notices_max);
            println!("binding value={value} lossy={lossy} states={states} moves={moves} notices={most}");
            if let Some((property, way)) = found.breach {
                println!("broken: {property}");
                way.iter().for_each(|state| println!("  {state:?}"));
                sound = false;
            }
            if let Some(way) = found.unanswered {
                println!("a recall can never be answered:");
                way.iter().for_each(|state| println!("  {state:?}"));
                sound = false;
            }
        }
    }
    let (states, broken) = import::explore();
    println!("import states={states}");
    if let Some(import) = broken {
        println!("broken: {}: {import:?}", protocol::invariant::A1);
        sound = false;
    }
    if sound { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
