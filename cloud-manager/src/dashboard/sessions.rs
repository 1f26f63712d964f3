//! Sessions of browsers: one-time links that open them, cookies that carry them, and the tokens whose rights they have.
//!
//! A session belongs to an operator's token and ends with it. Only hashes of the secrets are kept. Links live in memory, for
//! two minutes and one use; sessions are written to a file, so that a page keeps working when the manager restarts.

use crate::api::Tokens;
use crate::document::Token;
use ring::{
    digest, hmac,
    rand::{SecureRandom, SystemRandom},
};
use serde::{Deserialize, Serialize};
use std::{
    fs, io,
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// How long a link can be used.
const LINK_MS: u64 = 2 * 60 * 1_000;
/// How long a session lasts.
pub(crate) const SESSION_S: u64 = 12 * 60 * 60;
/// Links and sessions at a time; beyond, the oldest end.
const LINKS_MAX: usize = 100;
const SESSIONS_MAX: usize = 1_000;

/// All links and sessions.
#[derive(Debug)]
pub(crate) struct Sessions {
    path: PathBuf,
    links: Mutex<Vec<Entry>>,
    sessions: Mutex<Vec<Entry>>,
    /// Drawn anew by each program: comparing under it takes the same time whatever is compared.
    key: Option<hmac::Key>,
    random: SystemRandom,
}

/// A secret that stands for a token for a while.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    sha256: String,
    token: String,
    expires_at_ms: u64,
}

/// Why there is no link or session. Nothing has changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SessionError {
    /// The system has no random numbers.
    #[error("the system gives no random numbers")]
    Random,
    /// The file cannot be written.
    #[error("the sessions cannot be written: {0}")]
    Write(runtime::Error),
    /// The link was used, has expired, or was never made.
    #[error("this link was used before or has expired (make another with: holdfast dashboard)")]
    Link,
}

/// A secret that was just made, and when it ends.
pub(crate) struct Made {
    pub(crate) secret: String,
    pub(crate) expires_at_ms: u64,
}

impl Sessions {
    /// The sessions in this file; none if it is missing or damaged, because a new login is easy.
    pub(crate) fn open(path: PathBuf) -> Self {
        let sessions = match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).unwrap_or_else(|error| {
                tracing::warn!(path = %path.display(), %error, "sessions of browsers cannot be read, and are forgotten");
                Vec::new()
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "sessions of browsers cannot be read, and are forgotten");
                Vec::new()
            }
        };
        let random = SystemRandom::new();
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &random).ok();
        Self { path, links: Mutex::default(), sessions: Mutex::new(sessions), key, random }
    }

    /// Makes a link for a token: good once, for two minutes.
    pub(crate) fn link(&self, token: &Token, now_ms: u64) -> Result<Made, SessionError> {
        let (made, entry) = self.make(&token.id, now_ms, LINK_MS)?;
        let mut links = held(&self.links);
        links.retain(|it| it.expires_at_ms > now_ms);
        let surplus = (links.len() + 1).saturating_sub(LINKS_MAX);
        links.drain(..surplus);
        links.push(entry);
        Ok(made)
    }

    /// Turns the secret of a link into a session. Durable when this returns.
    pub(crate) fn log_in(&self, link: &str, now_ms: u64) -> Result<Made, SessionError> {
        let token = {
            let mut links = held(&self.links);
            let place = self.find(&links, link, now_ms).ok_or(SessionError::Link)?;
            links.swap_remove(place).token
        };
        let (made, entry) = self.make(&token, now_ms, SESSION_S * 1_000)?;
        let mut sessions = held(&self.sessions);
        let mut changed: Vec<Entry> = sessions.iter().filter(|it| it.expires_at_ms > now_ms).cloned().collect();
        let surplus = (changed.len() + 1).saturating_sub(SESSIONS_MAX);
        changed.drain(..surplus);
        changed.push(entry);
        self.save(&mut sessions, changed)?;
        Ok(made)
    }

    /// Ends a session.
    pub(crate) fn log_out(&self, secret: &str, now_ms: u64) -> Result<(), SessionError> {
        let mut sessions = held(&self.sessions);
        let Some(place) = self.find(&sessions, secret, now_ms) else { return Ok(()) };
        let mut changed = sessions.clone();
        changed.swap_remove(place);
        self.save(&mut sessions, changed)
    }

    /// The token whose rights a session has: nothing if the session has ended or the token was revoked.
    pub(crate) fn token(&self, tokens: &Tokens, secret: &str, now_ms: u64) -> Option<Token> {
        let sessions = held(&self.sessions);
        let place = self.find(&sessions, secret, now_ms)?;
        tokens.by_id(&sessions.get(place)?.token)
    }

    /// What a page has to send with each request that changes something. Another site cannot know it, because it follows
    /// from the cookie that only the browser sends.
    pub(crate) fn csrf(secret: &str) -> String {
        hashed(&format!("csrf {secret}"))
    }

    /// Whether a text is the one that this session has to send.
    pub(crate) fn is_csrf(&self, secret: &str, presented: &str) -> bool {
        let Some(key) = &self.key else { return false };
        let expected = hmac::sign(key, Self::csrf(secret).as_bytes());
        hmac::verify(key, presented.as_bytes(), expected.as_ref()).is_ok()
    }

    fn make(&self, token: &str, now_ms: u64, for_ms: u64) -> Result<(Made, Entry), SessionError> {
        let mut bytes = [0_u8; 32];
        self.random.fill(&mut bytes).map_err(|_| SessionError::Random)?;
        let secret = hexadecimal(&bytes);
        let expires_at_ms = now_ms + for_ms;
        let entry = Entry { sha256: hashed(&secret), token: token.to_owned(), expires_at_ms };
        Ok((Made { secret, expires_at_ms }, entry))
    }

    fn find(&self, entries: &[Entry], secret: &str, now_ms: u64) -> Option<usize> {
        let key = self.key.as_ref()?;
        let presented = hmac::sign(key, hashed(secret).as_bytes());
        let mut found = None;
        for (place, entry) in entries.iter().enumerate() {
            let same = hmac::verify(key, entry.sha256.as_bytes(), presented.as_ref()).is_ok();
            if same && entry.expires_at_ms > now_ms {
                found = Some(place);
            }
        }
        found
    }

    /// Writes the changed list first and believes it afterwards.
    fn save(&self, sessions: &mut Vec<Entry>, changed: Vec<Entry>) -> Result<(), SessionError> {
        let bytes = serde_json::to_vec_pretty(&changed).expect("sessions are strings and numbers");
        runtime::data_directory::replace_file(&self.path, &bytes).map_err(SessionError::Write)?;
        *sessions = changed;
        Ok(())
    }
}

