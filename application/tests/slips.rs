//! One slip is one mistake: what only follows from it is not told.

mod shop;

use shop::problems;

/// A file in which each field that has to be there is there once.
const SLIPS: &str = r#"holdfast: 1
application: slips
variables:
  many: { type: integer, default: 2 }
secrets:
  word: { environment: WORD }
types:
  Database:
    parameters: { word: { type: secret }, level: { default: low } }
    exports: { sql: { values: { host: text, port: port } } }
    values: { port: { template: "5432" } }
    operations:
      configure: { run: "true" }
      start: { process: mydb }
      check: { tcp: 5432 }
      rebind: { signal: HUP }
    patience: { start: { retries: 3 } }
  App:
    imports: { db: { export: sql } }
    files: { conf: { template: "{{ imports.db[0].host }}:{{ imports.db[0].port }}" } }
    operations: { start: { container: { image: app } } }
    conflicts: App
vms:
  data: {}
  web: { count: "${many}" }
components:
  database: { type: Database, on: data, load: { each: 3 }, parameters: { word: { secret: word } } }
  app: { type: App, on: web, count: "${many}", bind: { db: { from: database, how: one } } }
"#;

#[test]
fn a_slip_is_told_once_and_without_what_follows_from_it() {
    assert_eq!(problems(SLIPS), [""; 0]);
    let fields = "holdfast application variables default secrets environment types exports values template run process tcp signal retries export template image vms count components type each word on bind";
    let mut from = 0;
    for field in fields.split(' ') {
        // They come in the order in which they stand there.
        from += SLIPS[from..].find(&format!("{field}:")).unwrap_or_else(|| panic!("{field}"));
        let (last, slip) = (from + field.len() - 1, format!("{}{field}", &field[..1]));
        let told = problems(&format!("{}{slip}{}", &SLIPS[..from], &SLIPS[last + 1..]));
        assert!(told.len() == 1 && told[0].contains(&format!("`{slip}`")), "{field}: {told:#?}");
    }
    for (right, wrong, says) in [
        ("default: 2", "default: two", "`many` must be a whole number, not `two`"),
        ("count: \"${many}\" }", "count: \"${man}\" }", "unknown variable `man` (did you mean `many`?)"),
        ("web: { count: \"${many}\" }", "web: { count: one }", "`count` must be a whole number"),
        ("on: web", "on: wbe", "unknown VM group `wbe`"),
        ("environment: WORD", "command: \"\"", "`command` is empty, and must say where the secret is"),
        (
            "word: { secret: word } }",
            "word: { secret: word }, level: { secret: word } }",
            "`level` cannot take a secret (declare",
        ),
        ("  data: {}", "  1data: {}", "`1data` is not a valid name"),
        ("start: { process: mydb }", "start: mydb", "write `start: { process: \"mydb\" }`"),
        ("database: { type: Database", "database: { type: Databas", "unknown type `Databas`"),
        ("secrets:\n  word: { environment: WORD }", "secrets: [word]", "`secrets` must be a map, not a list"),
        ("parameters: { word: { secret: word } }", "parameters: word", "`parameters` must be a map, not `word`"),
        ("tcp: 5432", "tcp: \"${port}\"", "`tcp` must be a port from 1 to 65535, not `${port}`"),
    ] {
        assert!(SLIPS.contains(right), "{right}");
        let told = problems(&SLIPS.replacen(right, wrong, 1));
        assert!(told.len() == 1 && told[0].contains(says), "{wrong}: {told:#?}");
    }
    // Two slips are two, also in one text.
    let told = problems(&SLIPS.replacen("\"${many}\"", "\"${mny}${man}\"", 1));
    assert!(told.len() == 2 && told.iter().all(|it| it.contains("did you mean `many`?")), "{told:#?}");
    assert_eq!(
        problems(""),
        [
            "1:1 the application needs a name (`application: …`)",
            "1:1 the file must declare the version of the language: `holdfast: 1`"
        ]
    );
}
