//! Data: directories that are kept for the name of a component, whatever becomes of the component.
//!
//! Each name has one directory below `data`, outside of the directories of components, which end with them. A restart, a
//! replacement, an upgrade or a removal does not touch it; only [`Host::delete_data`](super::Host::delete_data) does, and
//! that is refused while a component uses it. Two components of one name (an old one and its replacement) never run on
//! the same data: the second one does not start before the run of the first has ended.
//!
//! Which component uses which data is in the components' own records; [`Uses`] is that knowledge in memory.

use super::{
    component::Component,
    component_directory::{ComponentDirectory, sync},
    failure::{Attempt, Failure},
    guard,
    record::Record,
};
use protocol::{ComponentId, Name};
use recipe::Recipe;
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    sync::Mutex,
};

/// The directory of all data of a host.
const DATA: &str = "data";
/// Suffix of data that is being deleted.
const LEAVING: &str = ".leaving";
/// Directories below data are looked at up to this depth, so that no tree can exhaust the stack.
const DEPTH_MAX: usize = 200;

/// What is kept for one name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptData {
    /// The name of the component that it is kept for.
    pub key: Name,
    /// Its directories.
    pub directories: Vec<KeptDirectory>,
    /// Whether a component of that name is on this VM and uses it; otherwise it was left behind.
    pub in_use: bool,
}

/// One directory of data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptDirectory {
    /// What templates call it.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
    /// The size of all its files. What cannot be read is not counted.
    pub bytes: u64,
}

/// The directory that has the data of a name.
pub(super) fn directory_of(key: &Name, host_directory: &Path) -> PathBuf {
    host_directory.join(DATA).join(file_name(key))
}

/// A file name for a component: without what shells expand, and different for different names.
pub(super) fn file_name(key: &Name) -> String {
    let mut text = String::new();
    for character in key.as_str().chars() {
        match character {
            '/' => text.push('+'),
            '[' => text.push('@'),
            ']' => text.push('='),
            '\'' => text.push(','),
            other => text.push(other),
        }
    }
    text
}

/// The name that a file name stands for.
fn key_of(file_name: &str) -> Option<Name> {
    let letter = |character| match character {
        '+' => '/',
        '@' => '[',
        '=' => ']',
        ',' => '\'',
        other => other,
    };
    Name::new(&file_name.chars().map(letter).collect::<String>()).ok()
}

/// Which components use which data.
#[derive(Debug, Default)]
pub(super) struct Uses(Mutex<BTreeMap<Name, BTreeMap<ComponentId, Use>>>);

/// How a component uses its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    /// It is not running.
    AtRest,
    /// Something of it may be running.
    Running,
}

impl Uses {
    /// What the records of all components say.
    pub(super) fn load(components: &[ComponentId], host_directory: &Path) -> Self {
        let uses = Self::default();
        for id in components {
            // A damaged record is set aside later, when its component is taken up; until then it may be running.
            let record = Record::load(&ComponentDirectory::of(*id, host_directory)).unwrap_or_default();
            if let Some(key) = record.data {
                let state = if record.run.is_some() { Use::Running } else { Use::AtRest };
                guard(&uses.0).entry(key).or_default().insert(*id, state);
            }
        }
        uses
    }

    /// Whether a component uses the data of this name.
    fn is_used(&self, key: &Name) -> bool {
        guard(&self.0).contains_key(key)
    }

    /// Notes that a component uses the data of this name, and may begin to run. Fails if another one may be running.
    fn begin(&self, key: &Name, component: ComponentId) -> Result<(), ComponentId> {
        let mut uses = guard(&self.0);
        let own = uses.entry(key.clone()).or_default();
        match own.iter().find(|(id, state)| **id != component && **state == Use::Running) {
            Some((other, _)) => Err(*other),
            None => {
                own.insert(component, Use::Running);
                Ok(())
            }
        }
    }

    /// Notes that a component uses the data of this name, without running.
    fn note(&self, key: &Name, component: ComponentId) {
        guard(&self.0).entry(key.clone()).or_default().entry(component).or_insert(Use::AtRest);
    }

    /// Notes that nothing of a component is running.
    pub(super) fn end(&self, component: ComponentId) {
        for users in guard(&self.0).values_mut() {
            users.entry(component).and_modify(|state| *state = Use::AtRest);
        }
    }

    /// Forgets a component that is purged.
    pub(super) fn forget(&self, component: ComponentId) {
        guard(&self.0).retain(|_, users| {
            users.remove(&component);
            !users.is_empty()
        });
    }
}

