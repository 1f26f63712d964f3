//! The places where a file can be mutated, and its text with a switch at each of them.

use proc_macro2::Span;
use std::{collections::BTreeSet, ops::Range};
use syn::{
    Arm, Attribute, BinOp, Expr, ImplItemFn, ItemFn, ItemMod, Pat, Stmt,
    spanned::Spanned,
    visit::{self, Visit},
};

/// One mutant.
#[derive(Clone, Debug)]
pub(super) struct Site {
    /// The number that switches it on; from 1.
    pub(super) number: u32,
    /// The file, from the root.
    pub(super) file: String,
    /// The line, from 1.
    pub(super) line: usize,
    /// What is done.
    pub(super) rule: &'static str,
    /// What it is done to.
    pub(super) code: String,
    /// Its index among identical pieces of code in its file.
    nth: usize,
}

impl Site {
    /// A name that stays valid while other lines change.
    pub(super) fn key(&self) -> String {
        format!("{} {} #{} {}", self.file, self.rule, self.nth, self.code)
    }
}

/// Whether a file of the copy is mutated: the machines, and what they are about.
pub(super) fn is_mutated(place: &str) -> bool {
    let machines = place.starts_with("protocol/src/agent/") || place.starts_with("protocol/src/manager/");
    // The text of what a change waits for is only for display.
    (machines && !place.ends_with("/waiting.rs")) || place == "protocol/src/kind.rs"
}

/// The text of a file with all its mutants in it, each behind its switch.
///
/// `barred`: lines of statements that cannot be dropped, because the borrow checker would reject that. A mutated file
/// has as many lines as before.
pub(super) fn mutate(
    file: &str,
    text: &str,
    barred: &BTreeSet<(String, usize)>,
    sites: &mut Vec<Site>,
) -> Result<String, String> {
    let parsed = syn::parse_file(text).map_err(|error| format!("{file}: not parsed: {error}"))?;
    let mut finder = Finder { text, lines: lines(text), found: Vec::new() };
    finder.visit_file(&parsed);
    let mut inserts: Vec<(usize, usize, String)> = Vec::new();
    for (rule, range, line, kind) in finder.found {
        if matches!(kind, Kind::Drop) && barred.contains(&(file.to_owned(), line)) {
            continue;
        }
        let number = u32::try_from(sites.len() + 1).map_err(|_| "too many mutants".to_owned())?;
        let code = text[range.clone()].split_whitespace().collect::<Vec<_>>().join(" ");
        let nth = sites.iter().filter(|it| it.file == file && it.rule == rule && it.code == code).count() + 1;
        let mut wrap = |range: &Range<usize>, before: String, after: &str| {
            // Of mutants that begin at the same place, the longer one comes first; of those that end there, the shorter one.
            let length = range.end - range.start;
            inserts.push((range.start, usize::MAX - length, before));
            inserts.push((range.end, length, after.into()));
        };
        match kind {
            Kind::Negate => wrap(&range, format!("crate::selector::flip({number}, "), ")"),
            Kind::Drop => wrap(&range, format!("if !crate::selector::on({number}) {{ "), " }"),
            Kind::Swap(other) => {
                let (one, two) = (text[range.clone()].replace('\n', " "), text[other.clone()].replace('\n', " "));
                wrap(&range, format!("if crate::selector::on({number}) {{ {two} }} else {{ "), " }");
                wrap(&other, format!("if crate::selector::on({number}) {{ {one} }} else {{ "), " }");
            }
        }
        sites.push(Site { number, file: file.into(), line, rule, code, nth });
    }
    // An end at a place comes before a beginning there.
    inserts.sort_by_key(|(at, order, _)| (*at, *order));
    let mut mutated = String::new();
    let mut last = 0;
    for (at, _, insert) in inserts {
        mutated += &text[last..at];
        mutated += &insert;
        last = at;
    }
    Ok(mutated + &text[last..])
}

/// The place at which each line begins.
fn lines(text: &str) -> Vec<usize> {
    std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect()
}

enum Kind {
    Negate,
    Drop,
    Swap(Range<usize>),
}

struct Finder<'t> {
    text: &'t str,
    lines: Vec<usize>,
    found: Vec<(&'static str, Range<usize>, usize, Kind)>,
}

