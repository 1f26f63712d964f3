//! What a journalled hop costs, next to what it cannot do without: one sync and one QUIC round trip.
//!
//! ```text
//! cargo run --release -p bench --bin hop [-- DIRECTORY [ROUNDS]]
//! ```
//!
//! The three are measured in turn, round after round, so that whatever else the machine does falls on all alike. The
//! directory must be on the disk that is meant; the default is the system's place for temporary files.

use std::env;
use std::error::Error;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, Endpoint, RecvStream, SendStream, ServerConfig};
use runtime::identity::{Authority, Identity};
use runtime::journal::{self, Journal};
use runtime::link::{Contact, Event, Links, Opening, Settings};
use runtime::{DataDirectory, Incarnation, PeerId, Timestamp, VmName};
use rustls::RootCertStore;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::version::TLS13;
use tokio::sync::mpsc;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const RECORD: [u8; 100] = [7; 100];
const NEAR: PeerId = PeerId(1);
const FAR: PeerId = PeerId(2);

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Outcome<()> {
    let mut arguments = env::args().skip(1);
    let parent = arguments.next().map_or_else(env::temp_dir, PathBuf::from);
    let rounds: usize = arguments.next().map_or(Ok(2000), |text| text.parse())?;
    let directory = parent.join(format!("holdfast-hop-{}", std::process::id()));
    fs::create_dir_all(&directory)?;
    let measured = measure(&directory, rounds).await;
    fs::remove_dir_all(&directory)?;
    measured?.print();
    Ok(())
}

async fn measure(directory: &Path, rounds: usize) -> Outcome<Measured> {
    let mut disk = Disk::open(&directory.join("raw"))?;
    let mut echo = Echo::open().await?;
    let mut hop = Hop::open(directory).await?;
    for _ in 0..rounds / 10 {
        disk.sync_once()?;
        echo.round_trip().await?;
        hop.once().await?;
    }
    let mut measured = Measured::default();
    for _ in 0..rounds {
        measured.sync.push(disk.sync_once()?);
        measured.round_trip.push(echo.round_trip().await?);
        measured.hop.push(hop.once().await?);
    }
    Ok(measured)
}

#[derive(Default)]
struct Measured {
    sync: Vec<Duration>,
    round_trip: Vec<Duration>,
    hop: Vec<Duration>,
}

impl Measured {
    fn print(mut self) {
        let rounds = self.sync.len();
        println!("{rounds} rounds, 100-byte records, microseconds      median    p95");
        let sync = line("one sync of a preallocated file", &mut self.sync);
        let round_trip = line("one QUIC round trip", &mut self.round_trip);
        let hop = line("one journalled hop", &mut self.hop);
        println!("hop / (sync + round trip)                     {:.2}", hop / (sync + round_trip));
    }
}

/// Prints and returns the median in microseconds.
fn line(what: &str, samples: &mut [Duration]) -> f64 {
    samples.sort();
    let at = |part: usize| samples[samples.len() * part / 100].as_secs_f64() * 1e6;
    println!("{what:<46}{:>8.0}{:>8.0}", at(50), at(95));
    at(50)
}

/// The bare disk.
struct Disk {
    file: File,
    at: u64,
}

impl Disk {
    const LENGTH: usize = 4 << 20;

    fn open(path: &Path) -> Outcome<Self> {
        let mut file = OpenOptions::new().create(true).truncate(true).write(true).open(path)?;
        file.write_all(&vec![0; Self::LENGTH])?;
        file.sync_all()?;
        Ok(Self { file, at: 0 })
    }

    fn sync_once(&mut self) -> Outcome<Duration> {
        let begin = Instant::now();
        self.file.write_all_at(&RECORD, self.at)?;
        self.file.sync_data()?;
        self.at = (self.at + RECORD.len() as u64) % (Self::LENGTH - RECORD.len()) as u64;
        Ok(begin.elapsed())
    }
}

