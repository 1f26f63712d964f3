//! Malformed and hostile input is answered with an error; nothing breaks, and other clients do not notice.

mod test_manager;

use cloud_manager::{
    api::Settings,
    client::{Client, ClientError},
    document::{Status, Well},
};
use hyper::Method;
use proptest::{
    arbitrary::any,
    collection::vec,
    prelude::{Just, Strategy, prop_oneof},
    strategy::ValueTree,
    test_runner::{Config, TestRunner},
};
use serde_json::json;
use std::time::Duration;
use test_manager::TestManager;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::timeout,
};

/// The status of an answer.
async fn answered(client: &Client, method: Method, path: &str, body: Vec<u8>) -> u16 {
    match client.request(method, path, body).await {
        Ok(_) => 200,
        Err(ClientError::Refused(status, problems)) => {
            assert!(!problems.error.is_empty());
            status
        }
        Err(other) => panic!("{path}: {other}"),
    }
}

/// Bodies that are almost valid: words of the language in the wrong places, truncated, or arbitrary bytes.
fn bodies() -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![
        Just("{"),
        Just("}"),
        Just("["),
        Just("]"),
        Just(":"),
        Just(","),
        Just("null"),
        Just("-1"),
        Just("1e999"),
        Just("\"edits\""),
        Just("\"add-vm\""),
        Just("\"add-component\""),
        Just("\"bind\""),
        Just("\"name\""),
        Just("\"vm\""),
        Just("\"imports\""),
        Just("\"recipe\""),
        Just("\"a.b → c.d\""),
        Just("\"strategy\""),
        Just("\"together\""),
        Just("\"\\ud800\""),
        Just("{\"edits\":[{\"bind\":\"→.→\"},{\"add-vm\":{\"name\":\"x\"}}]}"),
    ];
    let nearly = vec(word, 0..40).prop_map(|words| words.concat().into_bytes());
    prop_oneof![nearly, vec(any::<u8>(), 0..400), Just(b"[".repeat(100_000)), Just(Vec::new())]
}

#[tokio::test]
async fn no_body_breaks_the_manager() {
    let manager = TestManager::new("garbage");
    let client = manager.client();
    let mut runner = TestRunner::new(Config::default());
    let paths = ["/v1/changes?dry-run=true", "/v1/changes", "/v1/tokens", "/v1/join-tokens"];
    for round in 0..300 {
        let body = bodies().new_tree(&mut runner).unwrap().current();
        let path = paths[round % paths.len()];
        let status = answered(&client, Method::POST, path, body.clone()).await;
        assert!(matches!(status, 200 | 400 | 409), "{status} for {:?}", String::from_utf8_lossy(&body));
    }
    assert!(client.get::<Status>("/v1/status").await.is_ok());
}

#[tokio::test]
async fn no_address_breaks_the_manager() {
    let manager = TestManager::new("addresses-hostile");
    let client = manager.client();
    for path in [
        "/",
        "/v1",
        "/v1/",
        "/v1/components/%00",
        "/v1/components/%ff",
        "/v1/components/a%20b",
        "/v1/changes/-1",
        "/v1/changes/99999999999999999999999",
        "/v1/components/..%2f..%2fetc",
        "/v1/history?limit=-1",
        "/v1/history?limit",
        "/v1/components/x/logs?bytes=99999999999999999999",
        "/v1/events?after=x",
        "/v1/status?%ff=%ff",
        "/v2/status",
        "/v1/history?limit=18446744073709551615",
    ] {
        let status = answered(&client, Method::GET, path, Vec::new()).await;
        assert!(matches!(status, 200 | 400 | 404), "{status} for {path}");
    }
    assert_eq!(answered(&client, Method::PUT, "/v1/status", Vec::new()).await, 405);
    assert_eq!(answered(&client, Method::DELETE, "/v1/changes", Vec::new()).await, 405);
}

