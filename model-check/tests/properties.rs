//! Each property is broken on purpose, once in each mode that claims to evaluate it; and the table of
//! `docs/PROPERTIES.md` is the one that the program gives. `BLESS=1 cargo test -p model-check --test properties` writes it.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod journals;

use model_check::{
    Scenario, World,
    audit::{AGREEMENT, audit},
    explore::{self, Settings},
    property::{
        A1, A2, A3, A4, A5, A6, AS_TOLD, Asked, COVERED, DONE, FAILED, FOLLOWED, KNOWN, MINIMAL, Mode, NEED, ONCE,
        ONE_END, OWN, P1, PATIENCE, PREDICTED, REBOUND, RESTS, STALE, TRUST, VMS, mode,
    },
    sabotage::{self, Saboteur},
    simulate::{self, COMES_BACK, NO_PANIC},
    trace::{self, Trace},
    world::{Event, Input, Output, Part, honest_step},
};
use protocol::{
    ChangeId, CloudManager, ComponentState, Fact, HeldBinding, HostOutcome, HostTask, Instruction, Notice, Values,
    VmAgent, Work, agent,
    manager::{self, CloudTask, News, PhaseKind},
};
use serde_json::{Value, json};
use std::{cell::Cell, collections::BTreeSet, fs, path::Path, rc::Rc};

/// Two components, one of which needs the other.
const PAIR: &str = "vm web : app imports sql strong from database\nvm db : database exports sql\n----\n";

/// A way to break a property: the story, and the step that goes wrong.
struct Case {
    property: &'static str,
    story: String,
    saboteur: Saboteur,
    /// Where it is broken.
    modes: BTreeSet<Mode>,
}

fn case(property: &'static str, story: &str, step: impl Fn(&mut Part, Input) -> Vec<Output> + 'static) -> Case {
    Case { property, story: story.into(), saboteur: Rc::new(step), modes: Mode::ALL.into() }
}

/// A step after which an agent's books are other than they should be.
fn after_agent(change: impl Fn(&mut VmAgent) + 'static) -> impl Fn(&mut Part, Input) -> Vec<Output> {
    move |part, input| {
        let outputs = honest_step(part, input);
        if let Part::Agent(agent) = part {
            change(agent);
        }
        outputs
    }
}

/// A step with other outputs.
fn outputs(change: impl Fn(&Part, &mut Vec<Output>) + 'static) -> impl Fn(&mut Part, Input) -> Vec<Output> {
    move |part, input| {
        let mut outputs = honest_step(part, input);
        change(part, &mut outputs);
        outputs
    }
}

/// A step on another input.
fn inputs(change: impl Fn(&Part, &mut Input) + 'static) -> impl Fn(&mut Part, Input) -> Vec<Output> {
    move |part, mut input| {
        change(part, &mut input);
        honest_step(part, input)
    }
}

/// Changes an agent's books as text.
fn edit_agent(agent: &mut VmAgent, change: impl Fn(&mut Value)) {
    let mut value = serde_json::to_value(&*agent).unwrap();
    change(&mut value);
    *agent = serde_json::from_value(value).unwrap();
}

fn edit_manager(manager: &mut CloudManager, change: impl Fn(&mut Value)) {
    let mut value = serde_json::to_value(&*manager).unwrap();
    change(&mut value);
    *manager = serde_json::from_value(value).unwrap();
}

/// The number of a component on an agent, by its name, if it is in a state.
fn number(agent: &VmAgent, name: &str, state: ComponentState) -> Option<String> {
    let found = agent.components().iter().find(|(_, it)| it.name().as_str() == name && it.state() == state);
    found.map(|(id, _)| id.0.to_string())
}

fn tasks(outputs: &mut [Output]) -> impl Iterator<Item = &mut HostTask> {
    outputs.iter_mut().filter_map(|output| match output {
        Output::Agent(agent::Output::ToHost(task)) => Some(task),
        _ => None,
    })
}

fn told(task: &mut HostTask) -> Option<&mut Vec<HeldBinding>> {
    match &mut task.work {
        Work::Start { bindings } | Work::Rebind { bindings } => Some(bindings),
        _ => None,
    }
}

