//! Application files on this machine: reading them with all that they include, and asking for the secrets that they name.

use crate::{failure::Failure, files};
use application::{Application, Definition, Expansion, Inputs, Secret, SecretTexts};
use clap::Args;
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    env::VarError,
    path::{Path, PathBuf},
    process::Command,
};

/// A file, and what differs between environments.
#[derive(Args, Clone, Debug)]
pub(crate) struct FileOptions {
    /// The application file
    file: PathBuf,
    #[command(flatten)]
    values: ValueOptions,
}

/// What differs between environments.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ValueOptions {
    /// The value of a variable
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// A file of values of variables, in YAML; later ones have the last word
    #[arg(long, value_name = "FILE")]
    values: Vec<PathBuf>,
}

/// The files of an application and what was said about them: all that is needed to read it again, wherever that is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Draft {
    pub(crate) main: String,
    pub(crate) files: BTreeMap<String, String>,
    pub(crate) inputs: Inputs,
}

/// What the manager keeps of an application.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    #[serde(flatten)]
    pub(crate) draft: Draft,
    /// What came of it.
    pub(crate) expansion: Expansion,
    /// What was applied before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) previous: Option<Draft>,
}

impl FileOptions {
    /// Reads the file with all that it includes.
    pub(crate) fn read(&self) -> Result<(Draft, Application), Failure> {
        self.values.read(&self.file)
    }
}

impl ValueOptions {
    /// Reads a file with all that it includes.
    pub(crate) fn read(&self, path: &Path) -> Result<(Draft, Application), Failure> {
        let mut inputs = Inputs::default();
        for text in &self.set {
            let (name, value) = text
                .split_once('=')
                .ok_or_else(|| Failure::Usage(format!("--set {text}: write it like --set name=value")))?;
            inputs.values.insert(name.into(), value.into());
        }
        for path in &self.values {
            inputs.values_files.push((path.display().to_string(), files::read_given(path)?));
        }
        // The main file is told like every other file that cannot be read.
        files::read(path)?;
        let main = path.display().to_string();
        let mut draft = Draft { main, files: BTreeMap::new(), inputs };
        let mut open = |name: &str| {
            let text = files::text(Path::new(name)).map_err(|error| error.to_string())?;
            draft.files.insert(name.into(), text.clone());
            Ok(text)
        };
        let application = Application::read(&draft.main, &draft.inputs, &mut open).map_err(Failure::Application)?;
        Ok((draft, application))
    }
}

impl Draft {
    /// Reads it again, without a look at the disk.
    pub(crate) fn read(&self) -> Result<Application, Failure> {
        let mut open = |name: &str| self.files.get(name).cloned().ok_or_else(|| "it was not kept".to_owned());
        Application::read(&self.main, &self.inputs, &mut open).map_err(Failure::Application)
    }

    fn folder(&self) -> PathBuf {
        Path::new(&self.main).parent().map(Path::to_path_buf).unwrap_or_default()
    }

    /// The texts of all secrets of components, or all that cannot be had. Files are looked for beside the main file, and
    /// commands run there.
    pub(crate) fn secrets<'a>(&self, of: impl Iterator<Item = &'a Definition>) -> Result<SecretTexts, Failure> {
        self.had(of, Secret::had)
    }

    /// Whether all secrets can be had, as far as nothing has to be run for that.
    pub(crate) fn look_for_secrets<'a>(&self, of: impl Iterator<Item = &'a Definition>) -> Result<(), Failure> {
        let looked = |secret: &Secret, folder: &Path| match secret.from.as_str() {
            "command" => Ok(String::new()),
            _ => secret.had(folder),
        };
        self.had(of, looked).map(drop)
    }

    fn had<'a>(
        &self,
        of: impl Iterator<Item = &'a Definition>,
        had: impl Fn(&Secret, &Path) -> Result<String, String>,
    ) -> Result<SecretTexts, Failure> {
        let (mut texts, mut reasons) = (SecretTexts::new(), BTreeMap::new());
        let secrets: BTreeMap<&String, &Secret> =
            of.flat_map(|it| it.secrets.values()).map(|it| (&it.name, it)).collect();
        for (name, secret) in secrets {
            match had(secret, &self.folder()) {
                Ok(text) => drop(texts.insert(name.clone(), text)),
                Err(why) => drop(reasons.insert(name.clone(), why)),
            }
        }
        match reasons.is_empty() {
            true => Ok(texts),
            false => Err(Failure::Application(self.read()?.without_secrets(&reasons))),
        }
    }
}

/// Something in the place of each secret, for predictions.
pub(crate) fn no_secrets(expansion: &Expansion) -> SecretTexts {
    let all = expansion.definitions.values().flat_map(|it| it.secrets.values());
    all.map(|secret| (secret.name.clone(), "•••".into())).collect()
}

/// Secrets are had on the machine of whoever applies a file.
trait Had {
    /// Its text, without the end of its last line; or why there is none.
    fn had(&self, folder: &Path) -> Result<String, String>;
}

impl Had for Secret {
    fn had(&self, folder: &Path) -> Result<String, String> {
        let place = &self.place;
        let (what, text) = match self.from.as_str() {
            "environment" => {
                let text = std::env::var(place).map_err(|error| match error {
                    VarError::NotPresent => "is not set".to_owned(),
                    VarError::NotUnicode(_) => "is not UTF-8".into(),
                });
                (format!("the environment variable {place}"), text)
            }
            "file" => {
                let path = folder.join(place);
                let text = files::text(&path).map_err(|error| format!("cannot be read: {error}"));
                (format!("the file {}", path.display()), text)
            }
            _ => (format!("the command `{place}`"), output(place, folder)),
        };
        let text = text.map_err(|why| format!("{what} {why}"))?;
        match text.trim_end_matches(['\r', '\n']) {
            "" => Err(format!("{what} {}", if self.from == "command" { "prints nothing" } else { "is empty" })),
            text => Ok(text.to_owned()),
        }
    }
}

/// What a command prints. It may be a secret, and is not repeated if the command fails.
fn output(command: &str, folder: &Path) -> Result<String, String> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let run =
        Command::new("/bin/sh").args(["-c", command]).current_dir(folder).stdin(std::process::Stdio::null()).output();
    let run = run.map_err(|error| format!("cannot be run: {error}"))?;
    if !run.status.success() {
        return Err(format!("ended with {}: {}", run.status, String::from_utf8_lossy(&run.stderr).trim()));
    }
    String::from_utf8(run.stdout).map_err(|_| "prints something that is no text".into())
}
