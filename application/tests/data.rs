//! What a type says of data, of its place in the group and of its siblings.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod shop;

use application::{Difference, Expansion, How};
use protocol::Name;
use recipe::{OnRemove, Start};
use shop::{expand, problems};

fn with(data: &str, start: &str) -> String {
    format!(
        "holdfast: 1\napplication: shop\ntypes:\n  Database:\n    data: {data}\n    operations: {{ start: {start} }}\nvms: {{ v: {{}} }}\ncomponents: {{ database: {{ type: Database, count: 2 }} }}\n"
    )
}

fn definition(expansion: &Expansion) -> &application::Definition {
    &expansion.definitions[&Name::new("database").unwrap()]
}

#[test]
fn data_is_written_in_few_words_or_in_full() {
    let process = "{ process: \"exec db {{ data.files }}\" }";
    for (written, directories, on_remove) in [
        ("files", vec!["files"], OnRemove::Keep),
        ("[log, files]", vec!["files", "log"], OnRemove::Keep),
        ("{ directories: files, on-remove: delete }", vec!["files"], OnRemove::Delete),
        ("{ directories: { files: , log: } }", vec!["files", "log"], OnRemove::Keep),
    ] {
        let expansion = expand(&with(written, process));
        let data = &definition(&expansion).recipe.data;
        assert_eq!(data.directories.iter().map(Name::as_str).collect::<Vec<_>>(), directories, "{written}");
        assert_eq!(data.on_remove, on_remove);
    }
}

#[test]
fn a_container_sees_its_data_where_the_type_says() {
    let expansion = expand(&with("{ directories: { files: /var/lib/db } }", "{ container: db }"));
    let Some(Start::Process(process)) = &definition(&expansion).recipe.operations.start else { panic!() };
    let words = serde_json::to_string(&process.run).unwrap();
    assert!(words.contains("--volume={{ data['files'] }}:/var/lib/db"), "{words}");
    let told = problems(&with("files", "{ container: db }"));
    assert!(told[0].contains("say where the container sees `files`"), "{told:?}");
    let told = problems(&with("{ directories: { files: lib } }", "{ container: db }"));
    assert!(told[0].contains("an absolute path without a colon"), "{told:?}");
    let told = problems(&with("{ directories: { files: /lib } }", "{ process: db }"));
    assert!(told[0].contains("only a container sees `files` at another path"), "{told:?}");
}

#[test]
fn data_that_no_type_has_is_reported() {
    let told = problems(&with("files", "{ process: \"exec db {{ data.file }}\" }"));
    assert!(told[0].contains("unknown data directory `data.file` (did you mean `files`?)"), "{told:?}");
    let told = problems(&with("", "{ process: \"exec db {{ data.files }}\" }"));
    assert!(told[0].contains("(declare it: `data: files`)"), "{told:?}");
    let told = problems(&with("{ on-remove: delete }", "{ process: db }"));
    assert!(told[0].contains("`data` needs `directories`"), "{told:?}");
    let told = problems(&with("{ directories: files, on-remove: drop }", "{ process: db }"));
    assert!(told[0].contains("`on-remove` cannot be `drop`"), "{told:?}");
    let told = problems(&with("files", "{ process: \"{{ group.size }}\" }"));
    assert!(told[0].contains("a group has only a `count`"), "{told:?}");
}

#[test]
fn what_becomes_of_data_in_the_end_is_no_reason_to_replace_a_component() {
    let one = expand(&with("files", "{ process: db }"));
    let other = expand(&with("{ directories: files, on-remove: delete }", "{ process: db }"));
    assert!(Difference::between(&one, &other).is_empty());
    let more = expand(&with("[files, log]", "{ process: db }"));
    let difference = Difference::between(&one, &more);
    let how = difference.components.values().next().unwrap();
    assert_eq!(*how, How::Replaced(vec!["data directory log added".into()]));
}

#[test]
fn the_number_of_siblings_is_known_only_to_templates_that_read_it() {
    let scaled = |template: &str, count: &str| {
        let text = with("files", &format!("{{ process: \"{template}\" }}"));
        expand(&text.replace("count: 2", &format!("count: {count}")))
    };
    let reads = "exec db --me {{ index }} --of {{ group.count }} --called {{ key }}";
    let difference = Difference::between(&scaled(reads, "2"), &scaled(reads, "3"));
    let how = |key: &str| difference.components.get(&key.parse().unwrap());
    assert_eq!(how("database[1]"), Some(&How::Replaced(vec!["group.count: 2 → 3".into()])));
    assert_eq!(how("database[2]"), Some(&How::Added));
    let not = "exec db --me {{ index + 1 }}";
    let difference = Difference::between(&scaled(not, "2"), &scaled(not, "3"));
    assert_eq!(difference.unchanged.components, 2);
}
