//! Random walks: applications of middle size, random changes, faults, seeds that are kept.
//!
//! A failure prints the seed; the same seed makes the same application, the same script and the same run again.

use model_check::{
    Faults, Line,
    random::Random,
    shapes::{RandomShape, random_script},
    simulate::{Report, Settings, simulate},
};
use std::sync::Arc;

#[test]
fn random_applications_come_to_the_predicted_end() {
    walk(0..120, Faults::default());
}

#[test]
fn repeated_letters_and_crashes_make_no_difference() {
    walk(1_000..1_060, Faults { crashes: 10, breaks: 10, ..Faults::default() });
}

#[test]
fn failed_operations_are_tried_again_until_they_succeed() {
    walk(2_000..2_060, Faults { failures: 20, ..Faults::default() });
}

#[test]
fn components_that_die_come_back() {
    walk(3_000..3_060, Faults { deaths: 10, ..Faults::default() });
}

#[test]
fn lost_vms_are_forgotten() {
    walk(4_000..4_060, Faults { losses: 3, ..Faults::default() });
}

#[test]
fn everything_goes_wrong_at_once() {
    walk(5_000..5_060, Faults { failures: 10, deaths: 10, crashes: 10, breaks: 10, losses: 2 });
}

/// Simulates one run for each seed; in each, every property holds.
fn walk(seeds: std::ops::Range<u64>, faults: Faults) {
    let (mut accepted, mut stopped, mut happened) = (0, 0, 0);
    for seed in seeds {
        let report = check(seed, faults);
        accepted += report.changes.len();
        stopped += report.stopped.len();
        happened += report.faults;
    }
    // Nothing is true only because nothing happened.
    assert!(accepted > 0 && stopped > 0);
    assert_eq!(happened > 0, faults.any());
}

fn check(seed: u64, faults: Faults) -> Report {
    let script = script(seed);
    let settings = Settings { faults, journal: true, ..Settings::seeded(seed) };
    let (report, _) = simulate(&script, &settings);
    if let Some(violation) = &report.violation {
        panic!("{violation}\nto see it again: check({seed}, {faults:?})\n{report}");
    }
    report
}

fn script(seed: u64) -> Arc<[Line]> {
    let mut random = Random::new(seed);
    let vms = usize::try_from(random.within(10..=50)).expect("fifty is a small number");
    random_script(&mut random, RandomShape { vms, components_per_vm_max: 3, changes: 5, retries: 20 })
}