fn tampered() -> Values {
    serde_json::from_value(json!({ "port": "tampered" })).unwrap()
}

#[allow(clippy::too_many_lines, reason = "one case after the other")]
fn cases() -> Vec<Case> {
    let remove = format!("{PAIR}change incomplete\n  remove database\n----\nchanges done or unfinished\n");
    let still = format!("{PAIR}app started\n");
    let restart = "vm web : app imports sql optional from database\nvm db : database exports sql values port, renews\n\
                   ----\nchange\n  restart database\n----\napp started\n";
    vec![
        case(
            A1,
            &still,
            after_agent(|agent| {
                if let Some(id) = number(agent, "app", ComponentState::Started) {
                    edit_agent(agent, |it| {
                        it["components"][&id]["holdings"]["imports"]["sql"]["need"] = json!({ "Strong": 2 });
                    });
                }
            }),
        ),
        // A loan goes out in the books and is not sent.
        case(
            COVERED,
            &still,
            outputs(|_, outputs| {
                let is_loan =
                    |it: &Output| matches!(it, Output::Agent(agent::Output::ToPeer(_, Notice::Started { .. })));
                outputs.retain(|output| !is_loan(output));
            }),
        ),
        // The provider takes its own recall for the answer.
        case(A2, &remove, |part: &mut Part, input| {
            let mut outputs = honest_step(part, input);
            let recall = outputs.iter().find_map(|output| match output {
                Output::Agent(agent::Output::ToPeer(vm, Notice::UnbindRequired { binding, last })) => {
                    Some((*vm, Notice::UnbindConfirmed { binding: *binding, last: *last }))
                }
                _ => None,
            });
            if let Some((vm, answer)) = recall {
                outputs.extend(honest_step(part, Input::Agent(agent::Input::FromPeer(vm, answer))));
            }
            outputs
        }),
        case(
            A3,
            &still,
            after_agent(|agent| {
                let provider = |it: &agent::Component| it.holdings().iter().next().map(|(_, it)| it.provider_vm());
                let found = agent.components().values().find_map(provider);
                if let Some(vm) = found {
                    edit_agent(agent, |it| it["forgotten"] = json!([vm.0]));
                }
            }),
        ),
        case(
            A4,
            &still,
            after_agent(|agent| {
                if let Some(id) = number(agent, "app", ComponentState::Stopped) {
                    edit_agent(agent, |it| {
                        let all = &mut it["components"][&id]["holdings"]["all"];
                        for holding in all.as_object_mut().into_iter().flat_map(|all| all.values_mut()) {
                            holding["state"] = json!({ "Recalled": { "last": false } });
                        }
                    });
                }
            }),
        ),
        case(
            A5,
            "vm one\n  a exports e, imports f as w optional from b\n  b exports f, imports e as w optional from a\n----\na started\n",
            |part: &mut Part, input| {
                let outputs = honest_step(part, input);
                if let Part::Manager(manager) = part {
                    edit_manager(manager, |it| {
                        for binding in
                            it["book"]["bindings"].as_object_mut().into_iter().flat_map(|all| all.values_mut())
                        {
                            binding["need"] = json!({ "Strong": 1 });
                        }
                    });
                }
                outputs
            },
        ),
        case(
            A6,
            restart,
            inputs(|_, input| {
                if let Input::Agent(agent::Input::FromPeer(_, Notice::Bind { values, .. })) = input {
                    *values = tampered();
                }
            }),
        ),
        case(
            P1,
            "vm web : app imports sql value from database\nvm db : database exports sql values port, prepares\n----\napp started\n",
            inputs(|_, input| {
                if let Input::Agent(agent::Input::FromPeer(_, Notice::Bind { values, .. })) = input {
                    *values = tampered();
                }
            }),
        ),
        case(FAILED, &still, |part: &mut Part, input| {
            let outputs = honest_step(part, input);
            if let Part::Manager(manager) = part {
                edit_manager(manager, |it| {
                    let first = it["book"]["components"].as_object().and_then(|all| all.keys().next().cloned());
                    if let Some(entry) = first.and_then(|entry| entry.parse::<u64>().ok()) {
                        it["book"]["failed"] = json!([entry]);
                    }
                });
            }
            outputs
        }),
        // A stop while the start is under way.
        case(
            ONCE,
            &remove,
            outputs(|_, outputs| {
                let starts = tasks(outputs).find(|task| matches!(task.work, Work::Start { .. })).cloned();
                outputs.extend(
                    starts.map(|task| Output::Agent(agent::Output::ToHost(HostTask { work: Work::Stop, ..task }))),
                );
            }),
        ),
        case(MINIMAL, &still, |part: &mut Part, input| {
            let started =
                |part: &Part| matches!(part, Part::Agent(it) if number(it, "app", ComponentState::Started).is_some());
            let before = started(part);
            let mut outputs = honest_step(part, input);
            let after = started(part);
            if let Part::Agent(agent) = part
                && let Some((id, component)) = agent.components().first_key_value().filter(|_| after && !before)
            {
                let (name, kind) = (component.name().clone(), component.kind().clone());
                let task = HostTask { component: *id, serial: 99, name, kind, work: Work::Stop };
                outputs.push(Output::Agent(agent::Output::ToHost(task)));
            }
            outputs
        }),
        case(DONE, &still, |part: &mut Part, input| {
            let mut outputs = honest_step(part, input);
            if let Part::Manager(manager) = part
                && manager.changes().next().is_some_and(|it| it.phase == Some(PhaseKind::Both))
                && manager.book().components().any(|it| it.condition.is_some())
            {
                edit_manager(manager, |it| it["running"] = json!({}));
                outputs.push(Output::Manager(manager::Output::ToOperator(News::ChangeDone(ChangeId(1)))));
            }
            outputs
        }),
        // The first change is called done while another one is under way.
        case(
            OWN,
            "vm one : a\nvm two\n----\nchange\n  restart a\nchange at any time\n  add b on two\n----\na started\n",
            |part: &mut Part, input| {
                let mut outputs = honest_step(part, input);
                if let Part::Manager(manager) = part {
                    let running: Vec<ChangeId> = manager.changes().map(|it| it.change).collect();
                    if running == [ChangeId(2), ChangeId(3)] && outputs.iter().all(|it| !is_news(it)) {
                        edit_manager(manager, |it| drop(it["running"].as_object_mut().unwrap().remove("2")));
                        let news = News::PhaseDone(ChangeId(2), PhaseKind::Both);
                        outputs.push(Output::Manager(manager::Output::ToOperator(news)));
                    }
                }
                outputs
            },
        ),
        case(
            NEED,
            "vm one : a imports e as s strong 1 from b c\nvm two : b exports e\nvm three : c exports e\n----\nchange\n  need a.s 2\n----\na started\n",
            inputs(|_, input| {
                if let Input::Agent(agent::Input::FromManager(order)) = input
                    && let Instruction::SetNeed { .. } = order.instruction
                {
                    order.instruction = Instruction::RollCall;
                }
            }),
        ),
        case(
            PATIENCE,
            "faults: 1 failure\nvm one : a, retry start 2\n----\na started\n",
            outputs(|_, outputs| {
                for output in outputs {
                    if let Output::Agent(agent::Output::SetAlarm(_, length)) = output {
                        *length += 1;
                    }
                }
            }),
        ),
        case(STALE, &still, |part: &mut Part, input| {
            let old = match (&*part, &input) {
                (
                    Part::Agent(agent),
                    Input::Agent(agent::Input::FromHost(HostOutcome::Done { component, serial, .. })),
                ) => agent.components().get(component).is_some_and(|it| it.serials().0 > *serial),
                _ => false,
            };
            let mut outputs = honest_step(part, input);
            if old {
                outputs.push(Output::Agent(agent::Output::ToManager(protocol::Report {
                    through: protocol::OrderNumber(1),
                    facts: Vec::new(),
                })));
            }
            outputs
        }),
        case(TRUST, &still, |part: &mut Part, input| {
            let lies = matches!(&input, Input::Manager(manager::Input::FromAgent(_, report))
                if report.facts.iter().any(|fact| matches!(fact, Fact::ComponentGone { .. })));
            let mut outputs = honest_step(part, input);
            if lies {
                outputs.push(Output::Manager(manager::Output::ToOperator(News::ChangeDone(ChangeId(1)))));
            }
            outputs
        }),
        case(
            VMS,
            "vm one : a\n----\nchange\n  add vm two : b\nlose two at any time\n----\nb gone\n",
            outputs(|_, outputs| {
                outputs.retain(|output| {
                    !matches!(output, Output::Manager(manager::Output::ToCloud(CloudTask::Destroy(_))))
                });
            }),
        ),
        // A confirmation is lost.
        case(
            RESTS,
            &remove,
            outputs(|_, outputs| {
                outputs.retain(|it| {
                    !matches!(it, Output::Agent(agent::Output::ToPeer(_, Notice::UnbindConfirmed { .. })))
                });
            }),
        ),
        // A component vanishes from its agent's books once it is started.
        case(
            PREDICTED,
            &format!("{PAIR}database started\n"),
            after_agent(|agent| {
                if number(agent, "app", ComponentState::Started).is_some() {
                    edit_agent(agent, |it| it["components"] = json!({}));
                }
            }),
        ),
        case(
            KNOWN,
            &still,
            outputs(|_, outputs| {
                for output in outputs {
                    if let Output::Agent(agent::Output::ToManager(report)) = output {
                        report.facts.retain(|fact| !matches!(fact, Fact::VmIs { .. }));
                    }
                }
            }),
        ),
        case(
            FOLLOWED,
            restart,
            outputs(|_, outputs| {
                for binding in tasks(outputs).filter_map(told).flatten() {
                    binding.values = tampered();
                }
            }),
        ),
        case(
            REBOUND,
            "vm web : app imports sql strong from database, rebinds\nvm db : database exports sql\n----\napp started\n",
            outputs(|_, outputs| tasks(outputs).filter_map(told).for_each(Vec::clear)),
        ),
        // What a component is called depends on whether its provider's notice or its order came first.
        Case {
            modes: [Mode::Explore].into(),
            ..case(ONE_END, &still, |part: &mut Part, input| {
                let parked = matches!(&*part, Part::Agent(agent) if !agent.parked().is_empty());
                let outputs = honest_step(part, input);
                if let Part::Agent(agent) = part
                    && let Some(id) =
                        number(agent, "app", ComponentState::Stopped).filter(|_| parked && agent.parked().is_empty())
                {
                    edit_agent(agent, |it| it["components"][&id]["name"] = json!("other"));
                }
                outputs
            })
        },
        // Nothing goes wrong but the story.
        Case {
            modes: [Mode::Explore, Mode::Simulate, Mode::Replay].into(),
            ..case(AS_TOLD, &format!("{PAIR}app stopped\n"), |part: &mut Part, input| honest_step(part, input))
        },
        Case { modes: [Mode::Simulate].into(), ..forgetful() },
        Case {
            modes: [Mode::Simulate, Mode::Replay].into(),
            ..case(NO_PANIC, &still, |part: &mut Part, input| {
                assert!(
                    !matches!(input, Input::Agent(agent::Input::FromManager(_))),
                    "a machine panics, as it should here"
                );
                honest_step(part, input)
            })
        },
    ]
}

