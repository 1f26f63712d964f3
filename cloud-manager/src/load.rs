//! Measures loads: asks a Prometheus server, an HTTP endpoint, a command, or components for their output.
//!
//! What is measured comes from outside, so it is limited in size and time, and anything but a number is an error that says so.
//! What follows from a load is decided elsewhere (`application::Wish`).

use crate::handle::ManagerHandle;
use application::Source;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::{Request, body::Bytes, client::conn::http1, header};
use hyper_util::rt::TokioIo;
use protocol::{Name, letter::Question};
use serde_json::Value;
use std::{fmt::Write as _, process::Stdio, time::Duration};
use tokio::{net::TcpStream, process::Command, time::timeout};

/// How long a measurement may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// An answer that is longer than this is not read.
const ANSWER_BYTES_MAX: usize = 1 << 20;
/// So much of a component's output is searched for its last value.
const OUTPUT_BYTES_MAX: u32 = 64 << 10;

/// Why a load could not be measured.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {why}")]
pub(crate) struct NotMeasured {
    what: String,
    why: String,
}

/// Measures one load. `components` are the names of the components of the group that the source names, if it names one.
pub(crate) async fn measure(
    source: &Source,
    components: Vec<Name>,
    manager: &ManagerHandle,
) -> Result<u64, NotMeasured> {
    let measured = async {
        match source {
            Source::Prometheus { url, query } => {
                let url = format!("{}/api/v1/query?query={}", url.trim_end_matches('/'), encoded(query));
                from_prometheus(&get(&url).await?)
            }
            Source::Http { url, field } => from_answer(&get(url).await?, field.as_deref()),
            Source::Command(command) => from_text(&run(command).await?),
            Source::Component { value, .. } => from_components(components, value, manager).await,
        }
    };
    let measured = timeout(PATIENCE, measured).await.unwrap_or_else(|_| Err("no answer within 10 s".to_owned()));
    measured.map_err(|why| NotMeasured { what: source.to_string(), why })
}

async fn get(url: &str) -> Result<Bytes, String> {
    let rest = url.strip_prefix("http://").ok_or("only http:// addresses can be asked")?;
    let (host, path) = match rest.find(['/', '?']) {
        Some(at) if rest[at..].starts_with('/') => (&rest[..at], rest[at..].to_owned()),
        Some(at) => (&rest[..at], format!("/{}", &rest[at..])),
        None => (rest, "/".to_owned()),
    };
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let address = if has_port { host.to_owned() } else { format!("{host}:80") };
    let stream = TcpStream::connect(&address).await.map_err(|error| error.to_string())?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
    let connection = tokio::spawn(connection);
    let request = Request::get(path).header(header::HOST, host).body(Empty::<Bytes>::new());
    let request = request.map_err(|error| error.to_string())?;
    let response = sender.send_request(request).await.map_err(|error| error.to_string())?;
    let status = response.status();
    let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
    connection.abort();
    let body = body.map_err(|error| error.to_string())?.to_bytes();
    if !status.is_success() {
        return Err(format!("the answer is {status}"));
    }
    Ok(body)
}

async fn run(command: &str) -> Result<String, String> {
    let output = Command::new("sh").arg("-c").arg(command).stdin(Stdio::null()).kill_on_drop(true).output().await;
    let output = output.map_err(|error| error.to_string())?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{} {}", output.status, said.lines().last().unwrap_or_default()).trim_end().to_owned());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

async fn from_components(components: Vec<Name>, value: &str, manager: &ManagerHandle) -> Result<u64, String> {
    let mut sum = 0_u64;
    for component in components {
        let question = Question::Output { bytes_max: OUTPUT_BYTES_MAX };
        let output = manager.question(component.clone(), question).await;
        let output = output.map_err(|error| format!("{component}: {error}"))?;
        let last = last_value(&output, value).ok_or_else(|| format!("{component} has not written `{value}=` yet"))?;
        sum = sum.saturating_add(from_text(last).map_err(|why| format!("{component}: {why}"))?);
    }
    Ok(sum)
}

fn last_value<'a>(output: &'a str, name: &str) -> Option<&'a str> {
    output.lines().rev().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix('='))
}