fn held(entries: &Mutex<Vec<Entry>>) -> MutexGuard<'_, Vec<Entry>> {
    // Entries are replaced whole, so a panic elsewhere has left them as they were.
    entries.lock().unwrap_or_else(PoisonError::into_inner)
}

fn hashed(text: &str) -> String {
    hexadecimal(digest::digest(&digest::SHA256, text.as_bytes()).as_ref())
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Role;

    struct Stand {
        place: PathBuf,
        tokens: Tokens,
        token: Token,
    }

    impl Stand {
        fn new(name: &str) -> Self {
            let place = std::env::temp_dir().join(format!("holdfast-{name}-{}", std::process::id()));
            fs::create_dir_all(&place).unwrap();
            let tokens = Tokens::open(&place.join("tokens.json")).unwrap();
            let (_, token) = tokens.create("colleague", Role::Read, 0).unwrap();
            tokens.create("admin", Role::Admin, 0).unwrap();
            Self { place, tokens, token }
        }

        fn sessions(&self) -> Sessions {
            Sessions::open(self.place.join("sessions.json"))
        }
    }

    impl Drop for Stand {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.place);
        }
    }

    #[test]
    fn a_link_opens_one_session_and_only_for_a_while() {
        let stand = Stand::new("links");
        let sessions = stand.sessions();
        let link = sessions.link(&stand.token, 1_000).unwrap();
        let session = sessions.log_in(&link.secret, 2_000).unwrap();
        assert_eq!(sessions.token(&stand.tokens, &session.secret, 3_000), Some(stand.token.clone()));
        assert!(matches!(sessions.log_in(&link.secret, 2_001), Err(SessionError::Link)));
        let late = sessions.link(&stand.token, 1_000).unwrap();
        assert!(matches!(sessions.log_in(&late.secret, 1_000 + LINK_MS), Err(SessionError::Link)));
        assert_eq!(sessions.token(&stand.tokens, &session.secret, 2_000 + SESSION_S * 1_000), None);
    }

    #[test]
    fn a_session_survives_a_restart_and_ends_with_its_token() {
        let stand = Stand::new("restart");
        let link = |sessions: &Sessions| sessions.link(&stand.token, 0).unwrap();
        let sessions = stand.sessions();
        let session = sessions.log_in(&link(&sessions).secret, 1).unwrap();
        let text = fs::read_to_string(stand.place.join("sessions.json")).unwrap();
        assert!(!text.contains(&session.secret));
        let sessions = stand.sessions();
        assert_eq!(sessions.token(&stand.tokens, &session.secret, 2), Some(stand.token.clone()));
        let other = sessions.log_in(&link(&sessions).secret, 2).unwrap();
        sessions.log_out(&other.secret, 3).unwrap();
        assert_eq!(sessions.token(&stand.tokens, &other.secret, 4), None);
        stand.tokens.revoke(&stand.token.id).unwrap();
        assert_eq!(sessions.token(&stand.tokens, &session.secret, 5), None);
    }

    #[test]
    fn only_the_session_itself_knows_what_a_request_must_carry() {
        let stand = Stand::new("csrf");
        let sessions = stand.sessions();
        assert!(sessions.is_csrf("a", &Sessions::csrf("a")));
        assert!(!sessions.is_csrf("a", &Sessions::csrf("b")));
        assert!(!sessions.is_csrf("a", ""));
    }
}
