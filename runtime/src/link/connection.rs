//! One QUIC connection: hello, reading, writing.
//!
//! Each side opens exactly one stream, because order is guaranteed only within a stream. There is one reader and one
//! writer task per connection, and they have no state: frames go to the switchboard, batches come from it. A stream
//! that ends without a goodbye counts as lost, because dropping a stream ends it cleanly too.

use quinn::{Connection, ConnectionError, RecvStream, SendStream, VarInt};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::frame::{self, Decoder, Frame, Hello};
use super::limits::HELLO_PATIENCE;
use super::{Refusal, Violation};
use crate::identity::Certified;
use crate::peer::PeerId;

/// Socket events, for the switchboard.
#[derive(Debug)]
pub(super) enum SocketEvent {
    /// A dial completed the handshake; no hello has been sent.
    Dialled { ordinal: u64, certified: Certified, connection: Connection },
    /// A dial failed, or its hello was not answered.
    DialFailed { peer: PeerId, ordinal: u64, ending: Ending },
    /// The peer has said hello on a connection.
    Met(Box<GreetedConnection>),
    /// Frames were received.
    Heard { peer: PeerId, generation: u64, frames: Vec<Frame> },
    /// The last batch is written; the next one can be sent.
    Written { peer: PeerId, generation: u64 },
    /// The connection has ended.
    Ended { peer: PeerId, generation: u64, ending: Ending },
}

/// A connection on which the peer has said hello.
#[derive(Debug)]
pub(super) struct GreetedConnection {
    pub(super) connection: Connection,
    pub(super) certified: Certified,
    pub(super) dialler: PeerId,
    pub(super) hello: Hello,
    /// Our own hello, if it has been sent: the dialling side speaks first.
    pub(super) ours: Option<Hello>,
    pub(super) send: SendStream,
    pub(super) receive: RecvStream,
    pub(super) decoder: Decoder,
}

/// Why a connection is closed, as sent to the other side. Zero is not used: it is the code of a dropped connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Goodbye {
    Farewell = 1,
    Superseded = 2,
    Refused = 3,
    Violation = 4,
    Gone = 5,
    Revoked = 6,
}

impl Goodbye {
    pub(super) fn code(self) -> VarInt {
        VarInt::from_u32(self as u32)
    }

    /// Closes the connection with a readable reason.
    pub(super) fn say(self, connection: &Connection, reason: &str) {
        connection.close(self.code(), reason.as_bytes());
    }
}

/// How a connection ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Ending {
    /// On purpose.
    Farewell,
    /// A newer connection exists.
    Superseded,
    /// The peer refused it, and said why.
    Refused(Refusal),
    /// The peer violated the protocol.
    Violation(Violation),
    /// Anything else.
    Lost(String),
}

impl Ending {
    pub(super) fn of(error: &ConnectionError) -> Self {
        let ConnectionError::ApplicationClosed(close) = error else { return Self::Lost(error.to_string()) };
        let is = |goodbye: Goodbye| close.error_code == goodbye.code();
        if is(Goodbye::Farewell) {
            Self::Farewell
        } else if is(Goodbye::Superseded) {
            Self::Superseded
        } else if is(Goodbye::Refused) || is(Goodbye::Violation) {
            Self::Refused(Refusal::ByPeer(String::from_utf8_lossy(&close.reason).into_owned()))
        } else if is(Goodbye::Revoked) {
            Self::Refused(Refusal::Revoked)
        } else {
            Self::Lost(error.to_string())
        }
    }

    /// The reason why the connection ended is more useful than that of the stream, if there is one.
    fn of_stream(connection: &Connection, stream: &dyn std::fmt::Display) -> Self {
        connection.close_reason().map_or_else(|| Self::Lost(stream.to_string()), |reason| Self::of(&reason))
    }
}

/// Says hello on a connection that we dialled and waits for the answer.
pub(super) async fn greet(
    connection: Connection,
    certified: Certified,
    ours: Hello,
) -> Result<GreetedConnection, Ending> {
    let exchange = async {
        let mut send = connection.open_uni().await.map_err(|error| Ending::of(&error))?;
        let mut first = Vec::new();
        frame::put_hello(&mut first, &ours);
        send.write_all(&first).await.map_err(|error| Ending::of_stream(&connection, &error))?;
        let receive = connection.accept_uni().await.map_err(|error| Ending::of(&error))?;
        let (hello, receive, decoder) = hear_hello(&connection, receive, &certified).await?;
        Ok((hello, send, receive, decoder))
    };
    let (hello, send, receive, decoder) = in_time(exchange).await?;
    Ok(GreetedConnection { connection, certified, dialler: ours.peer, hello, ours: Some(ours), send, receive, decoder })
}

