//! Joining and renewing over QUIC: the token lets the new peer recognise the manager, and the manager the new peer.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod support;

use std::path::PathBuf;

use runtime::identity::{self, Authority, Grant, Identity, IdentityCall, IdentityRequest, JoinToken};
use runtime::link::Event;
use runtime::{Error, PeerId, Timestamp, VmName};
use support::Scratch;
use support::station::{Station, authority, opening};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

const HOUR: u64 = 3600;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_peer_joins_and_talks_to_the_manager() {
    let mut office = Office::open("talks").await;
    let token = office.invite(None).await;
    let web = office.join(&token, "web").await.unwrap();
    assert_eq!((web.certified().peer, web.certified().name.as_str()), (PeerId(1), "web"));

    let mut agent = Station::open(&web, opening());
    agent.know(PeerId::MANAGER, office.manager.address(), true).await;
    agent.send(PeerId::MANAGER, "here I am").await.unwrap();
    office.manager.receive(PeerId(1), 1).await;
    office.manager.send(PeerId(1), "welcome").await.unwrap();
    agent.receive(PeerId::MANAGER, 1).await;
    // Its certificate is there after a restart, too.
    let found = Identity::load(&office.directory("web")).unwrap().unwrap();
    assert_eq!(found.certified(), web.certified());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_peer_gets_the_reason() {
    let office = Office::open("refusals").await;
    let token = office.invite(Some("web")).await;
    refused(office.join(&token, "db").await, "valid for web only");
    office.join(&token, "web").await.unwrap();
    // The same machine may retry; another may not.
    office.join(&token, "web").await.unwrap();
    let thief = office.directory("thief");
    let web = VmName::parse("web").unwrap();
    refused(identity::join(&thief, office.manager.address(), &token, &web).await, "already been used by vm-1");
    let forged = JoinToken::parse(&format!("hf1-{}-{}", "0".repeat(32), token.authority)).unwrap();
    refused(office.join(&forged, "cache").await, "unknown join token");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_false_manager_learns_nothing() {
    let office = Office::open("true").await;
    let impostor = Office::open("false").await;
    let token = office.invite(None).await;
    // The token is for the true manager; at the false one's address the handshake fails, and the secret is not revealed.
    let name = VmName::parse("web").unwrap();
    let misled = identity::join(&office.directory("web"), impostor.manager.address(), &token, &name).await;
    assert!(matches!(misled, Err(Error::Unreachable { .. })), "{misled:?}");
    office.join(&token, "web").await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_is_renewed_while_the_link_stays_up() {
    let mut office = Office::open("renewal").await;
    let token = office.invite(None).await;
    let web = office.join(&token, "web").await.unwrap();
    let mut agent = Station::open(&web, opening());
    agent.know(PeerId::MANAGER, office.manager.address(), true).await;
    agent.next_where(|event| matches!(event, Event::Up { .. })).await;

    let renewed = identity::renew(&web, &office.directory("web"), office.manager.address()).await.unwrap();
    assert_eq!(renewed.certified().peer, PeerId(1));
    agent.links.renew(&renewed).await.unwrap();
    agent.send(PeerId::MANAGER, "still here").await.unwrap();
    office.manager.receive(PeerId(1), 1).await;

    office.revoke(PeerId(1)).await;
    let refused_renewal = identity::renew(&renewed, &office.directory("web"), office.manager.address()).await;
    refused(refused_renewal, "cannot rejoin");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_without_an_authority_accepts_no_join_requests() {
    let office = Office::open("no-desk").await;
    let token = office.invite(None).await;
    let web = office.join(&token, "web").await.unwrap();
    let agent = Station::open(&web, opening());
    let (token, name) = (office.invite(None).await, VmName::parse("db").unwrap());
    let refused = identity::join(&office.directory("db"), agent.address(), &token, &name).await;
    assert!(matches!(refused, Err(Error::Unreachable { .. })), "{refused:?}");
}

/// A manager with its authority, which is owned by a task.
struct Office {
    scratch: Scratch,
    manager: Station,
    asks: mpsc::Sender<Ask>,
    _desk: JoinHandle<()>,
}

/// What the test asks of the authority.
enum Ask {
    Invite(Option<VmName>, oneshot::Sender<JoinToken>),
    Revoke(PeerId, oneshot::Sender<()>),
}

impl Office {
    async fn open(name: &str) -> Self {
        let scratch = Scratch::new(&format!("join-{name}"));
        let authority = authority(scratch.path());
        let own = authority.manager_identity(scratch.path(), Timestamp::now()).unwrap();
        let (identity_calls, applications) = mpsc::channel(4);
        let (asks, asked) = mpsc::channel(4);
        let manager = Station::with_desk(&own, identity_calls);
        Self { scratch, manager, asks, _desk: tokio::spawn(serve_authority(authority, applications, asked)) }
    }

    fn directory(&self, name: &str) -> PathBuf {
        let directory = self.scratch.path().join(name);
        std::fs::create_dir_all(&directory).unwrap();
        directory
    }

    async fn invite(&self, name: Option<&str>) -> JoinToken {
        let (answer, answered) = oneshot::channel();
        let name = name.map(|name| VmName::parse(name).unwrap());
        self.asks.send(Ask::Invite(name, answer)).await.ok().unwrap();
        answered.await.unwrap()
    }

    async fn revoke(&self, peer: PeerId) {
        let (answer, answered) = oneshot::channel();
        self.asks.send(Ask::Revoke(peer, answer)).await.ok().unwrap();
        answered.await.unwrap();
    }

    async fn join(&self, token: &JoinToken, name: &str) -> Result<Identity, Error> {
        let name = VmName::parse(name).unwrap();
        identity::join(&self.directory(name.as_str()), self.manager.address(), token, &name).await
    }
}

async fn serve_authority(
    mut authority: Authority,
    mut applications: mpsc::Receiver<IdentityCall>,
    mut asked: mpsc::Receiver<Ask>,
) {
    let mut admitted = 0;
    loop {
        tokio::select! {
            Some(IdentityCall { request, answer }) = applications.recv() => {
                let granted = consider(&mut authority, &mut admitted, &request);
                answer.send(granted).unwrap();
            }
            ask = asked.recv() => match ask {
                Some(Ask::Invite(name, answer)) => {
                    answer.send(authority.invite(name, HOUR, Timestamp::now()).unwrap()).unwrap();
                }
                Some(Ask::Revoke(peer, answer)) => {
                    authority.revoke(peer).unwrap();
                    answer.send(()).unwrap();
                }
                None => return,
            },
        }
    }
}

fn consider(authority: &mut Authority, admitted: &mut u64, request: &IdentityRequest) -> Result<Grant, Error> {
    let now = Timestamp::now();
    match request {
        IdentityRequest::Join(request) => {
            let applicant = authority.examine(request, now)?;
            let grant = authority.admit(&applicant, PeerId(*admitted + 1), now)?;
            *admitted = (*admitted).max(grant.peer.0);
            Ok(grant)
        }
        IdentityRequest::Renew { certified, certificate_request } => {
            authority.renew(certified.peer, &certified.name, certificate_request, now)
        }
    }
}

fn refused(outcome: Result<Identity, Error>, because: &str) {
    match outcome {
        Err(Error::JoinRefused { reason }) => assert!(reason.contains(because), "{reason}"),
        other => panic!("not refused: {other:?}"),
    }
}
