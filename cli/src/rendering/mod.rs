//! Output for people: text, tables, charts and progress. Nothing here requests a change.

pub(crate) mod change_progress;
pub(crate) mod component;
pub(crate) mod feed;
pub(crate) mod moment;
pub(crate) mod plan;
pub(crate) mod progress;
pub(crate) mod report;
pub(crate) mod screen;
pub(crate) mod summary;
pub(crate) mod table;
pub(crate) mod tiers;
pub(crate) mod verdict;