#[tokio::test]
async fn a_body_that_is_too_long_is_refused_and_one_without_a_token_is_not_read() {
    let settings = Settings { body_bytes_max: 1_000, ..Settings::default() };
    let manager = TestManager::with("size", settings, 100);
    let client = manager.client();
    let body = |bytes: usize| format!("{{\"edits\":[],\"strategy\":\"{}\"}}", "x".repeat(bytes)).into_bytes();
    assert_eq!(answered(&client, Method::POST, "/v1/changes", body(2_000)).await, 413);
    assert_eq!(answered(&client, Method::POST, "/v1/changes", body(500)).await, 400);
    assert_eq!(answered(&manager.client_with("nobody"), Method::POST, "/v1/changes", body(100)).await, 401);
}

#[tokio::test]
async fn slow_connections_are_closed_and_others_are_served_meanwhile() {
    let patience = Duration::from_millis(1_500);
    let settings = Settings { head_timeout: patience, body_timeout: patience, ..Settings::default() };
    let manager = TestManager::with("slow", settings, 100);
    // One sends nothing, one starts a head, one starts a body.
    let mut silent = manager.raw().await;
    let mut beginner = manager.raw().await;
    beginner.write_all(b"GET /v1/health HT").await.unwrap();
    let mut dawdler = manager.raw().await;
    let head = format!(
        "POST /v1/changes HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nContent-Length: 100\r\n\r\n{{",
        manager.access.token
    );
    dawdler.write_all(head.as_bytes()).await.unwrap();
    assert!(manager.client().get::<Well>("/v1/health").await.is_ok());
    let mut text = String::new();
    for stream in [&mut silent, &mut beginner, &mut dawdler] {
        text.clear();
        let end = timeout(Duration::from_secs(20), stream.read_to_string(&mut text)).await;
        // It is closed, one way or another.
        end.expect("the manager closes it").ok();
    }
    assert!(text.starts_with("HTTP/1.1 408"), "{text}");
    // A connection without a TLS handshake is closed as well.
    let mut plain = tokio::net::TcpStream::connect(manager.address).await.unwrap();
    plain.write_all(b"GET / HTTP/1.0\r\n\r\n").await.unwrap();
    let mut bytes = Vec::new();
    timeout(Duration::from_secs(20), plain.read_to_end(&mut bytes)).await.expect("the manager closes it").ok();
}

#[tokio::test]
async fn requests_beyond_the_limit_are_answered_with_try_again() {
    let settings = Settings { requests_max: 1, ..Settings::default() };
    let manager = TestManager::with("room", settings, 100);
    let client = manager.client();
    // A body that never ends takes the only place.
    let mut dawdler = manager.raw().await;
    let head = format!(
        "POST /v1/changes HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n",
        manager.access.token
    );
    dawdler.write_all(head.as_bytes()).await.unwrap();
    let mut bytes = [0; 64];
    // The manager asks for the body: now the place is taken.
    let read = timeout(Duration::from_secs(20), dawdler.read(&mut bytes)).await.unwrap().unwrap();
    assert!(bytes[..read].starts_with(b"HTTP/1.1 100"));
    assert_eq!(answered(&client, Method::GET, "/v1/health", Vec::new()).await, 503);
    drop(dawdler);
    let again = async { while answered(&client, Method::GET, "/v1/health", Vec::new()).await != 200 {} };
    timeout(Duration::from_secs(20), again).await.expect("the place is given back");
}

#[tokio::test]
async fn a_client_trusts_only_the_certificate_of_its_access_file() {
    let (manager, other) = (TestManager::new("genuine"), TestManager::new("false"));
    let mut access = manager.access.clone();
    access.certificate.clone_from(&other.access.certificate);
    let error = Client::new(&access).unwrap().get::<Well>("/v1/health").await.unwrap_err();
    assert!(matches!(error, ClientError::Stranger(..)), "{error}");
    let malformed = json!({ "url": "http://x", "certificate": "", "token": "" });
    assert!(Client::new(&serde_json::from_value(malformed).unwrap()).is_err());
}
