//! Dialling a peer, with exponential back-off and jitter.

use std::net::SocketAddr;
use std::time::Duration;

use quinn::{ClientConfig, Connection, Endpoint};
use ring::rand::{SecureRandom, SystemRandom};
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::Settings;
use super::connection::{Ending, Goodbye, SocketEvent};
use crate::identity::{Certified, host_name};
use crate::peer::PeerId;
use crate::quic;

/// One attempt.
#[derive(Debug)]
pub(super) struct Dial {
    pub(super) peer: PeerId,
    pub(super) address: SocketAddr,
    pub(super) ordinal: u64,
    pub(super) pause: Duration,
}

impl Dial {
    /// Makes the attempt and reports the result to the switchboard.
    pub(super) async fn run(self, endpoint: Endpoint, config: ClientConfig, happenings: mpsc::Sender<SocketEvent>) {
        sleep(self.pause).await;
        let event = match self.connect(&endpoint, config).await {
            Ok((connection, certified)) => SocketEvent::Dialled { ordinal: self.ordinal, certified, connection },
            Err(ending) => SocketEvent::DialFailed { peer: self.peer, ordinal: self.ordinal, ending },
        };
        // If this fails, the switchboard has ended, and the connection ends with it.
        let _ = happenings.send(event).await;
    }

    async fn connect(&self, endpoint: &Endpoint, config: ClientConfig) -> Result<(Connection, Certified), Ending> {
        let connecting = endpoint.connect_with(config, self.address, &host_name(self.peer));
        let connecting = connecting.map_err(|error| Ending::Lost(error.to_string()))?;
        let connection = connecting.await.map_err(|error| Ending::of(&error))?;
        // rustls has verified the chain and the name; that this is the intended peer is checked here.
        match certified(&connection) {
            Some(certified) if certified.peer == self.peer => Ok((connection, certified)),
            _ => {
                Goodbye::Refused.say(&connection, "the certificate belongs to another peer");
                Err(Ending::Lost("the certificate belongs to another peer".to_owned()))
            }
        }
    }
}

/// The contents of the other side's certificate.
pub(super) fn certified(connection: &Connection) -> Option<Certified> {
    quic::peer_chain(connection).first().and_then(|certificate| Certified::read(certificate).ok())
}

/// The pause after this many failures.
pub(super) fn pause(settings: &Settings, failures: u32) -> Duration {
    let Some(doublings) = failures.checked_sub(1) else { return Duration::ZERO };
    let longest = settings.redial_first.saturating_mul(1 << doublings.min(20)).min(settings.redial_max);
    longest.mul_f64(0.5 + chance() / 2.0)
}

/// Between 0 and 1.
fn chance() -> f64 {
    let mut bytes = [0; 4];
    // Without randomness all peers wait equally long, which is slow but correct.
    let _ = SystemRandom::new().fill(&mut bytes);
    f64::from(u32::from_le_bytes(bytes)) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_the_longest_and_differ() {
        let settings = Settings {
            redial_first: Duration::from_millis(100),
            redial_max: Duration::from_secs(1),
            ..Settings::default()
        };
        assert_eq!(pause(&settings, 0), Duration::ZERO);
        for failures in 1..100 {
            let longest = Duration::from_millis(100).saturating_mul(1 << (failures - 1).min(10));
            let longest = longest.min(settings.redial_max);
            let pauses: Vec<Duration> = (0..20).map(|_| pause(&settings, failures)).collect();
            assert!(pauses.iter().all(|pause| (longest / 2..=longest).contains(pause)));
            assert!(pauses.iter().any(|pause| *pause != pauses[0]));
        }
    }
}
