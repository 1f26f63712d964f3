//! The cost of a journalled hop, compared with its unavoidable parts: one sync and one QUIC round trip.
//!
//! ```text
//! cargo run --release -p bench --bin hop [-- DIRECTORY [ROUNDS]]
//! ```
//!
//! Each round measures all of them in a new random order. That matters: the previous measurement decides whether threads
//! are awake and caches warm, and a fixed order changes the bare round trip by half and the ratio with it. The third line
//! is the fairest comparison: bare quinn whose far end syncs before it answers, the steps of a hop without journal and
//! links around them. It is not a strict lower bound, because there the sync blocks the task that reads; a ratio a little
//! below one means *no visible difference*, not that a hop is cheaper than its parts.
//! The directory must be on the disk to be measured; the default is the system's directory for temporary files.

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
use quinn::{ClientConfig, Endpoint, RecvStream, SendStream, ServerConfig, TransportConfig};
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
    print(measured?);
    Ok(())
}

/// What is measured, in the order in which it is printed.
const WHAT: [&str; 4] = [
    "one sync of a preallocated file",
    "one QUIC round trip",
    "one bare round trip with a sync in it",
    "one journalled hop",
];

type Samples = [Vec<Duration>; WHAT.len()];

async fn measure(directory: &Path, rounds: usize) -> Outcome<Samples> {
    let mut disk = Disk::open(&directory.join("raw"))?;
    let mut echo = Echo::open(None).await?;
    let mut bare = Echo::open(Some(Disk::open(&directory.join("bare"))?)).await?;
    let mut hop = Hop::open(directory).await?;
    let mut samples = Samples::default();
    let mut order = [0, 1, 2, 3];
    let mut dice: u64 = 1;
    let warm_up = rounds / 10;
    for round in 0..warm_up + rounds {
        for last in (1..order.len()).rev() {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            order.swap(last, usize::try_from(dice >> 33)? % (last + 1));
        }
        for what in order {
            let taken = match what {
                0 => disk.sync_once()?,
                1 => echo.round_trip().await?,
                2 => bare.round_trip().await?,
                _ => hop.once().await?,
            };
            if round >= warm_up {
                samples[what].push(taken);
            }
        }
    }
    Ok(samples)
}

fn print(mut samples: Samples) {
    println!(
        "{:<46}{:>8}{:>8}{:>10}",
        format!("{} rounds, 100 bytes, microseconds", samples[0].len()),
        "median",
        "p95",
        "max"
    );
    let mut medians = [0.0; WHAT.len()];
    for ((what, samples), median) in WHAT.iter().zip(&mut samples).zip(&mut medians) {
        *median = line(what, samples);
    }
    let [sync, round_trip, bare, hop] = medians;
    println!("hop / bare round trip with a sync             {:>8.2}", hop / bare);
    println!("hop / (sync + round trip)                     {:>8.2}", hop / (sync + round_trip));
}

/// Prints and returns the median in microseconds.
fn line(what: &str, samples: &mut [Duration]) -> f64 {
    samples.sort();
    let at = |part: usize| samples[samples.len() * part / 100].as_secs_f64() * 1e6;
    let longest = samples.last().map_or(0.0, |longest| longest.as_secs_f64() * 1e6);
    println!("{what:<46}{:>8.0}{:>8.0}{longest:>10.0}", at(50), at(95));
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

/// The bare network: quinn and nothing else, but with a disk at the far end if one is given.
struct Echo {
    send: SendStream,
    receive: RecvStream,
    _endpoints: [Endpoint; 2],
}

impl Echo {
    async fn open(disk: Option<Disk>) -> Outcome<Self> {
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
        let mut client = ClientConfig::new(Arc::new(QuicClientConfig::try_from(client)?));
        // A stalled disk must show as a long sample and not as a lost connection.
        let mut transport = TransportConfig::default();
        transport.keep_alive_interval(Some(Duration::from_secs(2)));
        client.transport_config(Arc::new(transport));

        let far = Endpoint::server(server, loopback())?;
        let near = Endpoint::client(loopback())?;
        let address = far.local_addr()?;
        tokio::spawn(repeat_everything(far.clone(), disk));
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

async fn repeat_everything(endpoint: Endpoint, mut disk: Option<Disk>) -> Option<()> {
    let connection = endpoint.accept().await?.await.ok()?;
    let (mut send, mut receive) = connection.accept_bi().await.ok()?;
    while let Ok(Some(chunk)) = receive.read_chunk(usize::MAX, true).await {
        if let Some(disk) = &mut disk {
            disk.sync_once().ok()?;
        }
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
        identity_calls: None,
        settings: Settings::default(),
    }
}

fn loopback() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}
