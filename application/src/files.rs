//! The files of an application with what was said about them: all that is needed to read it again, wherever that is.

use crate::{Application, Inputs, Problems, says_the_same};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

/// The texts of an application's files, and the inputs that they are read with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApplicationFiles {
    /// The name of the main file.
    pub main: String,
    /// The text of every file, by name.
    pub files: BTreeMap<String, String>,
    /// Why a file has no text, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub missing: BTreeMap<String, String>,
    /// What differs between environments, and what was said on a command line.
    #[serde(default)]
    pub inputs: Inputs,
}

impl ApplicationFiles {
    /// Collects the main file and everything that it includes. What is wrong with them, [`Self::read`] says.
    pub fn collect(main: String, inputs: Inputs, open: &mut dyn FnMut(&str) -> Result<String, String>) -> Self {
        let mut collected = Self { main, inputs, ..Self::default() };
        let mut note = |name: &str| {
            let text = open(name);
            match &text {
                Ok(text) => drop(collected.files.insert(name.into(), text.clone())),
                Err(why) => drop(collected.missing.insert(name.into(), why.clone())),
            }
            text
        };
        // Only the includes matter here: planning reads the files and reports every problem.
        let _ = Application::read(&collected.main, &collected.inputs, &mut note);
        collected
    }

    /// Reads the application, or reports everything that is wrong with its files.
    pub fn read(&self) -> Result<Application, Problems> {
        let mut open = |name: &str| {
            let missing = || self.missing.get(name).cloned().unwrap_or_else(|| "was not sent along".into());
            self.files.get(name).cloned().ok_or_else(missing)
        };
        Application::read(&self.main, &self.inputs, &mut open)
    }

    /// The folder of the main file: other files are looked for there.
    pub fn folder(&self) -> PathBuf {
        Path::new(&self.main).parent().map(Path::to_path_buf).unwrap_or_default()
    }

    /// Whether both have the same texts and inputs, whatever their files are called.
    pub fn is_same(&self, other: &Self) -> bool {
        self.agrees(other, |one, other| one == other)
    }

    /// Whether both say the same: comments and layout make no difference.
    pub fn says_the_same(&self, other: &Self) -> bool {
        self.agrees(other, says_the_same)
    }

    fn agrees(&self, other: &Self, agree: fn(&str, &str) -> bool) -> bool {
        let (mine, theirs) = (self.by_place(), other.by_place());
        let agrees = |(file, text): (&PathBuf, &&String)| theirs.get(file).is_some_and(|it| agree(text, it));
        self.nameless_inputs() == other.nameless_inputs() && mine.len() == theirs.len() && mine.iter().all(agrees)
    }

    /// The texts by their place below the main file, which itself may have any name.
    fn by_place(&self) -> BTreeMap<PathBuf, &String> {
        let folder = self.folder();
        let place = |file: &String| match *file == self.main {
            true => PathBuf::new(),
            false => Path::new(file).strip_prefix(&folder).unwrap_or(Path::new(file)).to_owned(),
        };
        self.files.iter().map(|(file, text)| (place(file), text)).collect()
    }

    fn nameless_inputs(&self) -> Inputs {
        let nameless = self.inputs.values_files.iter().map(|(_, text)| (String::new(), text.clone())).collect();
        Inputs { values_files: nameless, ..self.inputs.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(main: &str, files: &[(&str, &str)]) -> ApplicationFiles {
        let files = files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        ApplicationFiles { main: main.into(), files, ..ApplicationFiles::default() }
    }

    #[test]
    fn files_are_compared_by_their_place_and_what_they_say() {
        let one = of("a/shop.yaml", &[("a/shop.yaml", "application: shop\n"), ("a/types.yaml", "types: {}\n")]);
        let moved = of("b/main.yaml", &[("b/main.yaml", "application: shop\n"), ("b/types.yaml", "types: {}\n")]);
        assert!(one.is_same(&moved));
        let remarked =
            of("a/shop.yaml", &[("a/shop.yaml", "# A shop.\napplication: shop\n"), ("a/types.yaml", "types: {}\n")]);
        assert!(!one.is_same(&remarked));
        assert!(one.says_the_same(&remarked));
        assert!(!one.says_the_same(&of("a/shop.yaml", &[("a/shop.yaml", "application: shop\n")])));
    }

    #[test]
    fn a_missing_file_is_reported_with_the_reason_why_it_could_not_be_opened() {
        let mut open = |name: &str| match name {
            "shop.yaml" => Ok("holdfast: 1\napplication: shop\ninclude: [types.yaml]\n".to_owned()),
            _ => Err("permission denied".to_owned()),
        };
        let files = ApplicationFiles::collect("shop.yaml".into(), Inputs::default(), &mut open);
        assert_eq!(files.missing["types.yaml"], "permission denied");
        let problems = files.read().unwrap().expand(&crate::Existing::default()).unwrap_err().to_string();
        assert!(problems.contains("permission denied"), "{problems}");
    }
}
