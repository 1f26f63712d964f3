//! The application file that a compose file becomes.

use super::{
    ComposeOptions, Importer, With,
    component::{self, Written},
    compose::{Compose, Source},
    hosts, interpolation,
    interpolation::{Otherwise, Piece},
    service::{Port, Service},
    words::{self, scalar},
};
use crate::source::Span;
use std::collections::{BTreeMap, BTreeSet};

/// The name of the variable that holds the folder of the compose file.
pub(super) const FOLDER: &str = "compose_folder";
/// Letters of a line of a remark.
const WIDTH: usize = 100;

/// What services are called in the application file.
#[derive(Debug)]
pub(super) struct Names {
    /// The component, and its export.
    pub(super) component: String,
    /// The type.
    pub(super) kind: String,
    /// The import of those who need it.
    pub(super) import: String,
}

/// Writes the application file.
pub(super) fn application(name: &str, options: &ComposeOptions, compose: &Compose, importer: &mut Importer) -> String {
    let application = application_name(name, compose, options);
    let names = names(&compose.services);
    let ports = ports(compose);
    tell_of_ports(compose, &ports, options.with, importer);
    let mut written: Vec<Written> = Vec::new();
    for place in 0..compose.services.len() {
        let writer = component::Writer {
            compose,
            with: options.with,
            application: &application,
            names: &names,
            ports: &ports,
            place,
        };
        written.push(writer.written(importer));
    }
    let file = name.rsplit('/').next().unwrap_or(name);
    let what = match options.with {
        With::Docker => "Each service with an image runs as a container on the network of its VM",
        With::Process => "Each service runs its command on its VM; images are not used",
    };
    let count = machines(compose, &ports, importer);
    let place = if count > 1 { "VMs of one group, as many as their ports need" } else { "one VM" };
    let about = format!(
        "From {} by `holdfast import compose`. {what}. All run on {place}; add groups under `vms` and change `on` to spread them.",
        file.escape_debug()
    );
    let mut text = remark_lines(&about, 0);
    for (_, _, says) in importer.remarks.iter().filter(|(_, service, _)| service.is_none()) {
        text += &remark_lines(says, 0);
    }
    text += &format!("holdfast: 1\napplication: {application}\n");
    text += &variables(&written, options, importer);
    text += &secrets(&written, compose, importer);
    text += "\ntypes:\n";
    for (place, (service, it)) in compose.services.iter().zip(&written).enumerate() {
        if place > 0 {
            text += "\n";
        }
        let own = importer.remarks.iter().filter(|(_, of, _)| of.as_deref() == Some(&service.name));
        let mut own: Vec<(Span, &str)> = own.map(|(span, _, says)| (*span, says.as_str())).collect();
        own.sort_unstable();
        own.dedup();
        own.iter().for_each(|(_, says)| text += &remark_lines(says, 2));
        text += &format!("  {}:\n{}", names[place].kind, it.type_lines);
    }
    let count = if count > 1 { format!(", count: {count}") } else { String::new() };
    text += &format!("\nvms:\n  machine: {{ cloud: local{count} }}\n\ncomponents:\n");
    for (place, it) in written.iter().enumerate() {
        text += &format!("  {}: {}\n", names[place].component, it.component);
    }
    text
}

fn application_name(file: &str, compose: &Compose, options: &ComposeOptions) -> String {
    let folder = options.folder.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let given = compose.name.as_deref().filter(|it| !it.is_empty()).unwrap_or(folder);
    let given = if given.is_empty() { file.rsplit('/').next().unwrap_or(file) } else { given };
    words::name(given, 24)
}

