//! Every reason to refuse: each is produced by a request, all reasons come at once, and a refused request leaves the
//! manager equal to what it was. The texts stand in a golden file, as an operator sees them.

mod golden;
mod stage;

use protocol::{
    ChangeId, Edit, Export, Kind, Need, Refusal, Strategy, bounds,
    manager::{News, Output, Request},
};
use stage::{
    Stage, add, add_vm, bind, change, incomplete, kind, name, remove, remove_vm, restart, set_need, unbind, wire,
};
use std::collections::BTreeSet;

/// Asks, and returns the reasons, having seen that nothing has changed.
fn refusals(stage: &mut Stage, request: Request) -> Vec<Refusal> {
    let before = stage.manager.clone();
    let answer = stage.ask(request);
    let News::Refused(reasons) = answer else { panic!("it was not refused: {answer:?}") };
    assert_eq!(stage.said.len(), 1, "a refusal is all that is said");
    assert_eq!(stage.manager, before, "a refused request changes nothing");
    reasons
}

/// A small shop: web → app → db over two VMs, with an optional cache; the database takes two clients.
fn shop() -> Stage {
    let sql = Export { values: Vec::new(), capacity: Some(2) };
    let database = Kind { exports: [(name("sql"), sql)].into(), ..Kind::default() };
    let app = kind(&[("db", "sql", Need::Strong(1)), ("cache", "objects", Need::Weak(0))], &["http"]);
    let web = kind(&[("app", "http", Need::Strong(1))], &["page"]);
    Stage::with([
        add_vm("v1"),
        add_vm("v2"),
        add("db", "v1", database),
        add("app", "v2", app),
        add("web", "v2", web),
        bind("app.db → db.sql"),
        bind("web.app → app.http"),
    ])
}

fn make(edits: impl IntoIterator<Item = Edit>) -> Request {
    change(Strategy::Together, edits)
}

#[test]
fn every_refusal_has_its_reason_and_its_text() {
    let client = || kind(&[("db", "sql", Need::Strong(1))], &[]);
    let cases: Vec<(&str, Request)> = vec![
        ("a component on a VM that does not exist", make([add("new", "v9", Kind::default())])),
        ("the removal of a VM that does not exist", make([remove_vm("v9")])),
        ("the removal of a component that does not exist", make([remove("nobody")])),
        ("another try of a component that does not exist", Request::Retry(name("nobody"))),
        ("a binding of an import that does not exist", make([bind("app.disk → db.sql")])),
        ("another need of an import that does not exist", make([set_need("web", "db", 2)])),
        ("a binding to an export that does not exist", make([bind("app.cache → db.objects")])),
        ("the removal of a binding that does not exist", make([unbind("web.app → db.sql")])),
        ("a second VM of one name", make([add_vm("v1")])),
        ("a second component of one name", make([add("db", "v2", Kind::default())])),
        ("a second binding of one import to one provider", make([bind("app.db → db.sql")])),
        ("a binding of ports that do not fit", make([bind("web.app → db.sql")])),
        (
            "a component that is its own provider",
            make([add("self", "v1", kind(&[("in", "out", Need::Weak(0))], &["out"])), bind("self.in → self.out")]),
        ),
        (
            "a cycle over strong imports",
            make([
                add("a", "v1", kind(&[("in", "x", Need::Strong(1))], &["x"])),
                add("b", "v1", kind(&[("in", "x", Need::Strong(1))], &["x"])),
                add("c", "v2", kind(&[("in", "x", Need::Strong(1))], &["x"])),
                bind("a.in → b.x"),
                bind("b.in → c.x"),
                bind("c.in → a.x"),
            ]),
        ),
        (
            "two that would restart each other",
            make([add("a", "v1", restless()), add("b", "v2", restless()), bind("a.in → b.x"), bind("b.in → a.x")]),
        ),
        (
            "more clients than an export takes",
            make([
                add("app2", "v1", client()),
                add("app3", "v1", client()),
                bind("app2.db → db.sql"),
                bind("app3.db → db.sql"),
            ]),
        ),
        ("a strong import without provider", make([add("new", "v1", client())])),
        ("the removal of a provider that is needed", make([remove("db")])),
        ("a strong import that needs nothing", make([add("new", "v1", kind(&[("in", "sql", Need::Strong(0))], &[]))])),
        ("a value import that needs nothing", make([add("new", "v1", kind(&[("in", "sql", Need::Value(0))], &[]))])),
        ("a need lowered to nothing", make([set_need("app", "db", 0)])),
        ("a removal and a restart of one component", make([remove("web"), restart("web")])),
        ("a removal twice", make([remove("web"), remove("web")])),
        ("the cancellation of a change that does not exist", Request::Cancel(ChangeId(9))),
        ("the cancellation of a change that is done", Request::Cancel(ChangeId(1))),
        ("another try where nothing failed", Request::Retry(name("web"))),
        ("leave to skip where nothing failed", Request::Skip(name("web"))),
        ("the loss of a VM that does not exist", Request::DeclareLost(name("v9"))),
        (
            "a recipe beyond the bound",
            make([add("new", "v1", Kind { recipe: vec![0; bounds::RECIPE_BYTES_MAX + 1].into(), ..Kind::default() })]),
        ),
        ("more names than a message holds", make([add("new", "v1", wordy())])),
    ];
    let mut page = Page::default();
    let mut stage = shop();
    for (sentence, request) in cases {
        page.write(sentence, &refusals(&mut stage, request));
    }
    still_removing(&mut page);
    lost(&mut page);
    too_many(&mut page);
    too_late_to_cancel(&mut page);
    page.check();
}

