//! `holdfast shop-service`: a component of the demo's shop, as a real process.
//!
//! It answers a request by asking one provider of each import in turn, and returns the whole chain: `web → app-1 →
//! database-1`. If a provider fails, the request fails; it never tries another provider, so that every violation is
//! visible. On `rebind` it finishes requests to the old providers first: when `rebind` is done, removed providers are not
//! in use.

use crate::{Ending, failure::Failure, plain_http, service};
use clap::{Args, Subcommand};
use http_body_util::Full;
use hyper::{
    Request, Response, StatusCode,
    body::{Bytes, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use std::{
    collections::BTreeMap,
    convert::Infallible,
    fs,
    net::SocketAddr,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{net::TcpListener, sync::RwLock};

/// A component of the demo's shop.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve until stopped
    Run(RunArguments),
    /// Tell a running service to read its providers again; done when the old ones are no longer in use
    Rebind(RebindArguments),
}

#[derive(Args)]
struct RunArguments {
    /// Its name
    #[arg(long)]
    name: String,
    /// Its address
    #[arg(long, value_name = "ADDRESS")]
    listen: SocketAddr,
    /// A file with a line for each provider: the import, then the address
    #[arg(long, value_name = "FILE")]
    providers: PathBuf,
    /// How long it takes to start
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 0)]
    start_up_ms: u64,
}

#[derive(Args)]
struct RebindArguments {
    /// Its address
    #[arg(long, value_name = "ADDRESS")]
    at: SocketAddr,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Ending, Failure> {
    service::run(service::LOGGED, async {
        match &arguments.command {
            Command::Run(arguments) => serve(arguments).await,
            Command::Rebind(arguments) => {
                let answer = plain_http::get(arguments.at, REBIND).await;
                answer.map(|_| Ending::Done).map_err(|why| Failure::NotRebound(arguments.at, why))
            }
        }
    })
}

/// The path of the readiness check.
pub(crate) const READY: &str = "/ready";
/// The path that makes it read its providers again.
const REBIND: &str = "/rebind";

/// The addresses of the providers of each import.
type Providers = BTreeMap<String, Vec<SocketAddr>>;

struct Service {
    name: String,
    file: PathBuf,
    /// Each request holds the read lock; so a writer waits until no request is in progress.
    providers: RwLock<Providers>,
    /// The number of requests so far, so that providers take turns.
    turn: AtomicUsize,
}

async fn serve(arguments: &RunArguments) -> Result<Ending, Failure> {
    tokio::time::sleep(Duration::from_millis(arguments.start_up_ms)).await;
    let (name, file) = (arguments.name.clone(), arguments.providers.clone());
    let providers = read(&fs::read_to_string(&file).map_err(|error| Failure::Read(file.clone(), error))?);
    let service = Arc::new(Service { name, file, providers: RwLock::new(providers), turn: AtomicUsize::new(0) });
    let listener = TcpListener::bind(arguments.listen).await;
    let listener = listener.map_err(|error| Failure::System("cannot listen", error))?;
    println!("listens on {}", arguments.listen);
    let accept = async {
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                // Out of descriptors, most likely: the next attempt may succeed.
                tokio::time::sleep(Duration::from_millis(10)).await;
                continue;
            };
            let service = Arc::clone(&service);
            let answer = service_fn(move |request| Arc::clone(&service).answer(request));
            // An aborted connection is ignored.
            tokio::spawn(
                async move { drop(http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await) },
            );
        }
    };
    tokio::select! {
        () = accept => {}
        () = service::asked_to_stop() => {}
    }
    drop(listener);
    // No request is in progress any more.
    let _alone = service.providers.write().await;
    Ok(Ending::Done)
}

impl Service {
    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
        let answered = match request.uri().path() {
            READY => Ok("ready".into()),
            REBIND => self.rebind().await,
            _ => self.chain().await,
        };
        let (status, text) = match answered {
            Ok(text) => (StatusCode::OK, text),
            Err(text) => (StatusCode::BAD_GATEWAY, text),
        };
        let mut response = Response::new(Full::new(Bytes::from(text)));
        *response.status_mut() = status;
        Ok(response)
    }

    /// Its name and its providers' answers.
    async fn chain(&self) -> Result<String, String> {
        let providers = self.providers.read().await;
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let mut answers = Vec::new();
        for (import, addresses) in providers.iter() {
            let address = addresses[turn % addresses.len()];
            let answer = plain_http::get(address, "/").await;
            answers.push(answer.map_err(|why| format!("{}: {import} at {address}: {why}", self.name))?);
        }
        Ok(match answers.as_slice() {
            [] => self.name.clone(),
            [one] => format!("{} → {one}", self.name),
            several => format!("{} → ({})", self.name, several.join(", ")),
        })
    }

    async fn rebind(&self) -> Result<String, String> {
        let mut providers = self.providers.write().await;
        *providers = read(&fs::read_to_string(&self.file).map_err(|error| error.to_string())?);
        Ok("rebound".into())
    }
}

fn read(text: &str) -> Providers {
    let mut providers = Providers::new();
    for (import, address) in text.lines().filter_map(|line| line.split_once(' ')) {
        if let Ok(address) = address.parse() {
            providers.entry(import.to_owned()).or_default().push(address);
        }
    }
    providers
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[tokio::test]
    async fn a_rebind_waits_for_requests_in_progress() {
        let provider = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let old = read(&format!("sql {}\n", provider.local_addr().unwrap()));
        let file = std::env::temp_dir().join(format!("holdfast-providers-{}", std::process::id()));
        fs::write(&file, "").unwrap();
        let service = Arc::new(Service {
            name: "app".into(),
            file: file.clone(),
            providers: RwLock::new(old),
            turn: AtomicUsize::new(0),
        });
        let asking = Arc::clone(&service);
        let request = tokio::spawn(async move { asking.chain().await });
        let (mut called, _) = provider.accept().await.unwrap();

        // The provider has been called and has not answered: a rebind that leaves it out has to wait.
        let rebind = service.rebind();
        tokio::pin!(rebind);
        let mut heard = [0; 1024];
        tokio::select! {
            biased;
            _ = &mut rebind => panic!("it is still in use"),
            read = called.read(&mut heard) => assert!(read.unwrap() > 0),
        }
        called.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\ndatabase").await.unwrap();
        assert_eq!(request.await.unwrap().unwrap(), "app → database");
        rebind.await.unwrap();
        assert_eq!(service.chain().await.unwrap(), "app");
        fs::remove_file(file).unwrap();
    }
}
