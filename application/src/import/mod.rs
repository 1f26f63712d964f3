//! Files of other tools, turned into application files.
//!
//! ```text
//!   text ──tree──▶ services as written ──service──▶ Service ──write──▶ an application file, and remarks
//!         anchors, `extends`           what compose means     what Holdfast does instead
//! ```
//!
//! A compose file describes containers on one machine; Holdfast runs components on many. So a service becomes a type
//! with one group of components, its dependencies become imports, and where it names another service as a host, the
//! address of that import is used instead. What has no counterpart is named in a remark: in the file, next to its type,
//! and in what is returned. Nothing is omitted silently.

mod component;
mod compose;
mod fields;
mod health;
mod hosts;
mod interpolation;
mod mounts;
mod operations;
mod plain_sight;
mod service;
mod tree;
mod words;
mod write;

use crate::{
    problem::Problems,
    reading::Reading,
    source::{Sources, Span},
};
use interpolation::{Piece, Variables};
use serde::Serialize;
use std::collections::BTreeMap;

/// What becomes of a service that has an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum With {
    /// A container.
    Docker,
    /// Its own command, as a process of the machine.
    Process,
}

/// How a compose file is turned into an application file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComposeOptions {
    /// What becomes of a service that has an image.
    pub with: With,
    /// The folder of the compose file on the machines that will run it; relative paths begin there.
    pub folder: String,
}

/// An application file, and what could not be carried over into it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Imported {
    /// The application file, in its usual form.
    pub text: String,
    /// What could not be carried over, or means something else now.
    pub remarks: Vec<Remark>,
}

/// One thing that could not be carried over, or means something else now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Remark {
    /// The file that it is in.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The service; nothing if it is about all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// What it is, and what to do about it.
    pub says: String,
}

/// Turns a compose file into an application file. Other files that it names are asked for by name.
pub fn import_compose(
    name: &str,
    options: &ComposeOptions,
    open: &mut dyn FnMut(&str) -> Result<String, String>,
) -> Result<Imported, Problems> {
    let mut importer = Importer::default();
    let composed = compose::read(name, options.with, &mut importer, open);
    std::mem::take(&mut importer.reading.findings).conclude(&importer.sources)?;
    let text = write::application(name, options, &composed, &mut importer);
    let mut found = importer.remarks;
    found.sort_by_key(|(span, _, _)| *span);
    found.dedup();
    let remark = |(span, service, says): (Span, Option<String>, String)| {
        let place = importer.sources.place(span);
        Remark { file: place.file.into(), line: place.line, service, says }
    };
    let remarks = found.into_iter().map(remark).collect();
    // What was written is in its usual form but for the length of its lines.
    let text = crate::format("the imported file", &text)?;
    Ok(Imported { text, remarks })
}

/// The state of an import: the texts, their problems, and the remarks.
#[derive(Default)]
struct Importer {
    sources: Sources,
    reading: Reading,
    remarks: Vec<(Span, Option<String>, String)>,
    /// What the file `.env` says.
    environment: BTreeMap<String, String>,
    variables: Variables,
}

impl Importer {
    fn wrong(&mut self, span: Span, says: impl Into<String>) {
        self.reading.wrong(span, says);
    }

    /// Adds a remark on something that has no counterpart.
    fn remark(&mut self, span: Span, service: Option<&str>, says: impl Into<String>) {
        self.remarks.push((span, service.map(str::to_owned), says.into()));
    }

    /// A text that becomes a template; its variables are noted.
    fn phrase(&mut self, text: &str, span: Span, service: Option<&str>) -> Phrase {
        let pieces = interpolation::pieces(text, span, self);
        let mut variables = std::mem::take(&mut self.variables);
        interpolation::note(&pieces, &mut variables, span, service, self);
        self.variables = variables;
        Phrase { pieces, span }
    }

    /// A text with its present value, where nothing can be replaced later.
    fn now(&mut self, text: &str, span: Span, service: Option<&str>) -> String {
        let pieces = interpolation::pieces(text, span, self);
        let read = interpolation::now(&pieces, self);
        if pieces.iter().any(|it| matches!(it, Piece::Variable(_))) {
            self.remark(span, service, format!("`{}` is replaced by its present value, `{read}`", text.escape_debug()));
        }
        read
    }
}

/// A text in pieces, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Phrase {
    pieces: Vec<Piece>,
    span: Span,
}

impl Phrase {
    /// A text without variables.
    fn literal(text: impl Into<String>, span: Span) -> Self {
        Self { pieces: vec![Piece::Literal(text.into())], span }
    }
}
