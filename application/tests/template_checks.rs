//! What is told of templates before anything is rendered: what they read, when it is there, and where a secret would go.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod shop;

use application::{Application, Existing, Expansion, Inputs};
use shop::{SHOP, expand, problems, read};

/// A type with these lines, and two components of it with another type as their provider.
fn with(lines: &str) -> String {
    format!(
        "holdfast: 1\napplication: checked\ntypes:\n  T:\n{lines}\n  Plain: {{ exports: {{ e: {{ values: {{ host: text, port: port }} }} }}, values: {{ port: \"{{{{ free_port() }}}}\" }} }}\nvms: {{ v: {{}} }}\ncomponents:\n  t: {{ type: T }}\n  plain: {{ type: Plain }}\n"
    )
}

#[track_caller]
fn check(lines: &str, expected: &[&str]) {
    assert_eq!(problems(&with(lines)), expected, "{lines}");
}

#[test]
fn a_template_that_would_need_too_much_of_the_stack_is_told() {
    for deep in [
        format!("1{}", " + 1".repeat(20_000)),
        format!("{}a", "not ".repeat(20_000)),
        format!("name{}", ".a".repeat(50_000)),
        format!("name{}", "|upper".repeat(40_000)),
    ] {
        let told = problems(&with(&format!("    environment: {{ A: \"x {{{{ {deep} }}}}\" }}")));
        assert_eq!(told, ["5:26 template: an expression has more than 500 parts (split it)"]);
    }
    // As much as may be is looked at, too.
    let (sum, attributes) = (" + 1".repeat(248), ".a".repeat(248));
    check(&format!("    environment: {{ A: \"{{{{ 1{sum} }}}} {{{{ name{attributes} }}}}\" }}"), &[]);
}

#[test]
fn a_value_that_holds_a_secret_is_one() {
    let database = |values: &str, exported: &str| {
        format!(
            "holdfast: 1\napplication: kept\nsecrets: {{ word: {{ environment: WORD }} }}\ntypes:\n  Db:\n    parameters: {{ tok: {{ type: secret }}, user: me }}\n    exports: {{ sql: {{ values: {{ host: text, {exported} }} }} }}\n    values: {{ {values} }}\n  App:\n    imports: {{ db: sql }}\n    exports: {{ on: {{ values: {{ url: text }} }} }}\n    values: {{ url: {{ template: \"{{{{ imports.db[0].url }}}}\", at: start }} }}\nvms: {{ v: {{}} }}\ncomponents:\n  db: {{ type: Db, parameters: {{ tok: {{ secret: word }} }} }}\n  app: {{ type: App }}\n"
        )
    };
    let says = |place: &str, name: &str, secret: &str| {
        format!(
            "{place} `{name}` contains the secret `{secret}` and would be shown in plain text (declare it as a secret: `values: {{ {name}: secret }}` in its export)"
        )
    };
    let plain = "url: \"pg://{{ parameters.tok }}@{{ host }}/\"";
    assert_eq!(problems(&database(plain, "url: text")), [says("8:20", "url", "parameters.tok")]);
    // By way of a value that stays here, of one that is a secret already, and of one that came with an import.
    let by_way = "inner: \"{{ parameters.tok }}\", url: \"pg://{{ inner }}\"";
    assert_eq!(problems(&database(by_way, "url: text")), [says("8:51", "url", "parameters.tok")]);
    let known = "key: \"{{ directory }}\", url: \"pg://{{ values.key }}\"";
    assert_eq!(problems(&database(known, "url: text, key: secret")), [says("8:44", "url", "key")]);
    assert_eq!(problems(&database(plain, "url: secret")), [says("12:32", "url", "imports.db[…].url")]);
    let all = "url: \"{{ parameters | items | list }}\"";
    assert_eq!(problems(&database(all, "url: text")), [says("8:20", "url", "parameters.tok")]);
    // Who only asks for it, or does not hand it on, tells nobody.
    let asks = "url: \"{% if parameters.tok %}{{ parameters.user }}{% endif %}{{ parameters.tok | length }}\", own: \"{{ parameters.tok }}\"";
    assert_eq!(problems(&database(asks, "url: text")), [""; 0]);
}

