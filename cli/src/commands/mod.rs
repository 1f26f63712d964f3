//! The commands: one module each, and the dispatch between them.

mod agent;
pub(crate) mod apply;
pub(crate) mod audit;
mod autoscale;
mod binding;
mod check;
mod completions;
pub(crate) mod component;
mod dashboard;
pub(crate) mod data;
mod demo;
mod explore;
pub(crate) mod history;
mod import;
mod language;
mod manager;
mod optimize;
mod plan;
mod replay;
pub(crate) mod retry;
pub(crate) mod rollout;
mod shop_service;
mod shrink;
mod simulate;
mod status;
mod token;
mod vm;
mod why;

use crate::{Ending, failure::Failure};
use clap::{Parser, Subcommand};

/// Reconfigures distributed applications so that nothing running holds on to something that is not.
#[derive(Parser)]
#[command(name = "holdfast", version, max_term_width = 100)]
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
    Schema(language::SchemaArguments),
    Import(import::Arguments),
    Status(status::Arguments),
    Dashboard(dashboard::Arguments),
    Why(why::Arguments),
    Vm(vm::Arguments),
    Component(component::Arguments),
    Binding(binding::Arguments),
    Data(data::Arguments),
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

/// Runs the command that this process was started with.
pub(crate) fn run() -> Result<Ending, Failure> {
    match Holdfast::parse().command {
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
        Command::Dashboard(arguments) => dashboard::run(&arguments),
        Command::Status(arguments) => status::run(&arguments),
        Command::Why(arguments) => why::run(&arguments),
        Command::Vm(arguments) => vm::run(&arguments),
        Command::Component(arguments) => component::run(&arguments),
        Command::Binding(arguments) => binding::run(&arguments),
        Command::Data(arguments) => data::run(&arguments),
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
    }
}