/// Changes that cannot be cancelled any more.
fn too_late_to_cancel(page: &mut Page) {
    let second = || Request::Cancel(ChangeId(2));
    let mut stage = shop();
    stage.ask(Request::DeclareLost(name("v2")));
    page.write("the cancellation of a loss", &refusals(&mut stage, second()));
    let mut stage = shop();
    stage.ask(change(Strategy::DownThenUp, [restart("db"), add_vm("v3")]));
    stage.ask(make([add("new", "v3", Kind::default())]));
    page.write("the cancellation of a change on which a later one builds", &refusals(&mut stage, second()));
    let mut stage = shop();
    stage.ask(make([add_vm("v3")]));
    stage.ask(make([add("new", "v3", Kind::default())]));
    page.write("the cancellation of a VM that a later change uses", &refusals(&mut stage, second()));
    let mut stage = shop();
    stage.ask(make([remove_vm("v2")]));
    stage.run_but(|next| matches!(next, stage::Move::Cloud(_)));
    page.write("the cancellation of the removal of a VM that is being destroyed", &refusals(&mut stage, second()));
}

/// A cycle that would be closed by a binding still being removed.
fn still_removing(page: &mut Page) {
    let both = || kind(&[("in", "x", Need::Strong(1))], &["x"]);
    let mut stage = Stage::new();
    stage.ask(incomplete([add_vm("v1"), add("a", "v1", both()), add("b", "v1", both()), bind("a.in → b.x")]));
    stage.run();
    stage.ask(incomplete([unbind("a.in → b.x")]));
    let reasons = refusals(&mut stage, incomplete([bind("b.in → a.x")]));
    page.write("a cycle with a binding that is still being removed", &reasons);
    // When the removal is done, nothing stands in the way.
    stage.run();
    assert_eq!(stage.ask(incomplete([bind("b.in → a.x")])), News::Accepted(ChangeId(3)));
}

/// Orders to a VM that is lost.
fn lost(page: &mut Page) {
    let mut stage = shop();
    stage.ask(Request::DeclareLost(name("v1")));
    page.write("a component on a lost VM", &refusals(&mut stage, make([add("new", "v1", Kind::default())])));
    page.write("the loss of a VM that is lost already", &refusals(&mut stage, Request::DeclareLost(name("v1"))));
    page.write("the removal of a lost VM", &refusals(&mut stage, make([remove_vm("v1")])));
    // Its name, however, is free.
    assert_eq!(stage.ask(make([add_vm("v1")])), News::Accepted(ChangeId(3)));
}

/// Changes beyond the bounds.
fn too_many(page: &mut Page) {
    let mut stage = shop();
    let crowd = (0..bounds::COMPONENTS_PER_VM_MAX).map(|number| add(&format!("c{number}"), "v1", Kind::default()));
    page.write("more components than a VM takes", &refusals(&mut stage, make(crowd)));
    let edits = vec![add_vm("v9"); bounds::WISHES_MAX + 1];
    page.write("more edits than a change takes", &refusals(&mut stage, make(edits)));
}

#[test]
fn all_reasons_come_at_once_sorted_and_each_once() {
    let mut stage = shop();
    let reasons = refusals(
        &mut stage,
        make([
            add_vm("v1"),
            remove("nobody"),
            remove("nobody"),
            remove("db"),
            unbind("app.db → web.page"),
            bind("app.cache → web.page"),
            add("new", "v9", Kind::default()),
        ]),
    );
    let expected = [
        Refusal::UnknownVm { vm: name("v9") },
        Refusal::UnknownComponent { component: name("nobody") },
        Refusal::UnknownBinding { wire: wire("app.db → web.page") },
        Refusal::DuplicateVm { vm: name("v1") },
        Refusal::PortsDiffer { wire: wire("app.cache → web.page"), takes: name("objects") },
        Refusal::TooFewProviders { component: name("app"), import: name("db"), needed: 1, bound: 0 },
    ];
    assert_eq!(reasons, expected);
}

