//! The configuration of quinn: windows, timeouts, and the keys with which a peer recovers quickly when this program
//! restarts.
//!
//! A restarted endpoint receives packets of connections that it does not know. It can answer them with a stateless
//! reset, which the peer accepts only if the reset key and the connection-id key are the same as before the restart; so
//! both are derived from the identity. Without them a peer notices a restart only after its idle timeout.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use quinn::crypto::rustls::{HandshakeData, QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, Connection, Endpoint, EndpointConfig, ServerConfig, TokioRuntime, TransportConfig, VarInt};
use quinn_proto::HashedConnectionIdGenerator;
use ring::hmac;
use rustls::pki_types::CertificateDer;

use crate::error::Error;
use crate::identity::Identity;
use crate::identity::tls::Purpose;

const KEEP_ALIVE: Duration = Duration::from_secs(2);
const IDLE_TIMEOUT_MS: u32 = 6_000;
/// Initial estimate of the round-trip time, for machines of one site: a lost handshake packet is repeated after three
/// of these, and a connection that never got further is kept for nine.
const FIRST_GUESS_AT_ROUND_TRIP: Duration = Duration::from_millis(100);
/// Flow-control windows, per stream and per connection: what a stuck reader can make us hold. Frames may be longer;
/// they arrive in pieces.
const STREAM_WINDOW: u32 = 64 << 10;
const CONNECTION_WINDOW: u32 = 128 << 10;
const SEND_WINDOW: u64 = 256 << 10;
/// Receive buffer of the kernel. All peers share one socket; when many connect at once, packets that do not fit are
/// lost, and repeated only after a pause that doubles. The kernel grants less if its own limit is lower.
const SOCKET_BUFFER: usize = 2 << 20;

/// Opens the socket on which this peer accepts connections and from which it dials.
pub(crate) fn endpoint(identity: &Identity, address: SocketAddr) -> Result<Endpoint, Error> {
    let cannot_listen = |source| Error::Listen { address, source };
    let socket = UdpSocket::bind(address).map_err(cannot_listen)?;
    rustix::net::sockopt::set_socket_recv_buffer_size(&socket, SOCKET_BUFFER)
        .map_err(|error| cannot_listen(error.into()))?;
    let reset_key = hmac::Key::new(hmac::HMAC_SHA256, &identity.derive("reset key"));
    let id_key = identity.derive("connection id key");
    let id_key = u64::from_le_bytes(*id_key.first_chunk().expect("derived keys have 32 bytes"));
    let mut config = EndpointConfig::new(Arc::new(reset_key));
    config.cid_generator(move || Box::new(HashedConnectionIdGenerator::from_key(id_key)));
    Endpoint::new(config, None, socket, Arc::new(TokioRuntime)).map_err(cannot_listen)
}

pub(crate) fn server(tls: rustls::ServerConfig) -> Result<ServerConfig, Error> {
    let crypto = QuicServerConfig::try_from(tls).map_err(Error::identity("prepare QUIC"))?;
    let mut config = ServerConfig::with_crypto(Arc::new(crypto));
    config.transport_config(transport());
    Ok(config)
}

pub(crate) fn client(tls: rustls::ClientConfig) -> Result<ClientConfig, Error> {
    let crypto = QuicClientConfig::try_from(tls).map_err(Error::identity("prepare QUIC"))?;
    let mut config = ClientConfig::new(Arc::new(crypto));
    config.transport_config(transport());
    Ok(config)
}

fn transport() -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    transport
        .keep_alive_interval(Some(KEEP_ALIVE))
        .max_idle_timeout(Some(VarInt::from_u32(IDLE_TIMEOUT_MS).into()))
        .initial_rtt(FIRST_GUESS_AT_ROUND_TRIP)
        .max_concurrent_uni_streams(VarInt::from_u32(1))
        .max_concurrent_bidi_streams(VarInt::from_u32(1))
        .stream_receive_window(VarInt::from_u32(STREAM_WINDOW))
        .receive_window(VarInt::from_u32(CONNECTION_WINDOW))
        .send_window(SEND_WINDOW)
        .datagram_receive_buffer_size(None);
    Arc::new(transport)
}

/// The certificates that the other side has presented, its own first; rustls has verified them.
pub(crate) fn peer_chain(connection: &Connection) -> Vec<Vec<u8>> {
    let shown = connection.peer_identity().and_then(|shown| shown.downcast::<Vec<CertificateDer<'static>>>().ok());
    shown.map(|chain| chain.iter().map(|certificate| certificate.to_vec()).collect()).unwrap_or_default()
}

/// The purpose that the handshake has agreed on.
pub(crate) fn purpose(connection: &Connection) -> Option<Purpose> {
    let data = connection.handshake_data()?.downcast::<HandshakeData>().ok()?;
    Purpose::of(&data.protocol?)
}
