//! Why a task failed, as text for the operator.

use recipe::template::TemplateError;
use std::{borrow::Cow, fmt, io};

/// Maximum size of the detail. The complete output is in the component's log.
pub(super) const DETAIL_BYTES_MAX: usize = 4096;

/// Why a task, or a part of it, failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure(pub(super) String);

impl Failure {
    pub(super) fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }

    /// The same, prefixed with what was being done.
    pub(super) fn during(self, what: impl fmt::Display) -> Self {
        Self(format!("{what}: {}", self.0))
    }

    /// The same, followed by the end of the output.
    pub(super) fn with_output(self, output: &str) -> Self {
        let output = output.trim_end();
        if output.is_empty() { self } else { Self(format!("{}\n{output}", self.0)) }
    }

    /// The reason, without the output below it.
    pub(super) fn first_line(&self) -> &str {
        self.0.lines().next().unwrap_or_default()
    }

    /// The text for the outcome, cut to the maximum size of a detail.
    pub(super) fn detail(&self) -> &str {
        let mut end = self.0.len().min(DETAIL_BYTES_MAX);
        while !self.0.is_char_boundary(end) {
            end -= 1;
        }
        &self.0[..end]
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl From<TemplateError> for Failure {
    fn from(error: TemplateError) -> Self {
        Self(error.to_string())
    }
}

/// Adds what was attempted to an error of the operating system.
pub(super) trait Attempt<T> {
    /// `what` completes the sentence "cannot …".
    fn attempt<'a>(self, what: impl Into<Cow<'a, str>>) -> Result<T, Failure>;
}

impl<T> Attempt<T> for io::Result<T> {
    fn attempt<'a>(self, what: impl Into<Cow<'a, str>>) -> Result<T, Failure> {
        self.map_err(|error| Failure(format!("cannot {}: {error}", what.into())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_detail_is_cut_between_characters() {
        let long = Failure::new("ä".repeat(DETAIL_BYTES_MAX)).during("x");
        assert!(long.detail().len() <= DETAIL_BYTES_MAX && long.detail().ends_with('ä'));
    }
}