impl Finder<'_> {
    fn range(&self, span: Span) -> Range<usize> {
        let place = |at: proc_macro2::LineColumn| {
            let begins = self.lines[at.line - 1];
            let line = &self.text[begins..];
            let column = line.char_indices().nth(at.column).map_or(line.len(), |(byte, _)| byte);
            begins + column
        };
        place(span.start())..place(span.end())
    }

    fn add(&mut self, rule: &'static str, span: Span, kind: Kind) {
        let range = self.range(span);
        self.found.push((rule, range, span.start().line, kind));
    }

    /// Negates a condition, or each part of one that has a pattern in it.
    fn condition(&mut self, condition: &Expr) {
        match condition {
            Expr::Let(_) => {}
            Expr::Binary(it) if matches!(it.op, BinOp::And(_)) && has_let(condition) => {
                self.condition(&it.left);
                self.condition(&it.right);
            }
            _ => self.add("negated", condition.span(), Kind::Negate),
        }
    }

    fn arms(&mut self, arms: &[Arm]) {
        for pair in arms.windows(2) {
            let [one, two] = pair else { continue };
            let plain = |arm: &Arm| arm.guard.is_none() && !binds(&arm.pat);
            let (first, second) = (self.range(one.body.span()), self.range(two.body.span()));
            let (here, there) = (&self.text[first.clone()], &self.text[second.clone()]);
            // A comment would swallow what follows when the lines are joined.
            if plain(one) && plain(two) && here != there && !here.contains("//") && !there.contains("//") {
                self.add("swapped with the next", one.body.span(), Kind::Swap(second));
            }
        }
    }
}

impl<'a> Visit<'a> for Finder<'_> {
    fn visit_item_mod(&mut self, item: &'a ItemMod) {
        if !is_test(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'a ItemFn) {
        if item.sig.constness.is_none() && !is_test(&item.attrs) {
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'a ImplItemFn) {
        // Display code is not mutated.
        if item.sig.constness.is_none() && item.sig.ident != "fmt" && item.sig.ident != "word" {
            visit::visit_impl_item_fn(self, item);
        }
    }

    fn visit_expr_if(&mut self, it: &'a syn::ExprIf) {
        self.condition(&it.cond);
        visit::visit_expr_if(self, it);
    }

    fn visit_expr_match(&mut self, it: &'a syn::ExprMatch) {
        self.arms(&it.arms);
        visit::visit_expr_match(self, it);
    }

    fn visit_arm(&mut self, arm: &'a Arm) {
        if let Some((_, guard)) = &arm.guard {
            self.condition(guard);
        }
        visit::visit_arm(self, arm);
    }

    fn visit_expr_binary(&mut self, it: &'a syn::ExprBinary) {
        if matches!(it.op, BinOp::And(_) | BinOp::Or(_)) {
            for part in [&it.left, &it.right] {
                let logical = matches!(&**part, Expr::Binary(it) if matches!(it.op, BinOp::And(_) | BinOp::Or(_)));
                if !logical && !has_let(part) {
                    self.add("negated", part.span(), Kind::Negate);
                }
            }
        }
        visit::visit_expr_binary(self, it);
    }

    fn visit_stmt(&mut self, statement: &'a Stmt) {
        if let Stmt::Expr(expression, Some(_)) = statement
            && matches!(expression, Expr::Call(_) | Expr::MethodCall(_) | Expr::Assign(_) | Expr::Binary(_))
        {
            self.add("dropped", statement.span(), Kind::Drop);
        }
        visit::visit_stmt(self, statement);
    }
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|it| it.path().is_ident("cfg") || it.path().is_ident("test"))
}

fn has_let(expression: &Expr) -> bool {
    struct Lets(bool);
    impl<'a> Visit<'a> for Lets {
        fn visit_expr_let(&mut self, _: &'a syn::ExprLet) {
            self.0 = true;
        }
        fn visit_expr_closure(&mut self, _: &'a syn::ExprClosure) {}
        fn visit_expr_block(&mut self, _: &'a syn::ExprBlock) {}
    }
    let mut lets = Lets(false);
    lets.visit_expr(expression);
    lets.0
}

/// Whether a pattern gives something a name.
fn binds(pattern: &Pat) -> bool {
    struct Names(bool);
    impl<'a> Visit<'a> for Names {
        fn visit_pat_ident(&mut self, it: &'a syn::PatIdent) {
            self.0 |= it.ident.to_string().starts_with(char::is_lowercase);
        }
    }
    let mut names = Names(false);
    names.visit_pat(pattern);
    names.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_has_its_switch() {
        let text = "fn f(a: bool) {\n    if a && g() {\n        h(a);\n    }\n    match a {\n        true => one(),\n        false => two(),\n    }\n}\n";
        let mut sites = Vec::new();
        let mutated = mutate("x.rs", text, &BTreeSet::new(), &mut sites).unwrap();
        let rules: Vec<(&str, &str)> = sites.iter().map(|site| (site.rule, &*site.code)).collect();
        assert_eq!(
            rules,
            [
                ("negated", "a && g()"),
                ("negated", "a"),
                ("negated", "g()"),
                ("dropped", "h(a);"),
                ("swapped with the next", "one()"),
            ]
        );
        assert!(
            mutated
                .contains("if crate::selector::flip(1, crate::selector::flip(2, a) && crate::selector::flip(3, g()))")
        );
        assert!(mutated.contains("if !crate::selector::on(4) { h(a); }"));
        assert!(mutated.contains("true => if crate::selector::on(5) { two() } else { one() }"), "{mutated}");
        syn::parse_file(&mutated).unwrap();
    }
}
