//! Where a text names another service as a host. Compose resolves such names on its own network; here, the address comes
//! from an import, so the text must say so.

/// A place in a text that names a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mention {
    /// Bytes of the text, the port included.
    pub(super) start: usize,
    pub(super) end: usize,
    /// Which of the services.
    pub(super) service: usize,
    /// The port that stands after it.
    pub(super) port: Option<u16>,
}

/// Words after which the name of a service is a host and nothing else.
const BEFORE_HOST: [&str; 11] =
    ["host", "hosts", "hostname", "server", "servers", "addr", "address", "broker", "brokers", "endpoint", "-h"];

/// The services that a text names as hosts: with a port (`db:5432`), in an address (`//db/`, `@db`), or after a word that
/// says so, in the text or before it.
pub(super) fn mentions(before: &str, text: &str, names: &[&str]) -> Vec<Mention> {
    let mut found: Vec<Mention> = Vec::new();
    for (start, _) in text.char_indices() {
        if found.last().is_some_and(|it| start < it.end) {
            continue;
        }
        let (head, tail) = text.split_at(start);
        let in_address = head.ends_with("//") || head.ends_with('@');
        let begins = head.is_empty() || in_address || head.ends_with(|it: char| !is_part(it) && !":/$".contains(it));
        if !begins {
            continue;
        }
        let fits = |(_, name): &(usize, &&str)| tail.strip_prefix(**name).is_some_and(|it| !it.starts_with(is_part));
        let longest = names.iter().enumerate().filter(fits).max_by_key(|(_, name)| name.len());
        let Some((service, name)) = longest.filter(|(_, name)| !name.is_empty()) else { continue };
        let after = &tail[name.len()..];
        let end = start + name.len();
        match port(after) {
            Some((port, length)) => found.push(Mention { start, end: end + length, service, port: Some(port) }),
            None if in_address || (ends_word(after) && says_host(before, head)) => {
                found.push(Mention { start, end, service, port: None });
            }
            None => {}
        }
    }
    found
}

fn is_part(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "_-.".contains(letter)
}

fn ends_word(after: &str) -> bool {
    after.is_empty() || after.starts_with(|it: char| it.is_whitespace() || ",;\"'".contains(it))
}

/// A port after a colon, and how long both are.
fn port(after: &str) -> Option<(u16, usize)> {
    let digits = after.strip_prefix(':')?;
    let length = digits.find(|it: char| !it.is_ascii_digit()).unwrap_or(digits.len());
    let port = digits[..length].parse().ok().filter(|it| *it > 0)?;
    (!digits[length..].starts_with(is_part)).then_some((port, length + 1))
}

fn says_host(before: &str, head: &str) -> bool {
    let cut = head.rfind([' ', '=']).map_or(0, |at| at + 1);
    let (said, item) = head.split_at(cut);
    // After a comma, the same holds as for the first of the list.
    if !item.is_empty() && !item.ends_with([',', '"', '\'']) {
        return false;
    }
    let said = if said.trim().is_empty() { before } else { said };
    let said = said.trim_end_matches(['=', ':', ' ', '"', '\'']).to_lowercase();
    BEFORE_HOST.iter().any(|word| {
        said.strip_suffix(word)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with(|it: char| !it.is_ascii_alphanumeric()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(before: &str, text: &str) -> String {
        let mut marked = text.to_owned();
        for mention in mentions(before, text, &["db", "redis", "kafka", "db-2"]).into_iter().rev() {
            let port = mention.port.map_or(String::new(), |port| format!("/{port}"));
            marked.replace_range(mention.start..mention.end, &format!("<{}{port}>", mention.service));
        }
        marked
    }

    #[test]
    fn a_service_is_a_host_with_a_port_in_an_address_or_after_a_word() {
        let cases = [
            ("URL", "postgres://u:p@db:5432/db", "postgres://u:p@<0/5432>/db"),
            ("URL", "redis://redis:6379/0", "redis://<1/6379>/0"),
            ("URL", "http://db/x", "http://<0>/x"),
            ("DB_HOST", "db", "<0>"),
            ("DB_NAME", "db", "db"),
            ("POSTGRES_DB", "db", "db"),
            (
                "LISTENERS",
                "PLAINTEXT://kafka:9092,OTHER://localhost:9093",
                "PLAINTEXT://<2/9092>,OTHER://localhost:9093",
            ),
            ("BROKERS", "kafka:1,db-2:2", "<2/1>,<3/2>"),
            ("HOSTS", "kafka,db", "<2>,<0>"),
            ("", "pg_isready -h db -U db", "pg_isready -h <0> -U db"),
            ("", "--host=db", "--host=<0>"),
            ("--host", "db", "<0>"),
            ("", "/db:5432 mydb:1 db.x:1 db:x db:99999", "/db:5432 mydb:1 db.x:1 db:x db:99999"),
        ];
        for (before, text, expected) in cases {
            assert_eq!(marked(before, text), expected, "{before} {text}");
        }
    }
}