/// The bare network: quinn and nothing else.
struct Echo {
    send: SendStream,
    receive: RecvStream,
    _endpoints: [Endpoint; 2],
}

impl Echo {
    async fn open() -> Outcome<Self> {
        let certified = rcgen::generate_simple_self_signed(["echo".to_owned()])?;
        let certificate = certified.cert.der().clone();
        let key = PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der());
        let provider = Arc::new(default_provider());
        let server = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&TLS13])?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.clone()], key.into())?;
        let mut roots = RootCertStore::empty();
        roots.add(certificate)?;
        let client = rustls::ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let server = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(server)?));
        let client = ClientConfig::new(Arc::new(QuicClientConfig::try_from(client)?));

        let far = Endpoint::server(server, loopback())?;
        let near = Endpoint::client(loopback())?;
        let address = far.local_addr()?;
        tokio::spawn(repeat_everything(far.clone()));
        let connection = near.connect_with(client, address, "echo")?.await?;
        let (send, receive) = connection.open_bi().await?;
        Ok(Self { send, receive, _endpoints: [near, far] })
    }

    async fn round_trip(&mut self) -> Outcome<Duration> {
        let begin = Instant::now();
        self.send.write_all(&RECORD).await?;
        let mut answer = [0; RECORD.len()];
        self.receive.read_exact(&mut answer).await?;
        Ok(begin.elapsed())
    }
}

async fn repeat_everything(endpoint: Endpoint) -> Option<()> {
    let connection = endpoint.accept().await?.await.ok()?;
    let (mut send, mut receive) = connection.accept_bi().await.ok()?;
    while let Ok(Some(chunk)) = receive.read_chunk(usize::MAX, true).await {
        send.write_all(&chunk.bytes).await.ok()?;
    }
    Some(())
}

/// Two peers with links; the far one journals each message before it acknowledges it.
struct Hop {
    links: Links,
    events: mpsc::Receiver<Event>,
}

impl Hop {
    async fn open(directory: &Path) -> Outcome<Self> {
        let authority = Authority::create_or_load(directory, 3600, Timestamp::now())?;
        let (links, events) = Links::open(&identity(&authority, directory, NEAR)?, opening())?;
        let (far, far_events) = Links::open(&identity(&authority, directory, FAR)?, opening())?;
        links.introduce(FAR, Contact { address: Some(far.address()), held: true }).await?;
        let data = DataDirectory::open(&directory.join("far"))?;
        tokio::spawn(journal_everything(data, far, far_events));
        Ok(Self { links, events })
    }

    async fn once(&mut self) -> Outcome<Duration> {
        let begin = Instant::now();
        let number = self.links.send(FAR, RECORD.to_vec()).await?;
        loop {
            match self.events.recv().await.ok_or("the links are gone")? {
                Event::Acknowledged { through, .. } if through >= number => return Ok(begin.elapsed()),
                _ => {}
            }
        }
    }
}

async fn journal_everything(data: DataDirectory, links: Links, mut events: mpsc::Receiver<Event>) -> Outcome<()> {
    let (mut journal, _) = Journal::open(&data, journal::Settings::default())?;
    while let Some(event) = events.recv().await {
        if let Event::Received { peer, number, payload } = event {
            journal.append(&payload)?;
            journal.commit()?;
            links.applied(peer, number).await?;
        }
    }
    Ok(())
}

fn identity(authority: &Authority, directory: &Path, peer: PeerId) -> Outcome<Identity> {
    let directory = directory.join(peer.to_string());
    fs::create_dir_all(&directory)?;
    Ok(authority.identity(&directory, peer, &VmName::parse(&peer.to_string())?, Timestamp::now())?)
}

fn opening() -> Opening {
    Opening {
        listen: loopback(),
        incarnation: Incarnation(1),
        links: [].into(),
        revoked: [].into(),
        desk: None,
        settings: Settings::default(),
    }
}

fn loopback() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}