/// A machine that says something else when it is stepped again.
fn forgetful() -> Case {
    let steps = Cell::new(0_u64);
    let story = format!("faults: 2 crashes\n{PAIR}app started\n");
    case(
        COMES_BACK,
        &story,
        outputs(move |part, outputs| {
            steps.set(steps.get() + 1);
            if let Part::Agent(agent) = part {
                let alarm = agent::Alarm::Retry { component: protocol::ComponentId(agent.id().0), serial: steps.get() };
                outputs.push(Output::Agent(agent::Output::Note(agent::Note::AlarmTooLate(alarm))));
            }
        }),
    )
}

fn is_news(output: &Output) -> bool {
    matches!(output, Output::Manager(manager::Output::ToOperator(News::PhaseDone(..) | News::ChangeDone(_))))
}

/// The property that an exploration finds broken, and the way there.
fn explored(scenario: &Scenario) -> Option<(&'static str, Vec<model_check::Action>)> {
    let settings = Settings { threads: 1, states_max: 200_000, ..Settings::full() };
    let breach = explore::explore_scenario(scenario, settings).breach;
    breach.map(|(breach, way)| (breach.property, way))
}

/// The property that simulations find broken.
fn simulated(scenario: &Scenario) -> Option<&'static str> {
    let told = |world: &World, event: &Event| scenario.expected.breach(world, event);
    (0..200).find_map(|seed| {
        let (faults, journal) = (scenario.faults, scenario.faults.crashes > 0);
        let settings = simulate::Settings {
            faults,
            journal,
            record: true,
            failures_per_mille: 500,
            ..simulate::Settings::seeded(seed)
        };
        let (report, _) = simulate::simulate(&scenario.lines, &settings);
        let violation = report.violation.map(|violation| violation.breach.property);
        violation.or_else(|| Some(trace::replay_with(&report.trace?, &told).ok()?.breach?.1.property))
    })
}

