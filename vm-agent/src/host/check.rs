//! Readiness and liveness checks of a component.

use super::{
    command::Step,
    component::Component,
    failure::{Attempt, Failure},
    owner::Owner,
    record::Run,
    running::Running,
    spawn::Invocation,
};
use recipe::{Check, Listener, Probe, template::View};
use std::{io, net::IpAddr, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{Instant, sleep, timeout},
};

/// The shortest pause between two attempts, unless the interval is shorter.
const PAUSE_MIN: Duration = Duration::from_millis(5);
/// The pause is this fraction of the time waited so far, up to the interval: readiness is noticed late by at most this
/// fraction of what it took, and a slow component is not asked all the time.
const LATENESS: u32 = 20;
/// At most this many bytes of an HTTP response are read.
const ANSWER_BYTES_MAX: usize = 1024;

/// A check with all templates rendered.
#[derive(Clone, Debug)]
pub(super) struct Question {
    target: ProbeTarget,
    check: Check,
    owner: Arc<Owner>,
}

#[derive(Clone, Debug)]
enum ProbeTarget {
    Tcp { host: String, port: u16 },
    Http { host: String, port: u16, path: String },
    Command(Invocation),
}

impl Question {
    pub(super) fn of(check: &Check, component: &Component, view: &View<'_>, run: &Run) -> Result<Self, Failure> {
        let target = match &check.probe {
            Probe::Tcp { port, host } => {
                let port = view.render("check port", port)?;
                let port = port.trim().parse().map_err(|_| Failure::new(format!("check: {port:?} is not a port")))?;
                let host = host.as_ref().map(|host| view.render("check host", host)).transpose()?;
                ProbeTarget::Tcp { host: host.unwrap_or_else(|| reachable(view.host).to_string()), port }
            }
            Probe::Http { url } => {
                let url = view.render("check url", url)?;
                parse(url.trim()).ok_or_else(|| Failure::new(format!("check: {url:?} is not http://host:port/path")))?
            }
            Probe::Command { run } => ProbeTarget::Command(component.invocation(Step::Check, run, view)?),
        };
        let owner = Arc::new(Owner::of(run, component, view)?);
        Ok(Self { target, check: check.clone(), owner })
    }

    /// Makes one attempt. It succeeds only if it is the component that answers: an answer that comes from elsewhere says
    /// nothing, and one that cannot be attributed counts only for as long as the component's process is running.
    pub(super) async fn ask(&self, component: &Component) -> Result<(), Failure> {
        let limit = Duration::from_millis(self.check.attempt_ms);
        let too_late = |_| Failure::new(format!("no answer within {limit:?}"));
        match &self.target {
            ProbeTarget::Tcp { host, port } => {
                let stream = timeout(limit, connect(host, *port)).await.map_err(too_late)??;
                self.attribute(&stream, component).await
            }
            ProbeTarget::Http { host, port, path } => {
                let stream = timeout(limit, connect(host, *port)).await.map_err(too_late)??;
                self.attribute(&stream, component).await?;
                timeout(limit, get(stream, host, *port, path)).await.map_err(too_late)?
            }
            ProbeTarget::Command(invocation) => component.run_check(invocation, limit).await,
        }?;
        if self.owner.is_alive() { Ok(()) } else { Err(Failure::new("its process has ended")) }
    }

    /// Fails unless it is the component that answers, or the recipe says that something else may listen for it.
    async fn attribute(&self, stream: &TcpStream, component: &Component) -> Result<(), Failure> {
        if self.check.listener == Listener::Any {
            return Ok(());
        }
        let target = stream.peer_addr().attempt("find the address that answered")?;
        self.owner.answers_at(target, component).await
    }

    /// Repeats attempts until one succeeds, the process ends, or the time is over.
    pub(super) async fn ready(&self, component: &Component, running: Option<&Running>) -> Result<(), Failure> {
        let limit = Duration::from_millis(self.check.ready_within_ms);
        let (began, interval) = (Instant::now(), Duration::from_millis(self.check.interval_ms.max(1)));
        let mut last = None;
        let asking = async {
            loop {
                // The first attempt is given its own time, so that there is always an answer to report.
                let left = limit.saturating_sub(began.elapsed());
                let asked = match &last {
                    None => self.ask(component).await,
                    Some(_) => match timeout(left, self.ask(component)).await {
                        Ok(asked) => asked,
                        Err(_) => return false,
                    },
                };
                match asked {
                    Ok(()) => return true,
                    Err(failure) => last = Some(failure),
                }
                if began.elapsed() >= limit {
                    return false;
                }
                sleep((began.elapsed() / LATENESS).max(PAUSE_MIN).min(interval)).await;
            }
        };
        let ended = tokio::select! {
            biased;
            ended = Running::ended(running) => format!("ended before it was ready: {ended}"),
            is_ready = asking => match is_ready {
                true => return Ok(()),
                false => format!("not ready within {limit:?}"),
            },
        };
        Err(Failure::new(match last {
            Some(last) => format!("{ended}; last check: {last}"),
            None => ended,
        }))
    }

