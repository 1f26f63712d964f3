//! Friendlier words for common requirements; each translates into the specification language.
//!
//! | shorthand | meaning |
//! |---|---|
//! | `apart Web` | no node hosts two `Web` |
//! | `apart Web, Db` | no node hosts components of two of these types |
//! | `together Web, Cache` | a node that hosts one of these types hosts each of them |
//! | `alone Db` | a node that hosts a `Db` hosts nothing else |
//! | `spread Web` | `Web` lives on at least two nodes, if there are two of it |
//! | `spread Web over 3` | `Web` lives on at least three nodes |
//! | `at most 2 Web per vm` | no node hosts more than two `Web` |
//! | `at most 5 per vm` | no node hosts more than five components |
//! | as a preference: `spread Web` | as many nodes with a `Web` as possible |

use super::complaint::{Complaint, Span};
use super::lexer::{Word, words};

/// The formula that a shorthand stands for; `None` if the text is none.
pub fn translate_constraint(text: &str) -> Option<Result<String, Complaint>> {
    let mut reader = Reader::new(text)?;
    let head = reader.head()?;
    Some(match head.as_str() {
        "apart" => reader.names().and_then(|names| reader.end(apart(&names))),
        "together" => reader.names().and_then(|names| match names.len() {
            1 => Err(reader.expected("`,` and a second component")),
            _ => reader.end(together(&names)),
        }),
        "alone" => reader.names().and_then(|names| reader.end(alone(&names))),
        "spread" => spread(&mut reader),
        "at" => at_most(&mut reader),
        _ => return None,
    })
}

/// The number to minimise that a shorthand stands for; `None` if the text is none.
pub fn translate_preference(text: &str) -> Option<Result<String, Complaint>> {
    let mut reader = Reader::new(text)?;
    let head = reader.head()?;
    if head != "spread" {
        return None;
    }
    Some(reader.name().and_then(|name| reader.end(format!("0 - (sum ?vm in locations: (?vm.{name} > 0))"))))
}

fn apart(names: &[String]) -> String {
    if let [only] = names {
        return format!("forall ?vm in locations: ?vm.{only} <= 1");
    }
    let present: Vec<String> = names.iter().map(|name| format!("(?vm.{name} > 0)")).collect();
    format!("forall ?vm in locations: {} <= 1", present.join(" + "))
}

fn together(names: &[String]) -> String {
    let pairs: Vec<String> =
        names.windows(2).map(|pair| format!("(?vm.{} > 0 iff ?vm.{} > 0)", pair[0], pair[1])).collect();
    format!("forall ?vm in locations: ({})", pairs.join(" and "))
}

fn alone(names: &[String]) -> String {
    let parts: Vec<String> =
        names.iter().map(|name| format!("(?vm.{name} > 0 impl (sum ?any in components: ?vm.?any) = 1)")).collect();
    format!("forall ?vm in locations: ({})", parts.join(" and "))
}

fn spread(reader: &mut Reader) -> Result<String, Complaint> {
    let name = reader.name()?;
    let hosts = format!("(sum ?vm in locations: (?vm.{name} > 0))");
    if !reader.take("over") {
        return reader.end(format!("({name} >= 2 impl {hosts} >= 2)"));
    }
    let number = reader.integer()?;
    if !reader.take("vms") {
        reader.take("vm");
    }
    reader.end(format!("{hosts} >= {number}"))
}

fn at_most(reader: &mut Reader) -> Result<String, Complaint> {
    if !reader.take("most") {
        return Err(reader.expected("`most`"));
    }
    let number = reader.integer()?;
    let mut what = "(sum ?any in components: ?vm.?any)".to_owned();
    if !reader.take("per") {
        what = format!("?vm.{}", reader.name()?);
        if !reader.take("per") {
            return Err(reader.expected("`per vm`"));
        }
    }
    if !reader.take("vm") {
        return Err(reader.expected("`vm`"));
    }
    reader.end(format!("forall ?vm in locations: {what} <= {number}"))
}

struct Reader {
    words: Vec<(Word, Span)>,
    next: usize,
}

impl Reader {
    fn new(text: &str) -> Option<Self> {
        let mut complaints = Vec::new();
        let words = words(text, &mut complaints);
        complaints.is_empty().then_some(Self { words, next: 0 })
    }

    /// The first word, if a name or number follows: `apart Web` is a shorthand, `apart >= 1` counts a type.
    fn head(&mut self) -> Option<String> {
        let (Word::Name(head), _) = self.words.first()? else { return None };
        let follows = matches!(self.words.get(1)?.0, Word::Name(_) | Word::Integer(_));
        let head = head.clone();
        self.next = 1;
        follows.then_some(head)
    }

    fn take(&mut self, word: &str) -> bool {
        let found = matches!(&self.words[self.next].0, Word::Name(name) if name == word);
        self.next += usize::from(found);
        found
    }

    fn name(&mut self) -> Result<String, Complaint> {
        match &self.words[self.next].0 {
            Word::Name(name) if !super::is_reserved(name) => {
                let name = name.clone();
                self.next += 1;
                Ok(name)
            }
            _ => Err(self.expected("a component")),
        }
    }

    fn names(&mut self) -> Result<Vec<String>, Complaint> {
        let mut names = vec![self.name()?];
        while matches!(self.words[self.next].0, Word::Sign(",")) {
            self.next += 1;
            names.push(self.name()?);
        }
        Ok(names)
    }

    fn integer(&mut self) -> Result<i64, Complaint> {
        let Word::Integer(value) = self.words[self.next].0 else { return Err(self.expected("a number")) };
        self.next += 1;
        Ok(value)
    }

    fn end(&self, translated: String) -> Result<String, Complaint> {
        if self.words[self.next].0 == Word::End { Ok(translated) } else { Err(self.expected("the end")) }
    }

    fn expected(&self, what: &str) -> Complaint {
        let (word, span) = &self.words[self.next];
        Complaint::new(*span, format!("expected {what}, found {}", word.describe()))
    }
}
