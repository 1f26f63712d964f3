//! `holdfast dashboard`: a link that opens the dashboard in a browser.

use crate::{
    Ending,
    failure::Failure,
    operator::{Operator, OperatorOptions},
    rendering::screen,
};
use clap::Args;
use cloud_manager::document::DashboardLink;
use std::{
    env,
    process::{Command, Stdio},
};

/// Open the dashboard in a browser
///
/// Prints a link that is valid once and for two minutes, and opens it. The session has the rights of the token in the access
/// file, lasts twelve hours, and ends when the token is revoked.
#[derive(Args)]
#[command(after_help = "\
The manager's certificate is its own, so a browser asks once whether to trust it.

Example: holdfast dashboard
         holdfast dashboard --no-open")]
pub(crate) struct Arguments {
    /// Only print the link
    #[arg(long)]
    no_open: bool,
    #[command(flatten)]
    operator: OperatorOptions,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Ending, Failure> {
    let operator = Operator::new(&arguments.operator)?;
    let link: DashboardLink = operator.post("/v1/dashboard-links", &serde_json::json!({}))?;
    let address = format!("{}{}", operator.url, link.path);
    let document = serde_json::json!({ "url": address, "expires_at_ms": link.expires_at_ms });
    screen::show(arguments.operator.json, &document, || format!("{address}\n"))?;
    if !arguments.no_open && !arguments.operator.json && has_screen() && !open(&address) {
        anstream::eprintln!("no browser could be started; open the link yourself");
    }
    Ok(Ending::Done)
}

/// Whether a browser has a screen to appear on.
fn has_screen() -> bool {
    cfg!(target_os = "macos") || ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|it| env::var_os(it).is_some())
}

fn open(address: &str) -> bool {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut command = Command::new(program);
    command.arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