/// A remark over as many lines as it needs.
fn remark_lines(says: &str, indent: usize) -> String {
    let margin = " ".repeat(indent);
    let mut lines = String::new();
    let mut line = String::new();
    // A text from the compose file may contain anything.
    let says: String = says.chars().map(|it| if it.is_control() { ' ' } else { it }).collect();
    for word in says.split_whitespace() {
        if !line.is_empty() && line.chars().count() + word.chars().count() > WIDTH {
            lines += &format!("{margin}# {line}\n");
            line = if indent > 0 { String::from(" ") } else { String::new() };
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line += word;
    }
    lines + &format!("{margin}# {line}\n")
}

fn names(services: &[Service]) -> Vec<Names> {
    let mut names: Vec<Names> = Vec::new();
    for service in services {
        let mut component = words::name(&service.name, 26);
        if ["one", "index", "all", "none"].contains(&component.as_str()) {
            component += "-x";
        }
        let component = unique(component, &|it| names.iter().any(|known| known.component == it));
        let kind: String = component.split(['-', '_']).map(capitalised).collect();
        let kind = unique(kind, &|it| names.iter().any(|known| known.kind == it));
        let import = component.replace('-', "_");
        let import = unique(import, &|it| names.iter().any(|known| known.import == it));
        names.push(Names { component, kind, import });
    }
    names
}

/// A name that is not taken yet.
pub(super) fn unique(name: String, taken: &dyn Fn(&str) -> bool) -> String {
    let more = (2..).map(|number| format!("{name}{number}"));
    std::iter::once(name.clone()).chain(more).find(|it| !taken(it)).unwrap_or(name)
}

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or(String::new(), |first| first.to_ascii_uppercase().to_string() + letters.as_str())
}

/// The ports of each service: those it says, and those at which others look for it.
fn ports(compose: &Compose) -> Vec<Vec<Port>> {
    let services = &compose.services;
    let names: Vec<&str> = services.iter().map(|it| it.name.as_str()).collect();
    let mut ports: Vec<Vec<Port>> = services.iter().map(|it| it.ports.clone()).collect();
    for service in services {
        for (before, phrase) in component::phrases(compose, service) {
            for piece in &phrase.pieces {
                let Piece::Literal(text) = piece else { continue };
                for mention in hosts::mentions(&before, text, &names) {
                    let Some(number) = mention.port else { continue };
                    let known = &mut ports[mention.service];
                    if !known.iter().any(|it| it.number == number) {
                        known.push(Port { number, published: None, span: phrase.span });
                    }
                }
            }
        }
    }
    ports
}

/// How many machines are needed because on each of them a port can be had once.
fn machines(compose: &Compose, ports: &[Vec<Port>], importer: &Importer) -> u64 {
    let mut wanted: BTreeMap<u16, u64> = BTreeMap::new();
    for (service, ports) in compose.services.iter().zip(ports) {
        let said = match service.count.as_ref().map(|it| it.pieces.as_slice()) {
            Some([Piece::Literal(text)]) => Some(text),
            Some([Piece::Variable(variable)]) => {
                let known = importer.variables.iter().find(|(name, _)| **name == variable.name);
                known.and_then(|(_, it)| it.default.as_ref())
            }
            _ => None,
        };
        let count = said.and_then(|it| it.parse().ok()).unwrap_or(1);
        let own: BTreeSet<u16> = ports.iter().map(|it| it.number).collect();
        own.into_iter().for_each(|port| *wanted.entry(port).or_default() += count);
    }
    wanted.into_values().max().unwrap_or(1).max(1)
}

/// On one machine, a port can be had once.
fn tell_of_ports(compose: &Compose, ports: &[Vec<Port>], with: With, importer: &mut Importer) {
    for (place, service) in compose.services.iter().enumerate() {
        for port in &ports[place] {
            let number = port.number;
            if let Some(published) = &port.published {
                let says = format!("port {number} is not published as {published}: connect to port {number} of its VM");
                importer.remark(port.span, Some(&service.name), says);
            }
            let other = (0..place).find(|other| ports[*other].iter().any(|it| it.number == number));
            let same = other.map(|other| compose.services[other].name.clone());
            let several = service.count.is_some();
            if let Some(other) = same {
                let says = format!(
                    "it listens on port {number}, and so does {other}: put them on different machines (VMs of cloud `local` share one)"
                );
                importer.remark(port.span, Some(&service.name), says);
            } else if several {
                let says = format!(
                    "it listens on port {number}: several of them need a machine each (VMs of cloud `local` share one)"
                );
                importer.remark(port.span, Some(&service.name), says);
            }
        }
        let imageless = with == With::Process && service.command.is_none() && service.entrypoint.is_none();
        if imageless {
            let says = "the command of its image is unknown here: fill in `start`, or import with --with docker";
            importer.remark(service.span, Some(&service.name), says);
        } else if with == With::Process && service.image.is_some() && service.entrypoint.is_none() {
            let says = "its command runs without the image's entrypoint: install what it needs on the machine";
            importer.remark(service.span, Some(&service.name), says);
        }
    }
}

