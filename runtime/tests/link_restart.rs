//! A peer that is killed with `kill -9` while messages flow, and restarts on the same port from its journal.
//!
//! The child process is this test program, started again with one test selected. Its owner is minimal: it journals a
//! message, then reports it as applied.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod support;

use std::env;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use runtime::identity::Identity;
use runtime::journal::{self, Journal};
use runtime::link::{Contact, Event, LinkState, Links, MessageNumber, Opening, Settings};
use runtime::{DataDirectory, PeerId};
use support::station::{Station, authority, identity, opening};
use support::{Dice, Scratch};

const PARENT: PeerId = PeerId(1);
const CHILD: PeerId = PeerId(2);
const PLACE: &str = "HOLDFAST_TEST_PLACE";
const PORT: &str = "HOLDFAST_TEST_PORT";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_process_restarts_and_nothing_is_lost_or_repeated() {
    const KILLS: u64 = 6;
    let scratch = Scratch::new("link-restart");
    let authority = authority(scratch.path());
    identity(scratch.path(), &authority, CHILD);
    let own = identity(scratch.path(), &authority, PARENT);
    // The pauses of production: what is measured below is what an operator would see.
    let mut parent = Station::open(&own, Opening { settings: Settings::default(), ..opening() });

    let mut child = Process::start(scratch.path(), 0);
    parent.know(CHILD, child.address, true).await;
    let mut dice = Dice(5);
    let mut sent = 0;
    let mut recoveries = Vec::new();
    for kill in 0..=KILLS {
        // Some are acknowledged, some are on their way when it dies.
        let settled = sent + 20 + dice.below(20);
        let under_way = dice.below(30);
        while sent < settled + under_way {
            sent += 1;
            parent.send(CHILD, &text(sent)).await.unwrap();
        }
        parent.delivered(CHILD, settled).await;
        if kill < KILLS {
            child.kill();
            let address = child.address;
            child = Process::start(scratch.path(), address.port());
            let back = Instant::now();
            parent.delivered(CHILD, settled + under_way).await;
            recoveries.push(back.elapsed());
        }
    }
    parent.delivered(CHILD, sent).await;
    child.kill();

    let records = journal::read(&scratch.path().join("child").join(journal::ROOM)).unwrap().records;
    let found: Vec<String> = records.into_iter().map(|record| String::from_utf8(record.bytes).unwrap()).collect();
    assert_eq!(found, (1..=sent).map(text).collect::<Vec<_>>());
    recoveries.sort();
    println!("from the restarted program's first word to everything delivered: {recoveries:?}");
}

#[test]
fn child_journals_what_it_receives() {
    let Some(place) = env::var_os(PLACE) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(journal_everything(Path::new(&place)));
}

async fn journal_everything(place: &Path) {
    let data = DataDirectory::open(&place.join("child")).unwrap();
    let (mut journal, recovery) = Journal::open(&data, journal::Settings::default()).unwrap();
    let last_applied = MessageNumber(recovery.records.len() as u64);
    let identity = Identity::load(&place.join(CHILD.to_string())).unwrap().unwrap();
    let port: u16 = env::var(PORT).unwrap().parse().unwrap();
    let listen = SocketAddr::from(([127, 0, 0, 1], port));
    let links = [(PARENT, LinkState { last_applied, ..LinkState::default() })].into();
    let (links, mut events) = Links::open(&identity, Opening { listen, links, ..opening() }).unwrap();
    links.introduce(PARENT, Contact::default()).await.unwrap();
    println!("listening on {}", links.address());

    // Bounded, in case it is never stopped.
    while let Ok(Some(event)) = tokio::time::timeout(Duration::from_secs(60), events.recv()).await {
        let Event::Received { number, payload, .. } = event else { continue };
        let record = journal.append(&payload).unwrap();
        assert_eq!(record.0, number.0);
        journal.commit().unwrap();
        links.applied(PARENT, number).await.unwrap();
    }
}

/// The child, killed when it is dropped.
struct Process {
    child: Child,
    address: SocketAddr,
}

impl Process {
    fn start(place: &Path, port: u16) -> Self {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "--nocapture", "child_journals_what_it_receives"])
            .env(PLACE, place)
            .env(PORT, port.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let address = lines.map_while(Result::ok).find_map(|line| line.strip_prefix("listening on ")?.parse().ok());
        Self { child, address: address.expect("the child listens") }
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn text(number: u64) -> String {
    format!("message {number}")
}