/// Waits for the hello on a connection that the peer dialled.
pub(super) async fn welcome(connection: Connection, certified: Certified) -> Result<GreetedConnection, Ending> {
    let exchange = async {
        let receive = connection.accept_uni().await.map_err(|error| Ending::of(&error))?;
        let (hello, receive, decoder) = hear_hello(&connection, receive, &certified).await?;
        let send = connection.open_uni().await.map_err(|error| Ending::of(&error))?;
        Ok((hello, send, receive, decoder))
    };
    let (hello, send, receive, decoder) = in_time(exchange).await?;
    let dialler = certified.peer;
    Ok(GreetedConnection { connection, certified, dialler, hello, ours: None, send, receive, decoder })
}

async fn in_time<T>(exchange: impl Future<Output = Result<T, Ending>>) -> Result<T, Ending> {
    timeout(HELLO_PATIENCE, exchange)
        .await
        .unwrap_or_else(|_| Err(Ending::Lost("no hello before the timeout".to_owned())))
}

async fn hear_hello(
    connection: &Connection,
    mut receive: RecvStream,
    certified: &Certified,
) -> Result<(Hello, RecvStream, Decoder), Ending> {
    let mut decoder = Decoder::default();
    let frame = loop {
        if let Some(frame) = decoder.next_frame().map_err(Ending::Violation)? {
            break frame;
        }
        read_into(&mut decoder, connection, &mut receive).await?;
    };
    match frame {
        Frame::Hello(hello) if hello.peer == certified.peer => Ok((hello, receive, decoder)),
        Frame::Hello(hello) => Err(Ending::Violation(Violation::Impostor(hello.peer))),
        _ => Err(Ending::Violation(Violation::Hello)),
    }
}

/// Passes incoming frames to the switchboard until the stream ends.
pub(super) async fn read(
    peer: PeerId,
    generation: u64,
    connection: Connection,
    mut receive: RecvStream,
    mut decoder: Decoder,
    happenings: mpsc::Sender<SocketEvent>,
) {
    let ending = loop {
        let (frames, violation) = take_frames(&mut decoder);
        if !frames.is_empty() && happenings.send(SocketEvent::Heard { peer, generation, frames }).await.is_err() {
            return;
        }
        if let Some(violation) = violation {
            break Ending::Violation(violation);
        }
        if let Err(ending) = read_into(&mut decoder, &connection, &mut receive).await {
            break ending;
        }
    };
    // If this fails, the switchboard has ended.
    let _ = happenings.send(SocketEvent::Ended { peer, generation, ending }).await;
}

/// All complete frames; those before a violation count.
fn take_frames(decoder: &mut Decoder) -> (Vec<Frame>, Option<Violation>) {
    let mut frames = Vec::new();
    loop {
        match decoder.next_frame() {
            Ok(Some(frame)) => frames.push(frame),
            Ok(None) => return (frames, None),
            Err(violation) => return (frames, Some(violation)),
        }
    }
}

async fn read_into(decoder: &mut Decoder, connection: &Connection, receive: &mut RecvStream) -> Result<(), Ending> {
    match receive.read_chunk(usize::MAX, true).await {
        Ok(Some(chunk)) => {
            decoder.push(&chunk.bytes);
            Ok(())
        }
        Ok(None) => Err(Ending::of_stream(connection, &"the stream ended without a goodbye")),
        Err(error) => Err(Ending::of_stream(connection, &error)),
    }
}

/// Writes batch after batch. This must not be cancelled half-way: a batch is written completely or the connection ends.
pub(super) async fn write(
    peer: PeerId,
    generation: u64,
    connection: Connection,
    mut send: SendStream,
    mut batches: mpsc::Receiver<Vec<u8>>,
    happenings: mpsc::Sender<SocketEvent>,
) {
    while let Some(batch) = batches.recv().await {
        let event = match send.write_all(&batch).await {
            Ok(()) => SocketEvent::Written { peer, generation },
            Err(error) => SocketEvent::Ended { peer, generation, ending: Ending::of_stream(&connection, &error) },
        };
        let over = matches!(event, SocketEvent::Ended { .. });
        if happenings.send(event).await.is_err() || over {
            return;
        }
    }
}
