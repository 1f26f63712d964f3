//! `holdfast token`: access for agents and operators.

use crate::{
    Ending,
    failure::Failure,
    operator::{Operator, OperatorOptions},
    rendering::moment,
    rendering::screen,
    rendering::table::table,
};
use clap::{Args, Subcommand};
use cloud_manager::{
    client::segment,
    document::{JoinToken, NewJoinToken, NewToken, OperatorToken, Role, Token},
};

/// Create, list and revoke tokens
#[derive(Args)]
#[command(after_help = "Example: holdfast token create --vm web --ttl 1h")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Create(Create),
    List(List),
    Revoke(Revoke),
}

/// Create a token with which one agent can join; with --role, a token for an operator
#[derive(Args)]
#[command(after_help = "\
A token is shown only once. It grants access: keep it secret.

Example: holdfast token create --vm web --ttl 1h
         holdfast token create --role read --name dashboard")]
struct Create {
    /// For the agent of this VM only
    #[arg(long, value_name = "NAME", conflicts_with = "role")]
    vm: Option<String>,
    /// How long an agent has to join: 90s, 15m, 1h, 2d
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = seconds, conflicts_with = "role")]
    ttl: u64,
    /// Create a token for an operator with this role: read, operate or admin
    #[arg(long)]
    role: Option<Role>,
    /// Its owner or purpose
    #[arg(long, requires = "role", default_value = "", hide_default_value = true)]
    name: String,
    #[command(flatten)]
    operator: OperatorOptions,
}

/// List the tokens of operators
#[derive(Args)]
#[command(after_help = "Example: holdfast token list")]
struct List {
    #[command(flatten)]
    operator: OperatorOptions,
}

/// Revoke the token of an operator
#[derive(Args)]
#[command(after_help = "Example: holdfast token list; holdfast token revoke 1f2e3d4c")]
struct Revoke {
    /// Its id, as the list shows it
    id: String,
    #[command(flatten)]
    operator: OperatorOptions,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Ending, Failure> {
    match &arguments.command {
        Command::Create(create) => match create.role {
            Some(role) => create_for_operator(create, role)?,
            None => create_for_agent(create)?,
        },
        Command::List(List { operator }) => {
            let tokens: Vec<Token> = Operator::new(operator)?.get("/v1/tokens")?;
            screen::show(operator.json, &tokens, || shown(&tokens))?;
        }
        Command::Revoke(Revoke { id, operator }) => {
            Operator::new(operator)?.delete(&format!("/v1/tokens/{}", segment(id)))?;
            let document = serde_json::json!({ "revoked": id });
            screen::show(operator.json, &document, || format!("token {id} is revoked\n"))?;
        }
    }
    Ok(Ending::Done)
}

fn create_for_operator(create: &Create, role: Role) -> Result<(), Failure> {
    let edit = NewToken { name: create.name.clone(), role };
    let made: OperatorToken = Operator::new(&create.operator)?.post("/v1/tokens", &edit)?;
    screen::show(create.operator.json, &made, || format!("{}\n", made.text))
}

fn create_for_agent(create: &Create) -> Result<(), Failure> {
    let edit = NewJoinToken { vm: create.vm.clone(), good_for_s: Some(create.ttl) };
    let made: JoinToken = Operator::new(&create.operator)?.post("/v1/join-tokens", &edit)?;
    screen::show(create.operator.json, &made, || format!("{}\n", made.text))
}

fn shown(tokens: &[Token]) -> String {
    let row =
        |it: &Token| [it.id.clone(), it.role.to_string(), moment::date_and_time(it.created_at_ms), it.name.clone()];
    table(["TOKEN", "ROLE", "CREATED (UTC)", "NAME"], &tokens.iter().map(row).collect::<Vec<_>>())
}

/// Reads a duration: a number and s, m, h or d.
fn seconds(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is not a duration (write it like 90s, 15m, 1h or 2d)");
    let unit = text.chars().last().ok_or_else(wrong)?;
    let factor = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        _ => return Err(wrong()),
    };
    let number: u64 = text.strip_suffix(unit).and_then(|it| it.parse().ok()).ok_or_else(wrong)?;
    number.checked_mul(factor).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        assert_eq!(["90s", "15m", "1h", "2d"].map(|text| seconds(text).unwrap()), [90, 900, 3_600, 172_800]);
        for wrong in ["", "1", "h", "1y", "-1h", "99999999999999999999d", "18446744073709551615d", "1€"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