    /// Repeats attempts, and returns once too many have failed in a row; never returns if there is no liveness check.
    pub(super) async fn alive(&self, component: &Component) -> Failure {
        let Some(period) = self.check.liveness_ms.map(Duration::from_millis) else {
            return std::future::pending().await;
        };
        let mut failures = 0;
        loop {
            sleep(period).await;
            match self.ask(component).await {
                Ok(()) => failures = 0,
                Err(failure) => {
                    failures += 1;
                    if failures >= self.check.failures_max {
                        return failure.during(format_args!("check failed {failures} times in a row"));
                    }
                }
            }
        }
    }
}

async fn connect(host: &str, port: u16) -> Result<TcpStream, Failure> {
    let stream = TcpStream::connect((host, port)).await.attempt(format!("connect to {host}:{port}"))?;
    // The kernel may choose the port itself as the local port, if nothing listens there: then we have connected to
    // ourselves.
    match (stream.local_addr(), stream.peer_addr()) {
        (Ok(own), Ok(other)) if own != other => Ok(stream),
        _ => Err(Failure::new(format!("nothing listens at {host}:{port}"))),
    }
}

async fn get(mut stream: TcpStream, host: &str, port: u16, path: &str) -> Result<(), Failure> {
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nUser-Agent: holdfast\r\nAccept: */*\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.attempt("send a request")?;
    let mut answer = Vec::with_capacity(ANSWER_BYTES_MAX);
    while answer.len() < ANSWER_BYTES_MAX && !answer.contains(&b'\n') {
        let shared = u64::try_from(ANSWER_BYTES_MAX - answer.len()).unwrap_or(0);
        match (&mut stream).take(shared).read_buf(&mut answer).await {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error).attempt("read the answer"),
        }
    }
    match status(&answer) {
        Some(200..=399) => Ok(()),
        Some(status) => Err(Failure::new(format!("answered with status {status}"))),
        None => Err(Failure::new("the answer is not HTTP")),
    }
}

/// The status code of an HTTP response.
fn status(answer: &[u8]) -> Option<u16> {
    let line = answer.split(|byte| *byte == b'\n').next()?;
    let mut words = std::str::from_utf8(line).ok()?.split_ascii_whitespace();
    words.next().filter(|version| version.starts_with("HTTP/1."))?;
    words.next().filter(|status| status.len() == 3)?.parse().ok()
}

fn parse(url: &str) -> Option<ProbeTarget> {
    let rest = url.strip_prefix("http://")?;
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    // What follows the last colon is a port, unless the colon is inside the brackets of an IPv6 address.
    let (host, port) = match authority.rsplit_once(':').filter(|(_, port)| !port.contains(']')) {
        Some((host, port)) => (host, port.parse().ok()?),
        None => (authority, 80),
    };
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
    let path = if path.is_empty() { "/" } else { path };
    (!host.is_empty() && is_plain(host) && is_plain(path)).then(|| ProbeTarget::Http {
        host: host.into(),
        port,
        path: path.into(),
    })
}

/// A component that listens on all addresses is asked on the loopback address.
fn reachable(host: IpAddr) -> IpAddr {
    match host {
        IpAddr::V4(host) if host.is_unspecified() => std::net::Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(host) if host.is_unspecified() => std::net::Ipv6Addr::LOCALHOST.into(),
        host => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_apart() {
        let parts = |url: &str| match parse(url) {
            Some(ProbeTarget::Http { host, port, path }) => format!("{host} {port} {path}"),
            _ => "-".into(),
        };
        assert_eq!(parts("http://a:8080/b/c?d"), "a 8080 /b/c?d");
        assert_eq!(parts("http://a"), "a 80 /");
        assert_eq!(parts("http://[::1]:8080"), "::1 8080 /");
        assert_eq!(parts("http://[::1]/x"), "::1 80 /x");
        for wrong in
            ["https://a/", "http://", "http://a:b/", "http://a:99999/", "http://a/b c", "http://a/\r\nX: y", ""]
        {
            assert_eq!(parts(wrong), "-", "{wrong:?}");
        }
    }

    #[test]
    fn only_a_status_line_is_believed() {
        assert_eq!(status(b"HTTP/1.1 200 OK\r\nA: b"), Some(200));
        assert_eq!(status(b"HTTP/1.0 503 \n"), Some(503));
        for garbage in [&b""[..], b"SSH-2.0-x\r\n", b"HTTP/1.1", b"HTTP/1.1 2\n", b"HTTP/1.1 +20\n", b"\xff 200\n"] {
            assert_ne!(status(garbage), Some(200));
        }
    }
}