impl Component {
    /// Makes the data directories of a component, if it has any, and records that it uses them. `runs` says whether
    /// something of it may run from now on.
    pub(super) async fn take_data(
        &self,
        key: &Name,
        recipe: &Recipe,
        record: &mut Record,
        runs: bool,
    ) -> Result<(), Failure> {
        if recipe.data.is_empty() {
            return Ok(());
        }
        if runs {
            self.shared.data.begin(key, self.id).map_err(|other| {
                Failure::new(format!(
                    "the data of {key} is in use by another component of that name ({other}), which has not stopped yet"
                ))
            })?;
        } else {
            self.shared.data.note(key, self.id);
        }
        let whole = directory_of(key, &self.shared.settings.directory);
        for name in &recipe.data.directories {
            let path = whole.join(name.as_str());
            make_durable(&path).attempt(format!("create the data directory {}", path.display()))?;
        }
        if record.data.as_ref() != Some(key) {
            record.data = Some(key.clone());
            record.save(&self.directory).await?;
        }
        Ok(())
    }
}

/// Makes a directory that survives a power failure.
fn make_durable(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(path)?;
    // The directory itself, that of its name, that of all data, and the host's.
    path.ancestors().take(4).try_for_each(sync)
}

/// All data below the directory of a host.
pub(super) fn list(host_directory: &Path, uses: &Uses) -> io::Result<Vec<KeptData>> {
    let mut kept = Vec::new();
    let entries = match fs::read_dir(host_directory.join(DATA)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(kept),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let entry = entry?;
        let file_name = entry.file_name();
        let Some(key) = file_name.to_str().filter(|it| !it.ends_with(LEAVING)).and_then(key_of) else { continue };
        let mut directories = Vec::new();
        for inner in fs::read_dir(entry.path())? {
            let inner = inner?;
            let bytes = size(&inner.path(), DEPTH_MAX);
            directories.push(KeptDirectory {
                name: inner.file_name().to_string_lossy().into_owned(),
                path: inner.path(),
                bytes,
            });
        }
        directories.sort_by(|one, other| one.name.cmp(&other.name));
        kept.push(KeptData { in_use: uses.is_used(&key), key, directories });
    }
    kept.sort_by(|one, other| one.key.cmp(&other.key));
    Ok(kept)
}

/// Deletes the data of a name, so that after a crash it either exists completely or not at all.
pub(super) fn delete(key: &Name, host_directory: &Path, uses: &Uses) -> Result<bool, Failure> {
    // Held until it is gone, so that no component can begin to use it meanwhile.
    let users = guard(&uses.0);
    if users.contains_key(key) {
        return Err(Failure::new(format!("the data of {key} is in use")));
    }
    let path = directory_of(key, host_directory);
    if !path.exists() {
        return Ok(false);
    }
    let mut leaving = path.clone().into_os_string();
    leaving.push(LEAVING);
    let leaving = PathBuf::from(leaving);
    let renamed = match fs::remove_dir_all(&leaving) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => fs::rename(&path, &leaving),
    };
    drop(users);
    renamed
        .and_then(|()| path.parent().map_or(Ok(()), sync))
        .and_then(|()| fs::remove_dir_all(&leaving))
        .attempt(format!("delete {}", path.display()))?;
    Ok(true)
}

/// Removes the remains of interrupted deletions.
pub(super) fn sweep(host_directory: &Path) {
    for entry in fs::read_dir(host_directory.join(DATA)).into_iter().flatten().flatten() {
        if entry.file_name().to_str().is_some_and(|it| it.ends_with(LEAVING))
            && let Err(error) = fs::remove_dir_all(entry.path())
        {
            tracing::warn!(path = %entry.path().display(), %error, "cannot remove the remains of deleted data");
        }
    }
}

/// The size of all files below a path; links are not followed.
fn size(path: &Path, depth: usize) -> u64 {
    let Ok(found) = fs::symlink_metadata(path) else { return 0 };
    if !found.is_dir() {
        return found.len();
    }
    if depth == 0 {
        return 0;
    }
    fs::read_dir(path).into_iter().flatten().flatten().map(|entry| size(&entry.path(), depth - 1)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_stand_for_names_and_have_nothing_that_a_shell_expands() {
        for text in ["shop/database[0]", "database", "a.b-c_d'e/f[10]"] {
            let key = Name::new(text).unwrap();
            let written = file_name(&key);
            assert!(!written.contains(['/', '[', ']', '*', '\'', ' ']), "{written}");
            assert_eq!(key_of(&written), Some(key));
        }
    }

    #[test]
    fn two_components_of_one_name_do_not_run_on_the_same_data() {
        let (uses, key) = (Uses::default(), Name::new("db").unwrap());
        let (old, new) = (ComponentId(1), ComponentId(2));
        assert_eq!(uses.begin(&key, old), Ok(()));
        assert_eq!(uses.begin(&key, old), Ok(()), "a start that is asked for again");
        assert_eq!(uses.begin(&key, new), Err(old));
        uses.end(old);
        assert_eq!(uses.begin(&key, new), Ok(()));
        assert_eq!(uses.begin(&key, old), Err(new));
        uses.forget(new);
        assert!(uses.is_used(&key));
        uses.forget(old);
        assert!(!uses.is_used(&key));
    }
}