#[test]
fn filters_and_tests_are_known() {
    check("    environment: { A: \"{{ name | uper }}\" }", &["5:34 unknown filter `uper` (did you mean `upper`?)"]);
    check("    environment: { A: \"{{ name is nonsense }}\" }", &["5:35 unknown test `nonsense`"]);
    check(
        "    environment: { A: \"{% filter uper %}x{% endfilter %}\" }",
        &["5:34 unknown filter `uper` (did you mean `upper`?)"],
    );
    check("    environment: { A: \"{{ name | upper | quote }}{% if name is string %}{% endif %}\" }", &[]);
}

#[test]
fn own_values_can_be_chosen_one_after_the_other() {
    check(
        "    values: { a: \"{{ b }}\", b: \"{{ values.a }}\", c: \"{{ c }}\" }",
        &[
            "5:18 these values depend on each other in a cycle: `a` → `b` → `a`",
            "5:53 these values depend on each other in a cycle: `c` → `c`",
        ],
    );
    check(
        "    values: { a: \"{{ b }}\", b: { template: x, at: start } }\n    operations: { install: \"echo {{ b }}\" }",
        &[
            "5:22 the template reads `b` before it is chosen, which is at each start (`at: start`)",
            "6:37 the template reads `b` before it is chosen, which is at each start (`at: start`)",
        ],
    );
    check("    values: { a: \"{{ free_port(5) }}\" }", &["5:22 `free_port()` takes no arguments"]);
    check(
        "    exports: { e: [a, b] }\n    values: { a: \"{{ b }}\" }\n    operations: { announce: x }",
        &["6:22 the template reads `b` before any command has written it (add `at: start` here)"],
    );
    // In any order, and the address of the machine is no value of its own.
    check(
        "    values: { a: \"{{ b }}\", b: \"{{ host }}\", host: \"{{ host }}\", c: { template: \"{{ a }}\", at: start } }",
        &[],
    );
}

#[test]
fn a_slip_is_told_although_a_command_may_write_values() {
    let lines = |name: &str| {
        format!(
            "    exports: {{ x: [port] }}\n    environment: {{ A: \"{{{{ {name} }}}}\" }}\n    operations: {{ install: \"true\" }}"
        )
    };
    check(
        &lines("prot"),
        &[
            "6:27 the template reads the unknown name `prot` (did you mean `port`? If a command writes it, use `values.prot`)",
        ],
    );
    check(&lines("values.prot"), &[]);
    check(&lines("cluster"), &[]);
}

#[test]
fn paths_of_files_are_templates_of_files_inside_of_the_directory() {
    check(
        "    files: { \"{{ nope }}\": x, \"{{\": y }",
        &[
            "5:18 the template reads the unknown name `nope` (known: `imports`, `parameters`, `values`, `name`, `host`, `directory`, `key`, `index`, `group` and `data`)",
            "5:32 template: `{{` is not closed with `}}` (for a literal `{{` write {{ '{{' }})",
        ],
    );
    check(
        "    files: { \"\": x, .: y, ../../escape: z, a/: w }",
        &[
            "5:14 `` is not the path of a file",
            "5:21 `.` is not the path of a file",
            "5:27 `../../escape` is outside the component's directory (write an absolute path)",
            "5:44 `a/` is not the path of a file",
        ],
    );
    check(
        "    files: { a: x, a/b: y, ./a: z }",
        &["5:20 `a` is a file, so another file cannot be inside it", "5:28 this is the same file as `a`"],
    );
    check("    files: { a: x, b/a: y, /etc/a: z, \"{{ name }}/a\": w }", &[]);
}

