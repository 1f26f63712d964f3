//! The authority without a network: which requests are accepted, which are refused, and why.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use super::certificate::public_key;
use super::credentials::{Identity, Key};
use super::{Authority, Certified, Grant, JoinRefusal, JoinRequest, JoinToken};
use crate::error::Error;
use crate::peer::{PeerId, Timestamp, VmName};

const NOW: Timestamp = Timestamp(1_900_000_000);
const HOUR: u64 = 3600;

#[test]
fn an_invited_vm_gets_a_certificate_with_its_number_and_name() {
    let mut office = Office::new("invited");
    let token = office.authority.invite(None, HOUR, NOW).unwrap();
    let grant = office.admit(&token, "web", &office.key("web"), NOW).unwrap();
    let certified = Certified::read(&grant.certificate).unwrap();
    assert_eq!((grant.peer, certified.peer, certified.name.as_str()), (PeerId(1), PeerId(1), "web"));
    assert!(certified.from < NOW);
    assert_eq!(certified.until, NOW.after(24 * HOUR));
}

#[test]
fn a_token_is_valid_once_but_a_lost_answer_can_be_requested_again() {
    let mut office = Office::new("once");
    let token = office.authority.invite(None, HOUR, NOW).unwrap();
    let key = office.key("web");
    assert_eq!(office.admit(&token, "web", &key, NOW).unwrap().peer, PeerId(1));
    // The same key asks again, as after a lost answer: the same number.
    assert_eq!(office.admit(&token, "web", &key, NOW).unwrap().peer, PeerId(1));
    // Another key is refused, even after a restart of the manager.
    office.reload();
    let refusal = office.admit(&token, "web", &office.key("other"), NOW).unwrap_err();
    assert_eq!(refusal, JoinRefusal::AlreadyUsed(PeerId(1)));
}

#[test]
fn of_two_concurrent_requests_with_one_token_only_the_first_is_admitted() {
    let mut office = Office::new("race");
    let token = office.authority.invite(None, HOUR, NOW).unwrap();
    let first = office.authority.examine(&request(&token, "a", &office.key("a")), NOW).unwrap();
    let second = office.authority.examine(&request(&token, "b", &office.key("b")), NOW).unwrap();
    office.authority.admit(&first, PeerId(1), NOW).unwrap();
    let late = office.authority.admit(&second, PeerId(2), NOW).unwrap_err();
    assert!(matches!(late, Error::Join(JoinRefusal::AlreadyUsed(PeerId(1)))));
}

#[test]
fn a_token_expires() {
    let mut office = Office::new("expires");
    let token = office.authority.invite(None, HOUR, NOW).unwrap();
    let key = office.key("web");
    assert_eq!(office.admit(&token, "web", &key, NOW.after(HOUR + 1)).unwrap_err(), JoinRefusal::Expired);
    assert!(office.admit(&token, "web", &key, NOW.after(HOUR)).is_ok());
}

#[test]
fn a_token_for_one_name_is_for_that_name() {
    let mut office = Office::new("name");
    let name = VmName::parse("web").unwrap();
    let token = office.authority.invite(Some(name.clone()), HOUR, NOW).unwrap();
    office.reload();
    let refusal = office.admit(&token, "db", &office.key("db"), NOW).unwrap_err();
    assert_eq!(refusal, JoinRefusal::WrongName(name));
    assert!(office.admit(&token, "web", &office.key("web"), NOW).is_ok());
}

#[test]
fn a_tampered_token_is_unknown_or_unreadable() {
    let mut office = Office::new("tampered");
    let token = office.authority.invite(None, HOUR, NOW).unwrap();
    let text = token.to_string();
    assert_eq!(JoinToken::parse(&text).unwrap(), token);
    let key = office.key("web");
    for at in 0..text.len() {
        let mut bytes = text.clone().into_bytes();
        bytes[at] = if bytes[at] == b'0' { b'1' } else { b'0' };
        let Ok(other) = JoinToken::parse(&String::from_utf8(bytes).unwrap()) else { continue };
        // Either the secret is wrong, or the fingerprint, and then the new peer does not recognise the manager.
        if other.authority == token.authority {
            assert_eq!(office.admit(&other, "web", &key, NOW).unwrap_err(), JoinRefusal::UnknownToken);
        }
    }
    for text in ["", "hf1", "hf1--", "hf2-00-00", "hf1-ä-ö"] {
        assert!(JoinToken::parse(text).is_err(), "{text}");
    }
}

#[test]
fn a_request_that_is_not_signed_by_its_key_is_refused() {
    let mut office = Office::new("unsigned");
    let token = office.authority.invite(None, HOUR, NOW).unwrap();
    let key = office.key("web");
    let sound = request(&token, "web", &key);
    for at in 0..sound.certificate_request.len() {
        let mut broken = sound.clone();
        broken.certificate_request[at] ^= 1;
        // Some bytes of the encoding have no meaning; what passes is for the key that signed, and for no other.
        if let Ok(applicant) = office.authority.examine(&broken, NOW) {
            let grant = office.authority.admit(&applicant, PeerId(1), NOW).unwrap();
            assert_eq!(public_key(&grant.certificate).unwrap(), key.pair().public_key_raw(), "byte {at}");
        }
    }
    for garbage in [vec![], vec![0x30], vec![0xFF; 300]] {
        let broken = JoinRequest { certificate_request: garbage, ..sound.clone() };
        assert!(matches!(office.authority.examine(&broken, NOW), Err(Error::Join(JoinRefusal::BadRequest))));
    }
}

