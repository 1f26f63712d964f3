//! Application files on this machine: collects them with all included files, and the texts of the secrets they name.

use crate::{failure::Failure, input::files};
use application::{ApplicationFiles, Inputs, Secret, SecretTexts};
use clap::Args;
use std::{
    collections::BTreeMap,
    env::VarError,
    path::{Path, PathBuf},
    process::Command,
};

/// A file, and the inputs that differ between environments.
#[derive(Args, Clone, Debug)]
pub(crate) struct FileOptions {
    /// The application file
    pub(crate) file: PathBuf,
    #[command(flatten)]
    values: ValueOptions,
}

/// The inputs that differ between environments.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ValueOptions {
    /// The value of a variable
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// A file of values of variables, in YAML; later ones take precedence
    #[arg(long, value_name = "FILE")]
    values: Vec<PathBuf>,
}

impl FileOptions {
    /// Collects the file and all included files.
    pub(crate) fn collect(&self) -> Result<ApplicationFiles, Failure> {
        self.values.collect(&self.file)
    }
}

impl ValueOptions {
    /// Collects a file and all included files.
    pub(crate) fn collect(&self, path: &Path) -> Result<ApplicationFiles, Failure> {
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
        // If the main file cannot be read, there are no other errors to report.
        files::read(path)?;
        let mut open = |name: &str| files::text(Path::new(name)).map_err(|error| error.to_string());
        Ok(ApplicationFiles::collect(path.display().to_string(), inputs, &mut open))
    }
}

/// The texts of secrets, or every problem with them. Paths are relative to the main file, and commands run there.
pub(crate) fn secret_texts<'a>(
    files: &ApplicationFiles,
    secrets: impl Iterator<Item = &'a Secret>,
) -> Result<SecretTexts, Failure> {
    texts(files, secrets, text_of)
}

/// Checks that all secrets are available, without running commands.
pub(crate) fn check_secrets<'a>(
    files: &ApplicationFiles,
    secrets: impl Iterator<Item = &'a Secret>,
) -> Result<(), Failure> {
    let look = |secret: &Secret, folder: &Path| match secret.from.as_str() {
        "command" => Ok(String::new()),
        _ => text_of(secret, folder),
    };
    texts(files, secrets, look).map(drop)
}

fn texts<'a>(
    files: &ApplicationFiles,
    secrets: impl Iterator<Item = &'a Secret>,
    text_of: impl Fn(&Secret, &Path) -> Result<String, String>,
) -> Result<SecretTexts, Failure> {
    let (mut texts, mut reasons) = (SecretTexts::new(), BTreeMap::new());
    for secret in secrets {
        match text_of(secret, &files.folder()) {
            Ok(text) => drop(texts.insert(secret.name.clone(), text)),
            Err(why) => drop(reasons.insert(secret.name.clone(), why)),
        }
    }
    match reasons.is_empty() {
        true => Ok(texts),
        false => Err(Failure::Application(files.read().map_err(Failure::Application)?.without_secrets(&reasons))),
    }
}

/// The text of a secret, without its trailing newline; or why there is none.
fn text_of(secret: &Secret, folder: &Path) -> Result<String, String> {
    let place = &secret.place;
    let (what, text) = match secret.from.as_str() {
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
        "" => Err(format!("{what} {}", if secret.from == "command" { "prints nothing" } else { "is empty" })),
        text => Ok(text.to_owned()),
    }
}

/// The output of a command. It may be a secret, and is not repeated if the command fails.
fn output(command: &str, folder: &Path) -> Result<String, String> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let run =
        Command::new("/bin/sh").args(["-c", command]).current_dir(folder).stdin(std::process::Stdio::null()).output();
    let run = run.map_err(|error| format!("cannot be run: {error}"))?;
    if !run.status.success() {
        return Err(format!("ended with {}: {}", run.status, String::from_utf8_lossy(&run.stderr).trim()));
    }
    String::from_utf8(run.stdout).map_err(|_| "prints something that is not UTF-8 text".into())
}
