//! The one task that owns every link: it handles the owner's commands and the socket events, one at a time.
//!
//! Because there is only one, nothing is locked, and "the older connection is silent before the newer one speaks" is a
//! comparison of two numbers: events of an older generation are ignored. It never waits for anything but its inbox:
//! writers take batches when they ask for them, and the owner takes events when it has room. So no slow peer and no
//! slow owner can block it.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use quinn::{ClientConfig, Endpoint, ServerConfig};
use ring::rand::{SecureRandom, SystemRandom};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::connection::{self, Ending, Goodbye, GreetedConnection, SocketEvent};
use super::delivery::{Arrival, Parcel};
use super::dial::{self, Dial};
use super::frame::{Frame, Hello};
use super::known_peer::{Rank, Verdict};
use super::limits::{NUDGE, QUEUE};
use super::listen::listen;
use super::peer_link::{Attempt, Live, PeerLink};
use super::pending_events::{PendingEvents, Standing};
use super::{Contact, Event, LinkState, MessageNumber, Refusal, Settings, Violation};
use crate::error::Error;
use crate::identity::IdentityCall;
use crate::peer::{Incarnation, PeerId, Timestamp};

/// Commands of the owner.
#[derive(Debug)]
pub(super) enum Command {
    Post { peer: PeerId, number: MessageNumber, parcel: Parcel },
    Applied { peer: PeerId, through: MessageNumber },
    Introduce { peer: PeerId, contact: Contact },
    Revoke { peer: PeerId },
    Renew { server: Box<ServerConfig>, client: Box<ClientConfig> },
    HangUp { peer: PeerId },
    Close { done: oneshot::Sender<()> },
}

#[derive(Debug)]
pub(super) struct Switchboard {
    me: PeerId,
    incarnation: Incarnation,
    life: u64,
    endpoint: Endpoint,
    dialling: ClientConfig,
    settings: Settings,
    lines: BTreeMap<PeerId, PeerLink>,
    revoked: BTreeSet<PeerId>,
    news: PendingEvents,
    /// Connected peers that may owe an acknowledgement.
    awaited: BTreeSet<PeerId>,
    /// The generation of the newest connection.
    generation: u64,
    happenings: mpsc::Sender<SocketEvent>,
    to_hear: mpsc::Receiver<SocketEvent>,
}

impl Switchboard {
    pub(super) fn new(
        me: PeerId,
        incarnation: Incarnation,
        endpoint: Endpoint,
        dialling: ClientConfig,
        settings: Settings,
        links: BTreeMap<PeerId, LinkState>,
        revoked: BTreeSet<PeerId>,
    ) -> Result<Self, Error> {
        let mut life = [0; 8];
        let drawn = SystemRandom::new().fill(&mut life);
        drawn.map_err(|unspecified| Error::identity("generate a random number")(unspecified.to_string()))?;
        let life = u64::from_le_bytes(life);
        let links = links.into_iter().filter(|(peer, _)| !revoked.contains(peer));
        let lines = links.map(|(peer, state)| (peer, PeerLink::new(state))).collect();
        let (happenings, to_hear) = mpsc::channel(QUEUE);
        let news = PendingEvents::default();
        let generation = 0;
        Ok(Self {
            me,
            incarnation,
            life,
            endpoint,
            dialling,
            settings,
            lines,
            revoked,
            news,
            awaited: BTreeSet::new(),
            generation,
            happenings,
            to_hear,
        })
    }