/// Runs something while steps go wrong. Almost every step that does is one that the proof for every size does not cover: that is
/// asked for only where it is meant.
fn broken<R>(property: &str, saboteur: &Saboteur, run: impl FnOnce() -> R) -> R {
    sabotage::during(saboteur.clone(), || if property == COVERED { run() } else { sabotage::uncovered(run) })
}

#[test]
fn each_property_is_broken_in_each_mode_that_evaluates_it() {
    let mut wrong = Vec::new();
    for Case { property, story, saboteur, modes } in cases() {
        let scenario = Scenario::parse(property, &story).unwrap();
        let asked: BTreeSet<Mode> =
            Mode::ALL.into_iter().filter(|mode| matches!(mode::asked(property, *mode), Asked::Yes(_))).collect();
        assert_eq!(asked, modes, "{property}: the table and this test differ");
        let trace = |actions| Trace::new(&scenario.lines, scenario.faults, actions);
        let (found, way) = match modes.contains(&Mode::Explore) {
            true => broken(property, &saboteur, || explored(&scenario))
                .map_or((None, None), |(it, way)| (Some(it), Some(way))),
            false => (None, None),
        };
        let mut check = |mode: Mode, found: Option<&str>| {
            if modes.contains(&mode) && found != Some(property) {
                wrong.push(format!("{}: {property:?} is broken, and {found:?} is found", mode.word()));
            }
        };
        check(Mode::Explore, found);
        check(Mode::Simulate, broken(property, &saboteur, || simulated(&scenario)));
        // Without a counterexample, the plain order of events.
        let way = way.unwrap_or_else(|| {
            let mut world = scenario.world();
            let mut actions = Vec::new();
            while let Some(action) = world.actions().into_iter().find(|action| !action.is_fault()) {
                world.apply(action);
                actions.push(action);
            }
            actions
        });
        let told = |world: &World, event: &Event| scenario.expected.breach(world, event);
        let replayed = broken(property, &saboteur, || {
            trace::replay_with(&trace(way.clone()), &told).unwrap().breach.map(|(_, breach)| breach.property)
        });
        check(Mode::Replay, replayed);
        if modes.contains(&Mode::Audit) {
            let audited = broken(property, &saboteur, || {
                let (_, events) = explore::retrace(&scenario.lines, scenario.faults, &way);
                audit(&journals::of(events)).breach.map(|(_, breach)| breach.property)
            });
            check(Mode::Audit, audited);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_property_is_broken_by_a_case() {
    let cases: BTreeSet<&str> = cases().iter().map(|case| case.property).collect();
    let missing: Vec<&str> = mode::all().filter(|it| !cases.contains(it) && *it != AGREEMENT).collect();
    // What one machine received and another did not send is broken in `tests/audit.rs`.
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn the_table_in_the_documentation_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/PROPERTIES.md");
    let page = mode::page();
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, &page).unwrap();
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), page, "run `cargo xtask properties`");
}
