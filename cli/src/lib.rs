//! `holdfast`: the one program that people install.
//!
//! It decides nothing about the protocol. Each command is one file: it reads what it was given, calls the crate that does
//! the work, and shows what came of it. People's output goes to stdout, diagnostics to stderr; `--json` is for programs.
//! Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 130 interrupted.
//!
//! It is a library so that the crate `tests` can build the same program and run it; [`main`] is all that it offers.

mod agent;
mod application_file;
mod apply;
mod audit;
mod autoscale;
mod binding;
mod change;
mod check;
mod completions;
mod component;
mod component_file;
mod component_options;
mod demo;
mod explore;
mod failure;
mod faults;
mod files;
mod helping;
mod history;
mod import;
mod interrupt;
mod language;
mod manager;
mod moment;
mod operator;
mod optimize;
mod past;
mod placing;
mod plain_http;
mod plan;
mod plan_text;
mod progress;
mod progress_of_change;
mod replay;
mod request;
mod rollout;
mod screen;
mod service;
mod shop_service;
mod shrink;
mod simulate;
mod status;
mod story;
mod summary;
mod table;
mod tiers;
mod token;
mod verdict;
mod vm;
mod why;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Reconfigures distributed applications so that nothing running holds on to something that is not.
#[derive(Parser)]
#[command(name = "holdfast", version, disable_help_subcommand = true, max_term_width = 100)]
#[command(after_help = "Example: holdfast demo")]
struct Holdfast {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Demo(demo::Arguments),
    Manager(manager::Arguments),
    Agent(agent::Arguments),
    Plan(plan::Arguments),
    Apply(apply::ApplyArguments),
    Scale(apply::ScaleArguments),
    Rollback(apply::RollbackArguments),
    Autoscale(autoscale::Arguments),
    Check(check::Arguments),
    Cancel(rollout::CancelArguments),
    Promote(rollout::PromoteArguments),
    Reconcile(apply::ReconcileArguments),
    Remove(apply::RemoveArguments),
    Fmt(language::FmtArguments),
    // For editors, once; the list of commands is to fit a screen.
    #[command(hide = true)]
    Schema(language::SchemaArguments),
    Import(import::Arguments),
    Status(status::Arguments),
    Why(why::Arguments),
    Vm(vm::Arguments),
    Component(component::Arguments),
    Binding(binding::Arguments),
    History(history::HistoryArguments),
    Show(history::ShowArguments),
    Token(token::Arguments),
    Explore(explore::Arguments),
    Simulate(simulate::Arguments),
    Replay(replay::Arguments),
    Shrink(shrink::Arguments),
    Audit(audit::Arguments),
    Optimize(optimize::Arguments),
    #[command(hide = true)]
    Completions(completions::ShellArguments),
    #[command(hide = true)]
    Man(completions::ManArguments),
    #[command(hide = true)]
    ShopService(shop_service::Arguments),
}

/// How a command ended that did what it was asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// All is well.
    Done,
    /// It found something wrong, and has shown it.
    Refuted,
    /// Someone said stop before it was done, and it has tidied up.
    Interrupted,
}

/// Runs the command that this process was started with.
pub fn main() -> ExitCode {
    let ending = match Holdfast::parse().command {
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Manager(arguments) => manager::run(&arguments),
        Command::Agent(arguments) => agent::run(&arguments),
        Command::Plan(arguments) => plan::run(&arguments),
        Command::Apply(arguments) => apply::apply(&arguments),
        Command::Scale(arguments) => apply::scale(&arguments),
        Command::Rollback(arguments) => apply::rollback(&arguments),
        Command::Autoscale(arguments) => autoscale::run(&arguments),
        Command::Check(arguments) => check::run(&arguments),
        Command::Cancel(arguments) => rollout::cancel(&arguments),
        Command::Promote(arguments) => rollout::promote(&arguments),
        Command::Reconcile(arguments) => apply::reconcile(&arguments),
        Command::Remove(arguments) => apply::remove(&arguments),
        Command::Fmt(arguments) => language::format(&arguments),
        Command::Schema(arguments) => language::schema(&arguments),
        Command::Import(arguments) => import::run(&arguments),
        Command::Status(arguments) => status::run(&arguments),
        Command::Why(arguments) => why::run(&arguments),
        Command::Vm(arguments) => vm::run(&arguments),
        Command::Component(arguments) => component::run(&arguments),
        Command::Binding(arguments) => binding::run(&arguments),
        Command::History(arguments) => history::run(&arguments),
        Command::Show(arguments) => history::show(&arguments),
        Command::Token(arguments) => token::run(&arguments),
        Command::Explore(arguments) => explore::run(&arguments),
        Command::Simulate(arguments) => simulate::run(&arguments),
        Command::Replay(arguments) => replay::run(&arguments),
        Command::Shrink(arguments) => shrink::run(&arguments),
        Command::Audit(arguments) => audit::run(&arguments),
        Command::Optimize(arguments) => optimize::run(&arguments),
        Command::Completions(arguments) => completions::run(&arguments),
        Command::Man(arguments) => completions::write_manual(&arguments),
        Command::ShopService(arguments) => shop_service::run(&arguments),
    };
    match ending {
        Ok(Ending::Done) => ExitCode::SUCCESS,
        Ok(Ending::Refuted) => ExitCode::FAILURE,
        Ok(Ending::Interrupted) => ExitCode::from(130),
        // Whoever reads has seen enough.
        Err(failure) if failure.is_broken_pipe() => ExitCode::SUCCESS,
        Err(failure) => {
            failure.tell();
            if matches!(failure, failure::Failure::Usage(_)) { ExitCode::from(2) } else { ExitCode::FAILURE }
        }
    }
}