    /// Runs until the owner closes its links, or drops them.
    pub(super) async fn run(
        mut self,
        mut commands: mpsc::Receiver<Command>,
        inbox: mpsc::Sender<Event>,
        identity_calls: Option<mpsc::Sender<IdentityCall>>,
    ) {
        tokio::spawn(listen(self.endpoint.clone(), self.happenings.clone(), identity_calls));
        let mut rounds = interval((self.settings.unused_after / 4).max(Duration::from_millis(1)));
        let mut looks = interval(NUDGE);
        rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let done = loop {
            tokio::select! {
                command = commands.recv() => match command {
                    Some(Command::Close { done }) => break Some(done),
                    Some(command) => self.obey(command),
                    None => break None,
                },
                event = self.to_hear.recv() => self.hear(event.expect("we hold a sender ourselves")),
                place = inbox.reserve(), if !self.news.is_empty() => match place {
                    Ok(place) => self.news.next_event().map_or((), |event| place.send(event)),
                    Err(_) => break None,
                },
                _ = rounds.tick() => self.make_round(),
                _ = looks.tick(), if !self.awaited.is_empty() => self.look_after_awaited(),
            }
        };
        let goodbye = if done.is_some() { Goodbye::Farewell } else { Goodbye::Gone };
        self.endpoint.close(goodbye.code(), b"");
        // Bounded, because a peer that misses the goodbye notices by itself.
        let _ = timeout(Duration::from_secs(1), self.endpoint.wait_idle()).await;
        drop(self);
        if let Some(done) = done {
            // If this fails, the caller is gone.
            let _ = done.send(());
        }
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Post { peer, number, parcel } => {
                if !self.revoked.contains(&peer) {
                    self.awaited.insert(peer);
                    let line = self.line(peer);
                    line.delivery.post(number, parcel);
                    line.write(Vec::new());
                    self.dial_if_wanted(peer);
                }
            }
            Command::Applied { peer, through } => {
                if let Some(line) = self.lines.get_mut(&peer) {
                    line.delivery.apply(through);
                    line.write(Vec::new());
                }
            }
            Command::Introduce { peer, contact } => {
                if !self.revoked.contains(&peer) {
                    self.line(peer).introduce(contact);
                    self.dial_if_wanted(peer);
                }
            }
            Command::Revoke { peer } => {
                self.revoked.insert(peer);
                if let Some(mut line) = self.lines.remove(&peer) {
                    line.hang_up(Goodbye::Revoked, "revoked");
                }
                self.news.forget(peer);
            }
            Command::Renew { server, client } => {
                self.endpoint.set_server_config(Some(*server));
                self.dialling = *client;
            }
            Command::HangUp { peer } => self.end(peer, &Ending::Lost("hung up".to_owned())),
            Command::Close { .. } => unreachable!("the loop above takes this one"),
        }
    }

    fn hear(&mut self, event: SocketEvent) {
        match event {
            SocketEvent::Dialled { ordinal, certified, connection } => {
                let peer = certified.peer;
                let attempt = self.lines.get(&peer).map(|line| &line.attempt);
                if !matches!(attempt, Some(Attempt::Dialling { ordinal: ours, .. }) if *ours == ordinal) {
                    return Goodbye::Superseded.say(&connection, "");
                }
                self.line(peer).attempt = Attempt::Greeting { ordinal };
                let hello = self.hello(peer, ordinal);
                let happenings = self.happenings.clone();
                tokio::spawn(async move {
                    let met = connection::greet(connection, certified, hello).await;
                    let event = match met {
                        Ok(meeting) => SocketEvent::Met(Box::new(meeting)),
                        Err(ending) => SocketEvent::DialFailed { peer, ordinal, ending },
                    };
                    let _ = happenings.send(event).await;
                });
            }
            SocketEvent::DialFailed { peer, ordinal, ending } => self.note_failed_dial(peer, ordinal, &ending),
            SocketEvent::Met(meeting) => self.meet(*meeting),
            SocketEvent::Heard { peer, generation, frames } => {
                for frame in frames {
                    if self.is_present(peer, generation)
                        && let Err(violation) = self.hear_frame(peer, frame)
                    {
                        self.end(peer, &Ending::Violation(violation));
                    }
                }
            }
            SocketEvent::Written { peer, generation } => {
                if self.is_present(peer, generation)
                    && let Some(line) = self.lines.get_mut(&peer)
                    && let Some(live) = &mut line.live
                {
                    live.writer_waits = true;
                    line.write(Vec::new());
                }
            }
            SocketEvent::Ended { peer, generation, ending } => {
                if self.is_present(peer, generation) {
                    self.end(peer, &ending);
                }
            }
        }
    }

    fn is_present(&self, peer: PeerId, generation: u64) -> bool {
        let live = self.lines.get(&peer).and_then(|line| line.live.as_ref());
        live.is_some_and(|live| live.generation == generation)
    }

    fn hear_frame(&mut self, peer: PeerId, frame: Frame) -> Result<(), Violation> {
        let Some(line) = self.lines.get_mut(&peer) else { return Ok(()) };
        line.failures = 0;
        line.used = Instant::now();
        match frame {
            Frame::Message { number, payload } => {
                if line.delivery.hear_message(number, payload.len())? == Arrival::Fresh {
                    self.news.message(peer, number, payload);
                }
            }
            Frame::Acknowledge(through) => {
                if line.delivery.hear_acknowledgement(through)? {
                    self.news.acknowledged(peer, line.delivery.acknowledged());
                    line.write(Vec::new());
                }
            }
            Frame::Hello(_) => return Err(Violation::Hello),
        }
        Ok(())
    }

    /// A peer has said hello on a connection: adopt it, or refuse it with a reason.
    fn meet(&mut self, meeting: GreetedConnection) {
        let GreetedConnection { connection, certified, dialler, hello, ours, send, receive, decoder } = meeting;
        let peer = certified.peer;
        if self.revoked.contains(&peer) || peer == self.me {
            return Goodbye::Revoked.say(&connection, "revoked");
        }
        let line = self.line(peer);
        if let (Attempt::Greeting { ordinal }, Some(said)) = (&line.attempt, &ours)
            && *ordinal == said.ordinal
        {
            line.attempt = Attempt::None;
        }
        let rank = Rank::new(ours.map_or(hello.ordinal, |ours| ours.ordinal), dialler);
        let verdict = line.known_peer.weigh(&hello, rank, line.live.as_ref().map(|live| live.rank));
        let verdict = verdict.and_then(|verdict| match verdict {
            Verdict::Newer { same_life } => line.delivery.agrees_with(&hello, same_life).map(|()| verdict),
            Verdict::Older => Ok(verdict),
        });
        match verdict {
            Err(refusal) => {
                Goodbye::Refused.say(&connection, &refusal.to_string());
                self.refuse(peer, refusal);
            }
            Ok(Verdict::Older) => {
                Goodbye::Superseded.say(&connection, "");
                self.dial_if_wanted(peer);
            }
            Ok(Verdict::Newer { .. }) => {
                line.hang_up(Goodbye::Superseded, "");
                self.generation += 1;
                let generation = self.generation;
                let tell = || self.happenings.clone();
                let (batches, to_write) = mpsc::channel(1);
                let reading = connection::read(peer, generation, connection.clone(), receive, decoder, tell());
                let reader = tokio::spawn(reading).abort_handle();
                tokio::spawn(connection::write(peer, generation, connection.clone(), send, to_write, tell()));
                let until = certified.until;
                let live = Live { generation, connection, rank, until, reader, batches, writer_waits: true };
                let ours_is_said = ours.is_some();
                let ours = ours.unwrap_or_else(|| self.hello(peer, hello.ordinal));
                let line = self.line(peer);
                let before = line.delivery.acknowledged();
                line.connect(live, &hello, &ours, ours_is_said);
                let after = line.delivery.acknowledged();
                if after > before {
                    self.news.acknowledged(peer, after);
                }
                self.news.standing(peer, Standing::Up(hello.incarnation));
                self.awaited.insert(peer);
            }
        }
    }

    fn note_failed_dial(&mut self, peer: PeerId, ordinal: u64, ending: &Ending) {
        let Some(line) = self.lines.get_mut(&peer) else { return };
        match line.attempt {
            Attempt::Dialling { ordinal: ours, .. } | Attempt::Greeting { ordinal: ours } if ours == ordinal => {}
            _ => return,
        }
        line.attempt = Attempt::None;
        tracing::debug!(%peer, ?ending, "dialling failed");
        match ending {
            Ending::Refused(refusal) => self.refuse(peer, refusal.clone()),
            Ending::Violation(violation) => self.refuse(peer, Refusal::Violation(*violation)),
            Ending::Farewell | Ending::Superseded | Ending::Lost(_) => {
                line.note_failure(false);
                self.dial_if_wanted(peer);
            }
        }
    }

    /// The present connection has ended, by the peer or by us.
    fn end(&mut self, peer: PeerId, ending: &Ending) {
        let Some(line) = self.lines.get_mut(&peer) else { return };
        let (goodbye, reason) = match ending {
            Ending::Farewell => (Goodbye::Farewell, String::new()),
            Ending::Violation(violation) => (Goodbye::Violation, violation.to_string()),
            Ending::Superseded | Ending::Refused(_) | Ending::Lost(_) => (Goodbye::Gone, String::new()),
        };
        if line.hang_up(goodbye, &reason).is_none() {
            return;
        }
        tracing::debug!(%peer, ?ending, "connection ended");
        self.news.standing(peer, Standing::Down { farewell: *ending == Ending::Farewell });
        match ending {
            Ending::Refused(refusal) => self.refuse(peer, refusal.clone()),
            Ending::Violation(violation) => self.refuse(peer, Refusal::Violation(*violation)),
            Ending::Farewell | Ending::Superseded | Ending::Lost(_) => {
                line.note_failure(false);
                self.dial_if_wanted(peer);
            }
        }
    }

    /// Reports it to the owner; a connection that is still needed is retried at the lowest rate.
    fn refuse(&mut self, peer: PeerId, refusal: Refusal) {
        tracing::warn!(%peer, %refusal, "link refused");
        self.news.refused(peer, refusal);
        self.line(peer).note_failure(true);
        self.dial_if_wanted(peer);
    }

    fn dial_if_wanted(&mut self, peer: PeerId) {
        let Some(line) = self.lines.get_mut(&peer) else { return };
        let Some(address) = line.address().filter(|_| line.wants_connection() && peer != self.me) else { return };
        let ordinal = line.known_peer.next_ordinal();
        let pause = dial::pause(&self.settings, line.failures);
        let dial = Dial { peer, address, ordinal, pause };
        let dialling = dial.run(self.endpoint.clone(), self.dialling.clone(), self.happenings.clone());
        line.attempt = Attempt::Dialling { ordinal, task: tokio::spawn(dialling).abort_handle() };
    }

    /// Periodically closes unused connections, and those whose certificate has expired.
    fn make_round(&mut self) {
        let now = Timestamp::now();
        let mut over = Vec::new();
        for (peer, line) in &mut self.lines {
            let Some(live) = &line.live else { continue };
            line.failures = 0;
            // Only the dialling side may consider a connection unused: the other cannot know whether it is held on
            // purpose.
            let unused = live.rank.dialler() == self.me && !line.contact.held && line.delivery.is_quiet();
            if live.until < now {
                over.push((*peer, Ending::Lost("the certificate has expired".to_owned())));
            } else if unused && line.used.elapsed() >= self.settings.unused_after {
                over.push((*peer, Ending::Farewell));
            }
        }
        for (peer, ending) in over {
            self.end(peer, &ending);
        }
    }

    /// A peer that has not acknowledged anything for a while may have been restarted.
    fn look_after_awaited(&mut self) {
        let lines = &mut self.lines;
        self.awaited.retain(|peer| match lines.get_mut(peer) {
            Some(line) if line.delivery.has_mail() && line.live.is_some() => {
                line.nudge();
                true
            }
            _ => false,
        });
    }

    fn hello(&mut self, peer: PeerId, ordinal: u64) -> Hello {
        let (me, incarnation, life) = (self.me, self.incarnation, self.life);
        let delivery = &self.line(peer).delivery;
        Hello { peer: me, incarnation, life, ordinal, applied: delivery.applied(), sent: delivery.sent() }
    }

    fn line(&mut self, peer: PeerId) -> &mut PeerLink {
        self.lines.entry(peer).or_insert_with(|| PeerLink::new(LinkState::default()))
    }
}