#[test]
fn a_change_is_checked_against_all_that_was_accepted_before_it() {
    let mut stage = shop();
    // Accepted, and nothing of it is posted yet: the down phase comes first.
    let swap = [remove("web"), add("front", "v1", kind(&[], &["page"]))];
    assert_eq!(stage.ask(change(Strategy::DownThenUp, swap)), News::Accepted(ChangeId(2)));
    assert!(stage.manager.book().component(&name("front")).is_some_and(|front| front.id.is_none()));
    assert_eq!(
        refusals(&mut stage, make([remove("web")])),
        [Refusal::UnknownComponent { component: name("web") }],
        "what is on its way out is no longer there"
    );
    assert_eq!(
        refusals(&mut stage, make([add("front", "v2", Kind::default())])),
        [Refusal::DuplicateComponent { component: name("front") }],
        "what is still to come is already there"
    );
}

#[test]
fn a_name_can_be_taken_over_in_the_change_that_frees_it() {
    let mut stage = shop();
    let again = kind(&[("app", "http", Need::Strong(1))], &[]);
    let swap = make([remove("web"), add("web", "v1", again), bind("web.app → app.http")]);
    assert_eq!(stage.ask(swap), News::Accepted(ChangeId(2)));
    stage.run();
    assert_eq!(stage.done(), 1);
    assert_eq!(stage.place("web").0, stage.vm("v1"));
}

#[test]
fn what_is_incomplete_is_accepted_when_the_operator_says_so_and_waits() {
    let mut stage = shop();
    let lonely = || add("lonely", "v1", kind(&[("db", "sql", Need::Strong(1))], &[]));
    assert!(matches!(refusals(&mut stage, make([lonely()]))[..], [Refusal::TooFewProviders { .. }]));
    assert_eq!(stage.ask(incomplete([lonely()])), News::Accepted(ChangeId(2)));
    stage.run();
    assert_eq!(stage.done(), 1, "a change is done when what was predicted has come, and it was to wait");
    assert!(stage.said.iter().all(|output| !matches!(output, Output::ToAgent(..))));
    assert!(!stage.manager.book().component(&name("lonely")).unwrap().expected);
}

/// The golden file while it is written.
#[derive(Default)]
struct Page {
    text: String,
    seen: BTreeSet<&'static str>,
}

impl Page {
    fn write(&mut self, sentence: &str, reasons: &[Refusal]) {
        self.text.push_str(&format!("# {sentence}\n"));
        for reason in reasons {
            self.seen.insert(variant(reason));
            self.text.push_str(&format!("{reason}\n"));
        }
    }

    fn check(&self) {
        let missing: Vec<_> = ALL.iter().filter(|variant| !self.seen.contains(**variant)).collect();
        assert!(missing.is_empty(), "no request is refused for {missing:?}");
        golden::check("refusals.txt", &self.text);
    }
}

/// Names every variant once: a new one does not compile until it is listed, and then needs a case.
macro_rules! variants {
    ($($variant:ident),* $(,)?) => {
        const ALL: &[&str] = &[$(stringify!($variant)),*];
        fn variant(reason: &Refusal) -> &'static str {
            match reason { $(Refusal::$variant { .. } => stringify!($variant)),* }
        }
    };
}

/// A kind that hands out other values at each start, and cannot be told of others while it runs.
fn restless() -> Kind {
    let export = Export { values: vec![name("port")], capacity: None };
    Kind { exports: [(name("x"), export)].into(), renews: true, ..kind(&[("in", "x", Need::Weak(0))], &[]) }
}

/// A kind with one name too many.
fn wordy() -> Kind {
    let values = (0..bounds::KIND_NAMES_MAX).map(|number| name(&format!("value{number}")));
    let export = Export { values: values.collect(), capacity: None };
    Kind { exports: [(name("all"), export)].into(), ..Kind::default() }
}

variants! {
    UnknownVm, UnknownComponent, UnknownImport, UnknownExport, UnknownBinding, DuplicateVm, DuplicateComponent,
    DuplicateBinding, PortsDiffer, BoundToItself, Cycle, CapacityExceeded, TooFewProviders, NeedsNothing, RemovedTwice,
    VmLost, TooManyWishes, TooManyComponents, RecipeTooLong, TooManyNames, NothingFailed, EndlessRestarts,
    UnknownChange, ChangeIsDone, NothingToCancel, NeededLater, VmInUse, VmIsGoing,
}