fn variables(written: &[Written], options: &ComposeOptions, importer: &Importer) -> String {
    let mut text = String::new();
    for known in importer
        .variables
        .iter()
        .filter(|(name, it)| !it.secret && written.iter().any(|it| it.variables.contains(*name)))
    {
        let (_, it) = known;
        let default = it.default.as_ref().map(|it| scalar(it));
        text += &match (&default, &it.description) {
            (Some(default), None) => format!("  {}: {default}\n", it.name),
            (Some(default), Some(why)) => {
                format!("  {}: {{ default: {default}, description: {} }}\n", it.name, scalar(why))
            }
            (None, Some(why)) => format!("  {}: {{ type: text, description: {} }}\n", it.name, scalar(why)),
            (None, None) => format!("  {}: {{ type: text }}\n", it.name),
        };
    }
    if written.iter().any(|it| it.in_folder) {
        text += &format!("  {FOLDER}: {}\n", scalar(&options.folder));
    }
    if text.is_empty() { text } else { format!("\nvariables:\n{text}") }
}

fn secrets(written: &[Written], compose: &Compose, importer: &Importer) -> String {
    let mut text = String::new();
    for (name, it) in importer
        .variables
        .iter()
        .filter(|(name, it)| it.secret && written.iter().any(|it| it.variables.contains(*name)))
    {
        text += &format!("  {}: {{ environment: {} }}\n", it.name, scalar(name));
    }
    for (name, source) in &compose.secrets {
        let Some(known) = written.iter().flat_map(|it| &it.secrets).find(|(of, _)| of == name) else { continue };
        let from = match source {
            Source::File(path) => format!("file: {}", scalar(path)),
            Source::Environment(variable) => format!("environment: {}", scalar(variable)),
            Source::Content(_) | Source::Elsewhere => {
                format!("environment: {}", scalar(&known.1.to_uppercase().replace('-', "_")))
            }
        };
        text += &format!("  {}: {{ {from} }}\n", known.1);
    }
    if text.is_empty() { text } else { format!("\nsecrets:\n{text}") }
}

/// What a count is in the application file: a number, or a variable.
pub(super) fn count(service: &Service, importer: &mut Importer) -> (String, Vec<String>) {
    let Some(phrase) = &service.count else { return ("1".into(), Vec::new()) };
    if let [Piece::Variable(variable)] = phrase.pieces.as_slice() {
        let simple = match &variable.otherwise {
            Otherwise::Default(inner) => matches!(inner.as_slice(), [Piece::Literal(_)]),
            Otherwise::Demanded(_) => true,
            Otherwise::Empty | Otherwise::Instead(_) => false,
        };
        if let Some(known) = importer.variables.get(&variable.name).filter(|it| simple && !it.secret) {
            return (format!("\"${{{}}}\"", known.name), vec![variable.name.clone()]);
        }
    }
    let text = interpolation::now(&phrase.pieces, importer);
    match text.trim().parse::<u32>() {
        Ok(number) if number <= 1_000_000 => (number.to_string(), Vec::new()),
        _ => {
            let says = format!("`{}` is not a number of replicas: 1 is used", text.escape_debug());
            importer.remark(phrase.span, Some(&service.name), says);
            ("1".into(), Vec::new())
        }
    }
}
