//! The proof for every size: the abstract systems explored to the end, by the project's own code and by Spin.
//!
//! Spin is Debian's package `spin`; it needs a C compiler. Where either is missing this says so and leaves Spin out. The
//! argument is in `docs/PROOF.md`.

use std::{fs, path::Path, process::Command};

/// The model for Spin.
const MODEL: &str = "model-check/proof/binding.pml";

/// Flaws that can be switched on in the model; Spin must find each.
const FLAWS: [&str; 3] = ["-DFLAW=1", "-DFLAW=2", "-DFLAW=3"];

/// Explores the abstract systems, and compares them with Spin's.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    let words = ["run", "--quiet", "--package", "model-check", "--example", "proof"];
    let found = output(Command::new(env!("CARGO")).args(words).current_dir(root))?;
    print!("{found}");
    let folder = root.join("target/proof");
    fs::create_dir_all(&folder).map_err(|error| format!("target/proof could not be made: {error}"))?;
    for program in ["spin", "cc"] {
        if output(Command::new(program).arg(if program == "spin" { "-V" } else { "--version" })).is_err() {
            println!("spin: skipped, because {program} is not installed (apt install spin gcc)");
            return Ok(());
        }
    }
    let model = root.join(MODEL);
    for (value, lossy) in [(false, false), (false, true), (true, false), (true, true)] {
        let kinds = [(value, "-DVALUE"), (lossy, "-DLOSSY")];
        let defines: Vec<&str> = kinds.into_iter().filter(|(set, _)| *set).map(|(_, define)| define).collect();
        let (states, errors) = verify(&folder, &model, &defines)?;
        println!("spin value={value} lossy={lossy} states={states} errors={errors}");
        let ours = format!("binding value={value} lossy={lossy} states={states} ");
        if errors != 0 || !found.contains(&ours) {
            return Err(format!("Spin does not agree with the abstract system: {states} states, {errors} errors"));
        }
    }
    for flaw in FLAWS {
        let (_, errors) = verify(&folder, &model, &["-DLOSSY", flaw])?;
        println!("spin {flaw}: {}", if errors > 0 { "found" } else { "not found" });
        if errors == 0 {
            return Err(format!("Spin does not find the flaw {flaw}"));
        }
    }
    Ok(())
}

/// Lets Spin look at every state. Returns how many there are, and how many errors.
fn verify(folder: &Path, model: &Path, defines: &[&str]) -> Result<(u64, u64), String> {
    // Without the optimisations that leave out variables which are never read, states are counted as they are.
    output(Command::new("spin").args(["-o1", "-o2"]).args(defines).arg("-a").arg(model).current_dir(folder))?;
    let words = ["-O1", "-DSAFETY", "-DNOREDUCE", "-o", "pan", "pan.c"];
    output(Command::new("cc").args(words).current_dir(folder))?;
    let report = output(Command::new(folder.join("pan")).args(["-m1000000", "-E"]).current_dir(folder))?;
    let number = |line: &str, place: usize| line.split_whitespace().nth(place).and_then(|word| word.parse().ok());
    let states = report.lines().find(|line| line.contains("states, stored")).and_then(|line| number(line, 0));
    let errors = report.split("errors: ").nth(1).and_then(|rest| number(rest, 0));
    states.zip(errors).ok_or_else(|| format!("Spin's report could not be read:\n{report}"))
}

fn output(command: &mut Command) -> Result<String, String> {
    let done = command.output().map_err(|error| format!("{command:?} could not be run: {error}"))?;
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    match done.status.success() {
        true => Ok(text),
        false => Err(format!("{command:?} failed:\n{text}{}", String::from_utf8_lossy(&done.stderr))),
    }
}