#[test]
fn who_is_really_bound_has_what_is_read() {
    let file = |reads: &str, bind: &str| {
        format!(
            "holdfast: 1\napplication: held\ntypes:\n  P: {{ exports: {{ e: [host, port] }}, values: {{ port: \"{{{{ free_port() }}}}\" }} }}\n  Q: {{ exports: {{ e: [host] }} }}\n  U: {{ imports: {{ i: e }}, environment: {{ A: \"{reads}\" }} }}\nvms: {{ v: {{}} }}\ncomponents:\n  p: {{ type: P }}\n  q: {{ type: Q }}\n  u: {{ type: U, bind: {{ i: {bind} }} }}\n"
        )
    };
    let says = "the template reads `port` of import `i`, but `q`, to which `u` is bound, has only `host` in export `e`";
    assert_eq!(problems(&file("{{ imports.i[0].port }}", "q")), [format!("6:62 {says}")]);
    assert_eq!(problems(&file("{{ imports.i | map(attribute='port') | join }}", "q")), [format!("6:76 {says}")]);
    assert_eq!(problems(&file("{{ imports.i[0].port }}", "p")), [""; 0]);
    // Who asks first, or says what else it is, copes.
    for fine in [
        "{% for i in imports.i %}{% if i.port is defined %}{{ i.port }}{% endif %}{% endfor %}",
        "{{ imports.i[0].port | default(80) }}",
        "{% if parameters %}{{ imports.i[0].port }}{% endif %}",
    ] {
        assert_eq!(problems(&file(fine, "q")), [""; 0], "{fine}");
    }
    let beyond = "6:57 the template reads `imports.i[3]`, but `u[0]` is bound to 1 (bind it to more, or check first: `{% if imports.i | length > 3 %}`)";
    assert_eq!(problems(&file("{{ imports.i[3].host }}", "q")), [beyond]);
    assert_eq!(problems(&file("{% if imports.i | length > 3 %}{{ imports.i[3].host }}{% endif %}", "q")), [""; 0]);
    let nobody = file("{{ imports.i[0].host }}", "none").replace("{ i: e }", "{ i: { export: e, weak: 0 } }");
    assert!(problems(&nobody)[0].contains("reads `imports.i[0]`, but `u[0]` is bound to 0"), "{:?}", problems(&nobody));
}

#[test]
fn who_is_bound_to_another_application_is_held_against_it() {
    let other = "holdfast: 1\napplication: shared\ntypes: { S: { exports: { e: [host] } } }\nvms: { v: {} }\ncomponents: { s: { type: S } }\n";
    let own = "holdfast: 1\napplication: own\ntypes:\n  U: { imports: { i: e }, environment: { A: \"{{ imports.i[0].port }}\" } }\nvms: { v: {} }\ncomponents:\n  u: { type: U, bind: { i: { from: shared/s } } }\n";
    let others: [Expansion; 1] = [expand(other)];
    let existing = Existing { before: None, others: &others };
    let told = read(own, &Inputs::default()).and_then(|it| it.expand(&existing)).unwrap_err().to_string();
    assert!(told.contains("`shared/s`, to which `u` is bound, has only `host` in export `e`"), "{told}");
    // Without a manager nobody was asked.
    let told = problems(own);
    assert_eq!(
        told,
        ["7:36 unknown application `shared` (apply it first; `plan` asks the manager only with `--live`)"]
    );
}

#[test]
fn a_value_import_reads_nothing_that_is_chosen_at_a_start() {
    let late = SHOP.replace("port: \"{{ free_port() }}\"", "port: { template: \"{{ free_port() }}\", at: start }");
    assert_eq!(problems(&late), [""; 0]);
    let told = problems(&late.replace("{ export: sql }", "{ export: sql, value: 1 }"));
    assert_eq!(
        told,
        [
            "22:56 the template reads `port` of import `db`, which `database` chooses only when it starts: a `value` import does not wait for that (choose the value `at: prepare`, or make the import `strong`)"
        ]
    );
}

#[test]
fn a_mistake_in_a_text_of_several_lines_is_told_in_its_line() {
    let told = |lines: &str| problems(&SHOP.replace("        {% endfor %}\n", lines));
    assert_eq!(
        told("        {% endfor %}\n        a {{ b c }}\n"),
        ["25:16 template: unexpected identifier, expected end of variable block"]
    );
    assert_eq!(
        told("        {% endfor %}\n        a {{ b\n"),
        ["25:11 template: `{{` is not closed with `}}` (for a literal `{{` write {{ '{{' }})"]
    );
    assert!(told("") == ["23:9 template: `{% for … %}` is not closed with `{% endfor %}`"], "{:?}", told(""));
    // What comes from a file is told there.
    let main = SHOP.replace("app.conf: |\n", "app.conf: { from: parts/app.conf }\n      other: |\n");
    let read = |file: &'static str| {
        let mut open = |name: &str| match name {
            "shop.yaml" => Ok(main.clone()),
            "parts/app.conf" => Ok(file.to_owned()),
            _ => Err("there is no such file".into()),
        };
        let read = Application::read("shop.yaml", &Inputs::default(), &mut open);
        read.and_then(|it| it.expand(&Existing::default())).unwrap_err().to_string()
    };
    let told = read("a\nb {{ prot }}\n");
    assert!(told.starts_with("parts/app.conf:2:6: the template reads the unknown name `prot`"), "{told}");
    let told = read("a\nb {{ prot\n");
    assert!(told.starts_with("parts/app.conf:2:3: template: `{{` is not closed"), "{told}");
}