#[test]
fn a_certificate_is_renewed_for_the_same_peer_and_key() {
    let mut office = Office::new("renewed");
    let token = office.authority.invite(None, HOUR, NOW).unwrap();
    let directory = office.directory.join("web");
    let key = office.key("web");
    let grant = office.admit(&token, "web", &key, NOW).unwrap();
    let authority = fs::read(office.directory.join("authority-certificate.der")).unwrap();
    let identity = Identity::create(&directory, key, grant.certificate, authority).unwrap();
    let due = identity.certified().renewal_due();
    assert!(NOW < due && due < NOW.after(24 * HOUR));

    let Certified { peer, name, .. } = identity.certified().clone();
    let next = office.authority.renew(peer, &name, &identity.key().request().unwrap(), due).unwrap();
    let renewed = identity.renewed(&directory, next.certificate).unwrap();
    assert_eq!(renewed.certified().until, due.after(24 * HOUR));
    assert_eq!(renewed.derive("anything"), identity.derive("anything"));
    // It is what the program finds after a restart.
    let loaded = Identity::load(&directory).unwrap().unwrap();
    assert_eq!(loaded.certified(), renewed.certified());

    // A certificate for another key or peer is rejected.
    let other = office.key("other");
    let for_other_key = office.authority.renew(peer, &name, &other.request().unwrap(), due).unwrap();
    assert!(identity.renewed(&directory, for_other_key.certificate).is_err());
}

#[test]
fn a_revoked_peer_gets_no_further_certificate() {
    let mut office = Office::new("revoked");
    let token = office.authority.invite(None, HOUR, NOW).unwrap();
    let key = office.key("web");
    let peer = office.admit(&token, "web", &key, NOW).unwrap().peer;
    office.authority.revoke(peer).unwrap();
    office.reload();
    assert!(office.authority.revoked().contains(&peer));
    let name = VmName::parse("web").unwrap();
    let renewal = office.authority.renew(peer, &name, &key.request().unwrap(), NOW).unwrap_err();
    assert!(matches!(renewal, Error::Join(JoinRefusal::Revoked(PeerId(1)))));
    assert_eq!(office.admit(&token, "web", &key, NOW).unwrap_err(), JoinRefusal::Revoked(peer));
}

#[test]
fn tickets_are_signed_by_the_manager_and_deterministic() {
    let office = Office::new("tickets");
    let identity = office.authority.manager_identity(&office.directory, NOW).unwrap();
    let ticket = office.authority.signer().sign(b"binding 7");
    assert_eq!(ticket, office.authority.signer().sign(b"binding 7"));
    identity.verify(&ticket, b"binding 7").unwrap();
    assert!(identity.verify(&ticket, b"binding 8").is_err());
    let stranger = Office::new("tickets-stranger");
    assert!(identity.verify(&stranger.authority.signer().sign(b"binding 7"), b"binding 7").is_err());
}

#[test]
fn files_with_secrets_are_readable_by_their_owner_only() {
    let mut office = Office::new("secrets");
    office.authority.invite(None, HOUR, NOW).unwrap();
    office.authority.manager_identity(&office.directory, NOW).unwrap();
    let mut seen = 0;
    for entry in fs::read_dir(&office.directory).unwrap() {
        let metadata = entry.unwrap().metadata().unwrap();
        assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
        seen += 1;
    }
    assert_eq!(seen, 6);
}

#[test]
fn damaged_files_are_named() {
    let office = Office::new("damaged");
    for name in ["authority-key.der", "authority-certificate.der", "tokens", "revoked"] {
        let path = office.directory.join(name);
        let sound = fs::read(&path).ok();
        fs::write(&path, b"nonsense").unwrap();
        let error = Authority::create_or_load(&office.directory, HOUR, NOW).err().unwrap();
        assert!(matches!(&error, Error::Damaged { path: named } if *named == path), "{error}");
        match sound {
            Some(bytes) => fs::write(&path, bytes).unwrap(),
            None => fs::remove_file(&path).unwrap(),
        }
    }
}

/// An authority in a directory of its own, which is removed with it.
struct Office {
    directory: PathBuf,
    authority: Authority,
    admitted: u64,
}

impl Office {
    fn new(name: &str) -> Self {
        let directory = std::env::temp_dir().join(format!("holdfast-identity-{name}-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let authority = Authority::create_or_load(&directory, 24 * HOUR, NOW).unwrap();
        Self { directory, authority, admitted: 0 }
    }

    fn reload(&mut self) {
        self.authority = Authority::create_or_load(&self.directory, 24 * HOUR, NOW).unwrap();
    }

    fn key(&self, name: &str) -> Key {
        let directory = self.directory.join(name);
        fs::create_dir_all(&directory).unwrap();
        Key::create_or_load(&directory).unwrap()
    }

    fn admit(&mut self, token: &JoinToken, name: &str, key: &Key, now: Timestamp) -> Result<Grant, JoinRefusal> {
        let admitted = self
            .authority
            .examine(&request(token, name, key), now)
            .and_then(|applicant| self.authority.admit(&applicant, PeerId(self.admitted + 1), now));
        match admitted {
            Ok(grant) => {
                self.admitted += 1;
                Ok(grant)
            }
            Err(Error::Join(refusal)) => Err(refusal),
            Err(other) => panic!("{other}"),
        }
    }
}

impl Drop for Office {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn request(token: &JoinToken, name: &str, key: &Key) -> JoinRequest {
    let name = VmName::parse(name).unwrap();
    JoinRequest { secret: token.secret, name, certificate_request: key.request().unwrap() }
}
