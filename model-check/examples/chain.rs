use model_check::*;
use protocol::manager::Request;
use protocol::*;
use std::sync::Arc;
fn n(s: &str) -> Name {
    Name::new(s).unwrap()
}
fn main() {
    let k: usize = std::env::args().nth(1).unwrap().parse().unwrap();
    let down = std::env::args().nth(2).is_some_and(|a| a == "down");
    let full = std::env::args().nth(3).is_some();
    let mut w = vec![];
    for i in 0..k {
        w.push(Wish::AddVm { vm: n(&format!("v{i}")) });
    }
    for i in 0..k {
        let mut kind = Kind::default();
        if i + 1 < k {
            kind.imports.insert(n("x"), Import { export: n("e"), need: Need::Strong(1) });
        }
        kind.exports.insert(n("e"), Export::default());
        w.push(Wish::AddComponent { component: n(&format!("c{i}")), vm: n(&format!("v{i}")), kind: Arc::new(kind) });
    }
    for i in 0..k - 1 {
        w.push(Wish::AddBinding(Wire {
            client: n(&format!("c{i}")),
            import: n("x"),
            provider: n(&format!("c{}", i + 1)),
            export: n("e"),
        }));
    }
    let mut lines = vec![Line { request: Request::Make(Change { wishes: w, ..Default::default() }), patient: true }];
    if down {
        lines.push(Line {
            request: Request::Make(Change {
                incomplete: true,
                wishes: vec![Wish::RemoveComponent { component: n(&format!("c{}", k - 1)) }],
                ..Default::default()
            }),
            patient: true,
        });
    }
    let t = std::time::Instant::now();
    let s = if full { explore::Settings::full() } else { Default::default() };
    let script: Arc<[Line]> = lines.into();
    let f = explore::explore(&script, Faults::default(), s);
    println!(
        "states {} edges {} ends {} outcomes {} msgs {:?} longest {:?} bytes {} parts {} complete {} some {:?} time {:?}",
        f.states,
        f.edges,
        f.ends,
        f.outcomes.len(),
        f.messages,
        f.longest,
        f.bytes_per_state,
        f.parts,
        f.complete,
        f.sometimes,
        t.elapsed()
    );
    if let Some((b, way)) = &f.breach {
        println!("BREACH {b}");
        let (_, ev) = explore::retrace(&script, Faults::default(), way);
        for e in ev {
            println!("{} {:?}", e.action, e.outputs);
        }
    }
}