fn from_text(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let number = text.parse::<f64>().map_err(|_| format!("`{}` is not a number", shortened(text)))?;
    whole(number)
}

/// Loads are whole numbers; part of one counts as one.
#[expect(clippy::cast_possible_truncation, reason = "the range is checked first")]
fn whole(number: f64) -> Result<u64, String> {
    if !(0.0..=9e15).contains(&number) {
        return Err(format!("{number} is not a load"));
    }
    Ok(number.ceil() as u64)
}

fn from_answer(body: &[u8], field: Option<&str>) -> Result<u64, String> {
    let text = String::from_utf8_lossy(body);
    let Some(field) = field else { return from_text(&text) };
    let document: Value = serde_json::from_str(&text).map_err(|_| "the answer is not JSON".to_owned())?;
    let found = field.split('.').try_fold(&document, |value, part| match part.parse::<usize>() {
        Ok(place) if value.is_array() => value.get(place),
        _ => value.get(part),
    });
    number_of(found.ok_or_else(|| format!("the answer has no `{field}`"))?)
}

fn number_of(value: &Value) -> Result<u64, String> {
    match value {
        Value::String(text) => from_text(text),
        Value::Number(number) => whole(number.as_f64().unwrap_or(f64::NAN)),
        other => Err(format!("`{}` is not a number", shortened(&other.to_string()))),
    }
}

/// The answer of a Prometheus server: a number with its time, or such a pair for each series.
fn from_prometheus(body: &[u8]) -> Result<u64, String> {
    let document: Value = serde_json::from_slice(body).map_err(|_| "the answer is not JSON".to_owned())?;
    let result = document["data"]["result"].as_array().ok_or("the answer has no result")?;
    if document["data"]["resultType"] == "scalar" {
        return number_of(result.get(1).ok_or("the answer has no value")?);
    }
    if result.is_empty() {
        return Err("the query has no result".to_owned());
    }
    let values = result.iter().map(|series| number_of(&series["value"][1]));
    values.sum::<Result<u64, String>>()
}

fn encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => encoded.push(char::from(byte)),
            other => {
                let _ = write!(encoded, "%{other:02X}");
            }
        }
    }
    encoded
}

fn shortened(text: &str) -> String {
    text.chars().take(40).collect::<String>().escape_debug().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_in_what_sources_answer() {
        assert_eq!(from_text(" 12.3\n"), Ok(13));
        assert_eq!(from_text("many"), Err("`many` is not a number".into()));
        assert_eq!(from_text("-1"), Err("-1 is not a load".into()));
        assert_eq!(from_text("NaN"), Err("NaN is not a load".into()));
        assert_eq!(from_answer(b"{\"queue\": [{\"length\": \"7\"}]}", Some("queue.0.length")), Ok(7));
        assert_eq!(from_answer(b"{}", Some("queue")), Err("the answer has no `queue`".into()));
        let series = |values: &str| format!("{{\"data\":{{\"resultType\":\"vector\",\"result\":[{values}]}}}}");
        let two = series("{\"value\":[1,\"2.5\"]},{\"value\":[1,\"4\"]}");
        assert_eq!(from_prometheus(two.as_bytes()), Ok(7));
        assert_eq!(from_prometheus(series("").as_bytes()), Err("the query has no result".into()));
        let scalar = b"{\"data\":{\"resultType\":\"scalar\",\"result\":[1,\"9\"]}}";
        assert_eq!(from_prometheus(scalar), Ok(9));
        assert_eq!(encoded("sum(rate(x[1m]))"), "sum%28rate%28x%5B1m%5D%29%29");
        assert_eq!(last_value("load=1\nother\n load=25 \n", "load"), Some("25"));
    }
}
