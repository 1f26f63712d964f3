//! The specification language of Zephyrus2: reading it, and looking its names up.
//!
//! Text → words ([`lexer`]) → tree ([`syntax`], by [`parser`]) → meaning ([`meaning`], by [`lookup`]). Every complaint
//! carries a place and what was expected; they come all at once. [`shorthand`] adds friendlier words that translate
//! into the same trees.

mod complaint;
mod lexer;
mod lookup;
mod meaning;
mod parser;
mod pattern;
mod shorthand;
pub mod syntax;

pub use complaint::{Complaint, Span};
pub use meaning::{BindingGoal, Demand, Goal, GoalMeasure, PortReference, Range, Requirements, Spot, Term, Which};
pub use parser::is_reserved;
pub use parser::{binding_preference, formula, preference, specification};
pub use shorthand::{translate_constraint, translate_preference};

use crate::problem::{ComponentType, NodeClass};
use lookup::Lookup;
use syntax::{BindingPreference, Connective, Expression, Preference, Shape};

/// The texts of the requirements, as they were written.
#[derive(Clone, Debug, Default)]
pub struct RequirementText<'a> {
    /// `constraint; preference; …`; may be empty.
    pub specification: &'a str,
    /// Further constraints, one text each; shorthands are allowed.
    pub constraints: Vec<&'a str>,
    /// Further preferences, after those of the specification; shorthands are allowed.
    pub preferences: Vec<&'a str>,
    pub binding_preferences: Vec<&'a str>,
}

/// A complaint and the text it is about.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text_name}, {complaint}")]
pub struct TextComplaint {
    pub text_name: String,
    pub complaint: Complaint,
}

impl Requirements {
    /// Reads all texts; on errors, returns all complaints of all texts.
    pub fn read(
        text: &RequirementText<'_>,
        types: &[ComponentType],
        classes: &[NodeClass],
    ) -> Result<Self, Vec<TextComplaint>> {
        let mut reader = Reader {
            names: Lookup { types, classes, bindings: false },
            requirements: Self::default(),
            complaints: Vec::new(),
        };
        if !text.specification.trim().is_empty() {
            reader.specification(text.specification);
        }
        for (number, constraint) in text.constraints.iter().enumerate() {
            reader.constraint(constraint, &format!("constraint {}", number + 1));
        }
        for (number, preference) in text.preferences.iter().enumerate() {
            reader.preference(preference, &format!("preference {}", number + 1));
        }
        for (number, preference) in text.binding_preferences.iter().enumerate() {
            reader.binding_preference(preference, &format!("binding preference {}", number + 1));
        }
        if !reader.complaints.is_empty() {
            return Err(reader.complaints);
        }
        if reader.requirements.goals.is_empty() {
            reader.preference("cost", "default preference");
            reader.preference("(sum ?x in components: ?x)", "default preference");
        }
        Ok(reader.requirements)
    }
}

struct Reader<'a> {
    names: Lookup<'a>,
    requirements: Requirements,
    complaints: Vec<TextComplaint>,
}

impl Reader<'_> {
    fn specification(&mut self, text: &str) {
        let name = "specification";
        match specification(text) {
            Err(complaints) => self.complain(name, text, complaints),
            Ok(specification) => {
                self.demands(&specification.constraint, text, name);
                for (preference, span) in &specification.preferences {
                    self.goal(preference, span.of(text), text, name);
                }
            }
        }
    }

    fn constraint(&mut self, text: &str, name: &str) {
        let read = match translate_constraint(text) {
            // What a person wrote as one shorthand stays one demand, in their words.
            Some(Ok(translated)) => {
                let mut complaints = Vec::new();
                let parsed = formula(&translated).expect("a translated shorthand is well formed");
                if let Some(term) = self.names.formula(&parsed, &mut complaints) {
                    self.requirements.demands.push(Demand { text: text.trim().to_owned(), term });
                }
                for complaint in &mut complaints {
                    complaint.span = Span { start: 0, end: text.len() };
                }
                self.complain(name, text, complaints);
                return;
            }
            Some(Err(complaint)) => Err(vec![complaint]),
            None => formula(text),
        };
        match read {
            Err(complaints) => self.complain(name, text, complaints),
            Ok(formula) => self.demands(&formula, text, name),
        }
    }

    fn preference(&mut self, text: &str, name: &str) {
        let translated = match translate_preference(text) {
            Some(Err(complaint)) => return self.complain(name, text, vec![complaint]),
            Some(Ok(translated)) => translated,
            None => text.to_owned(),
        };
        match preference(&translated) {
            Err(complaints) => self.complain(name, text, complaints),
            Ok(preference) => self.goal(&preference, text.trim(), text, name),
        }
    }

    fn binding_preference(&mut self, text: &str, name: &str) {
        let mut complaints = Vec::new();
        match binding_preference(text) {
            Err(found) => complaints = found,
            Ok(BindingPreference::Local) => self.requirements.binding_goals.push(BindingGoal::Local),
            Ok(BindingPreference::Expression(expression)) => {
                let names = Lookup { bindings: true, ..self.names };
                if let Some(term) = names.number(&expression, &mut complaints) {
                    self.requirements.binding_goals.push(BindingGoal::Term(term));
                }
            }
        }
        self.complain(name, text, complaints);
    }

    /// Splits a conjunction into demands, so that an answer can name the one that fails.
    fn demands(&mut self, formula: &Expression, text: &str, name: &str) {
        if let Shape::Connected { connective: Connective::And, parts } = &formula.shape {
            for part in parts {
                self.demands(part, text, name);
            }
            return;
        }
        let mut complaints = Vec::new();
        if let Some(term) = self.names.formula(formula, &mut complaints)
            && term != Term::Truth(true)
        {
            self.requirements.demands.push(Demand { text: formula.span.of(text).to_owned(), term });
        }
        self.complain(name, text, complaints);
    }

    fn goal(&mut self, preference: &Preference, written: &str, text: &str, name: &str) {
        let mut complaints = Vec::new();
        let measure = match preference {
            Preference::Cost => Some(GoalMeasure::Cost),
            Preference::Stopped => Some(GoalMeasure::Stopped),
            Preference::Moved => Some(GoalMeasure::Moved),
            Preference::Expression(expression) => self.names.number(expression, &mut complaints).map(GoalMeasure::Term),
        };
        if let Some(measure) = measure {
            self.requirements.goals.push(Goal { text: written.to_owned(), measure });
        }
        self.complain(name, text, complaints);
    }

    fn complain(&mut self, name: &str, text: &str, complaints: Vec<Complaint>) {
        for mut complaint in complaints {
            complaint.place_in(text);
            self.complaints.push(TextComplaint { text_name: name.to_owned(), complaint });
        }
    }
}
