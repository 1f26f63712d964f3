//! Reads `data`: the directories of a type that outlive its components.
//!
//! ```yaml
//! data: files                                             # one directory, which is kept
//! data: [files, log]                                      # two
//! data: { directories: [files], on-remove: delete }       # deleted with the component
//! data: { directories: { files: /var/lib/mysql } }        # where a container sees it
//! ```

use crate::{
    node::{Content, Node},
    reading::Reading,
    source::Span,
};
use protocol::Name;
use recipe::{Data, OnRemove};

pub(crate) const DATA_FIELDS: &[&str] = &["directories", "on-remove"];
pub(crate) const ON_REMOVE: [(&str, OnRemove); 2] = [("keep", OnRemove::Keep), ("delete", OnRemove::Delete)];

/// What a type says of its data.
#[derive(Debug, Default)]
pub(crate) struct KeptData {
    pub(crate) data: Data,
    /// Each directory with the path at which a container sees it, if one is given, and where that is written.
    pub(crate) mounts: Vec<Mount>,
}

/// Where a container sees a directory.
#[derive(Clone, Debug)]
pub(crate) struct Mount {
    pub(crate) name: Name,
    pub(crate) path: Option<String>,
    pub(crate) span: Span,
}

/// Reads `data`; nothing if it is absent.
pub(crate) fn read(node: Option<&Node>, reading: &mut Reading) -> KeptData {
    let mut kept = KeptData::default();
    let Some(node) = node.filter(|it| !it.is_nothing()) else { return kept };
    let directories = if let Content::Map { .. } = node.content {
        let fields = reading.fields(node, "`data`", DATA_FIELDS);
        let on_remove = fields.get("on-remove").and_then(|it| reading.one_of(it, "`on-remove`", &ON_REMOVE));
        kept.data.on_remove = on_remove.unwrap_or_default();
        match fields.get("directories") {
            Some(directories) => directories,
            None => {
                reading.missing(&fields, &["directories"], node.span, "`data` needs `directories`: their names");
                return kept;
            }
        }
    } else {
        node
    };
    if let Content::Map { .. } = directories.content {
        for (key, node) in reading.entries(directories, "`directories`") {
            let path = if node.is_nothing() { None } else { reading.text(node, "a path").map(str::to_owned) };
            if path.as_ref().is_some_and(|path| !path.starts_with('/') || path.contains(':')) {
                reading.wrong(node.span, "a container sees a directory at an absolute path without a colon");
            }
            kept.mounts.extend(reading.name(&key.text, key.span).map(|name| Mount { name, path, span: key.span }));
        }
    } else {
        for node in reading.items(directories, "`directories`") {
            let name = reading.named(node, "the name of a directory");
            kept.mounts.extend(name.map(|name| Mount { name, path: None, span: node.span }));
        }
    }
    kept.data.directories = kept.mounts.iter().map(|it| it.name.clone()).collect();
    kept
}

/// The options with which a container sees its data; problems, if the type does not say where.
pub(crate) fn volumes(mounts: &[Mount], reading: &mut Reading) -> Vec<String> {
    let mut volumes = Vec::new();
    for Mount { name, path, span } in mounts {
        match path {
            Some(path) => volumes.push(format!("--volume={{{{ data['{name}'] }}}}:{path}")),
            None => reading.wrong(
                *span,
                format!("say where the container sees `{name}` (`data: {{ directories: {{ {name}: /path }} }}`)"),
            ),
        }
    }
    volumes
}

/// A path that only a container could have a use for.
pub(crate) fn check_no_paths(mounts: &[Mount], reading: &mut Reading) {
    for Mount { name, span, .. } in mounts.iter().filter(|it| it.path.is_some()) {
        let says = format!("only a container sees `{name}` at another path (use `{{{{ data.{name} }}}}`)");
        reading.wrong(*span, says);
    }
}
