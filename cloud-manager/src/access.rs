//! The access file: the address of the manager's API, its certificate, and a token.
//!
//! It grants the same access as the token inside, so only its owner can read it.

use serde::{Deserialize, Serialize};
use std::{
    env, fs, io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

/// The content of an access file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Access {
    /// The address of the API: `https://host:port`.
    pub url: String,
    /// The certificate of the API, in the PEM format; no other is trusted.
    pub certificate: String,
    /// The token to send.
    pub token: String,
    /// The manager's data directory, for clients on the same machine that may read its journals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<PathBuf>,
}

/// Why an access file could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// The file does not exist.
    #[error("{}: there is no access file (start a manager with: holdfast manager run --data DIR; or name one with --access FILE)", .0.display())]
    Missing(PathBuf),
    /// It cannot be read.
    #[error("{}: cannot be read", .0.display())]
    Read(PathBuf, #[source] io::Error),
    /// The file has another format.
    #[error("{}: not an access file", .0.display())]
    Malformed(PathBuf, #[source] serde_json::Error),
    /// It cannot be written.
    #[error("{}: cannot be written", .0.display())]
    Write(PathBuf, #[source] Box<dyn std::error::Error + Send + Sync>),
    /// The default location is unknown.
    #[error(
        "neither XDG_CONFIG_HOME nor HOME is set, so there is no default access file (name one with --access FILE)"
    )]
    NoPlace,
}

impl Access {
    /// The default location: `$HOLDFAST_ACCESS`, or the directory for this user's settings.
    pub fn default_path() -> Result<PathBuf, AccessError> {
        let named = |variable: &str| env::var_os(variable).filter(|it| !it.is_empty()).map(PathBuf::from);
        if let Some(path) = named("HOLDFAST_ACCESS") {
            return Ok(path);
        }
        let settings = named("XDG_CONFIG_HOME").or_else(|| named("HOME").map(|it| it.join(".config")));
        Ok(settings.ok_or(AccessError::NoPlace)?.join("holdfast").join("access.json"))
    }

    /// Reads an access file.
    pub fn read(path: &Path) -> Result<Self, AccessError> {
        let bytes = fs::read(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => AccessError::Missing(path.into()),
            _ => AccessError::Read(path.into(), error),
        })?;
        serde_json::from_slice(&bytes).map_err(|error| AccessError::Malformed(path.into(), error))
    }

    /// Writes an access file that only its owner can read. Durable when this returns.
    pub fn write(&self, path: &Path) -> Result<(), AccessError> {
        if let Some(folder) = path.parent().filter(|it| !it.as_os_str().is_empty()) {
            let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
            made.map_err(|error| AccessError::Write(path.into(), error.into()))?;
        }
        let bytes = serde_json::to_vec_pretty(self).expect("an access file is made of strings");
        runtime::data_directory::replace_file(path, &bytes)
            .map_err(|error| AccessError::Write(path.into(), error.into()))
    }
}
