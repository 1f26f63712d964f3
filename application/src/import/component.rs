//! One service as a type and a group of components.

use super::{
    Importer, Phrase, With,
    compose::{Compose, Source},
    health::Test,
    hosts,
    interpolation::{self, Piece, Variables, escaped},
    service::{Port, Service},
    words::{name, scalar},
    write::{self, FOLDER, Names},
};
use std::fmt::Write as _;

/// What one service became.
#[derive(Debug, Default)]
pub(super) struct Written {
    /// The fields of its type.
    pub(super) type_lines: String,
    /// Its entry under `components`.
    pub(super) component: String,
    /// The variables it uses, by the names that compose knows.
    pub(super) variables: Vec<String>,
    /// The secrets it uses: the name that compose knows, and the one here.
    pub(super) secrets: Vec<(String, String)>,
    /// Whether it speaks of the folder of the compose file.
    pub(super) in_folder: bool,
}

/// What is known while one service is written.
pub(super) struct Writer<'a> {
    pub(super) compose: &'a Compose,
    pub(super) with: With,
    pub(super) application: &'a str,
    pub(super) names: &'a [Names],
    pub(super) ports: &'a [Vec<Port>],
    /// Which service it is.
    pub(super) place: usize,
}

/// All phrases of a service that may name another service as a host, each with what stands before it.
pub(super) fn phrases<'a>(compose: &'a Compose, service: &'a Service) -> Vec<(String, &'a Phrase)> {
    let mut all: Vec<(String, &Phrase)> =
        service.environment.iter().map(|(name, phrase)| (name.clone(), phrase)).collect();
    for words in [&service.entrypoint, &service.command].into_iter().flatten() {
        all.extend(after_each_other(words));
    }
    match service.check.as_ref().map(|it| &it.test) {
        Some(Test::Shell(phrase)) => all.push((String::new(), phrase)),
        Some(Test::Words(words)) => all.extend(after_each_other(words)),
        None => {}
    }
    for mount in &service.configs {
        if let Some(Source::Content(phrase)) = compose.configs.get(&mount.source) {
            all.push((String::new(), phrase));
        }
    }
    all
}

pub(super) fn after_each_other(words: &[Phrase]) -> Vec<(String, &Phrase)> {
    let text = |phrase: &Phrase| match phrase.pieces.as_slice() {
        [Piece::Literal(text)] => text.clone(),
        _ => String::new(),
    };
    let before = std::iter::once(String::new()).chain(words.iter().map(text));
    before.zip(words).collect()
}

impl Writer<'_> {
    pub(super) fn service(&self) -> &Service {
        &self.compose.services[self.place]
    }

    pub(super) fn in_container(&self) -> bool {
        let service = self.service();
        self.with == With::Docker && (service.image.is_some() || service.build.is_some())
    }

    pub(super) fn written(&self, importer: &mut Importer) -> Written {
        let service = self.service();
        let (count, of_count) = self.count(importer);
        let mut draft = Draft {
            writer: self,
            variables: &std::mem::take(&mut importer.variables),
            written: Written::default(),
            mentioned: Vec::new(),
        };
        let environment: Vec<(String, String)> =
            service.environment.iter().map(|(name, it)| (name.clone(), draft.template(name, it))).collect();
        let files = draft.files(importer);
        let operations = draft.operations();
        let Draft { mut written, mentioned, variables, .. } = draft;
        let parameters = self.parameters(&written, variables);
        let mut text = String::new();
        if !parameters.is_empty() {
            let types: Vec<String> =
                parameters.iter().map(|(name, value_type, _)| format!("{name}: {{ type: {value_type} }}")).collect();
            let _ = writeln!(text, "    parameters: {{ {} }}", types.join(", "));
        }
        let imports = self.imports(&mentioned);
        if !imports.is_empty() {
            let _ = writeln!(text, "    imports: {{ {} }}", imports.join(", "));
        }
        let ports = &self.ports[self.place];
        let handed: Vec<String> = (0..ports.len()).map(|it| format!(", {}: port", port_name(ports, it))).collect();
        let values = if handed.is_empty() {
            "[host]".to_owned()
        } else {
            format!("{{ values: {{ host: text{} }} }}", handed.concat())
        };
        let _ = writeln!(text, "    exports: {{ {}: {values} }}", self.names[self.place].component);
        let values: Vec<String> = ports
            .iter()
            .enumerate()
            .map(|(place, it)| format!("{}: \"{}\"", port_name(ports, place), it.number))
            .collect();
        if !values.is_empty() {
            let _ = writeln!(text, "    values: {{ {} }}", values.join(", "));
        }
        if !environment.is_empty() {
            text += "    environment:\n";
            environment.iter().for_each(|(name, it)| text += &format!("      {}: {}\n", scalar(name), scalar(it)));
        }
        if !files.is_empty() {
            text += &format!("    files:\n{files}");
        }
        text += &format!("    operations:\n{operations}");
        if let Some(retries) = service.retries.map(|it| it.min(1_000_000)) {
            let _ = writeln!(text, "    patience: {{ run: {{ retries: {retries} }} }}");
        }
        written.type_lines = text;
        let mut fields = vec![format!("type: {}", self.names[self.place].kind), "on: machine".into()];
        if count != "1" {
            fields.push(format!("count: {count}"));
        }
        if !parameters.is_empty() {
            let given: Vec<String> = parameters.iter().map(|(name, _, value)| format!("{name}: {value}")).collect();
            fields.push(format!("parameters: {{ {} }}", given.join(", ")));
        }
        written.component = format!("{{ {} }}", fields.join(", "));
        importer.variables = variables.clone();
        written.variables.extend(of_count);
        written
    }

    /// How many there are: of what is there only on demand, none, unless others need it.
    fn count(&self, importer: &mut Importer) -> (String, Vec<String>) {
        let service = self.service();
        let names: Vec<&str> = self.compose.services.iter().map(|it| it.name.as_str()).collect();
        let named = |other: &Service| {
            phrases(self.compose, other).iter().any(|(before, phrase)| {
                let texts =
                    phrase.pieces.iter().filter_map(|it| if let Piece::Literal(it) = it { Some(it) } else { None });
                texts.flat_map(|it| hosts::mentions(before, it, &names)).any(|it| it.service == self.place)
            })
        };
        let wanted = |other: &Service| {
            other.name != service.name && (other.needs.iter().any(|it| it.service == service.name) || named(other))
        };
        if service.is_optional && !self.compose.services.iter().any(wanted) {
            return ("0".into(), Vec::new());
        }
        write::count(service, importer)
    }

    /// Name, type and value of each parameter.
    fn parameters(&self, written: &Written, variables: &Variables) -> Vec<(String, &'static str, String)> {
        let mut parameters = Vec::new();
        for known in written.variables.iter().filter_map(|it| variables.get(it)) {
            let name = &known.name;
            parameters.push(if known.secret {
                (name.clone(), "secret", format!("{{ secret: {name} }}"))
            } else {
                (name.clone(), "text", format!("\"${{{name}}}\""))
            });
        }
        for (_, name) in &written.secrets {
            parameters.push((name.clone(), "secret", format!("{{ secret: {name} }}")));
        }
        if written.in_folder {
            parameters.push((FOLDER.into(), "text", format!("\"${{{FOLDER}}}\"")));
        }
        parameters
    }

    /// A required service is a strong import; one that is only named need not run, but its address must be known.
    fn imports(&self, mentioned: &[usize]) -> Vec<String> {
        let service = self.service();
        let mut imports = Vec::new();
        for (place, other) in self.compose.services.iter().enumerate() {
            let Names { component, import, .. } = &self.names[place];
            let need = service.needs.iter().find(|it| it.service == other.name);
            let named = mentioned.contains(&place);
            match need {
                Some(need) if need.required => imports.push(format!("{import}: {component}")),
                _ if named => imports.push(format!("{import}: {{ export: {component}, value: 1 }}")),
                Some(_) => imports.push(format!("{import}: {{ export: {component}, weak: 0 }}")),
                None => {}
            }
        }
        imports
    }
}

/// The first port is `port`; every other carries its number.
fn port_name(ports: &[Port], place: usize) -> String {
    if place == 0 { "port".into() } else { format!("port_{}", ports[place].number) }
}

/// A service while it is written: what it turned out to use.
pub(super) struct Draft<'a> {
    pub(super) writer: &'a Writer<'a>,
    variables: &'a Variables,
    written: Written,
    /// The services that it names as hosts.
    mentioned: Vec<usize>,
}

impl Draft<'_> {
    /// A phrase as a template: variables are parameters, other services are imports, and files are where they are here.
    pub(super) fn template(&mut self, before: &str, phrase: &Phrase) -> String {
        let Self { writer, variables, written, mentioned } = self;
        let mut literal = |text: &str| literal(writer, before, text, mentioned);
        interpolation::template(&phrase.pieces, variables, &mut written.variables, &mut literal)
    }

    /// The same for a text that names no service, such as an image.
    pub(super) fn plain(&mut self, phrase: &Phrase) -> String {
        let Self { variables, written, .. } = self;
        interpolation::template(&phrase.pieces, variables, &mut written.variables, &mut escaped)
    }

    pub(super) fn words(&mut self, words: &[Phrase]) -> Vec<String> {
        after_each_other(words).into_iter().map(|(before, word)| self.template(&before, word)).collect()
    }

    /// A path beside the compose file.
    pub(super) fn in_folder(&mut self, phrase: &Phrase) -> String {
        let text = self.plain(phrase);
        if text.starts_with('/') || text.contains("://") || text.starts_with("git@") {
            return text;
        }
        self.written.in_folder = true;
        let folder = format!("{{{{ parameters.{FOLDER} }}}}");
        match text.strip_prefix("./").unwrap_or(&text) {
            "." | "" => folder,
            inside => format!("{folder}/{inside}"),
        }
    }

    /// Configs and secrets, as files of the component.
    fn files(&mut self, importer: &mut Importer) -> String {
        let service = self.writer.service();
        let mut text = String::new();
        for mount in &service.secrets {
            let known = self.written.secrets.iter().find(|(of, _)| *of == mount.source).map(|(_, it)| it.clone());
            let parameter = known.unwrap_or_else(|| {
                let taken = |it: &str| self.variables.values().any(|known| known.name == it);
                let parameter = write::unique(name(&mount.source, 26).replace('-', "_"), &taken);
                self.written.secrets.push((mount.source.clone(), parameter.clone()));
                parameter
            });
            if let Some(Source::Elsewhere | Source::Content(_)) = self.writer.compose.secrets.get(&mount.source) {
                let says =
                    format!("the secret {parameter} is read from the environment of the user who applies the file");
                importer.remark(mount.span, Some(&service.name), says);
            }
            let path = file_name("secret", &mount.source);
            let template = format!("{{{{ parameters.{parameter} }}}}");
            let mode = mount.mode.as_deref().unwrap_or("0600");
            text += &format!("      {path}: {{ template: {}, mode: \"{mode}\" }}\n", scalar(&template));
        }
        for mount in &service.configs {
            let template = match self.writer.compose.configs.get(&mount.source) {
                Some(Source::Content(phrase)) => self.template("", phrase),
                Some(Source::Environment(variable)) => {
                    let phrase = Phrase { pieces: Vec::new(), span: mount.span };
                    let says = format!("the config {} is empty: its variable {variable} is not read", mount.source);
                    importer.remark(mount.span, Some(&service.name), says);
                    self.plain(&phrase)
                }
                Some(Source::File(path)) => {
                    let says = format!("the config {} is empty: {path} cannot be read", mount.source);
                    importer.remark(mount.span, Some(&service.name), says);
                    String::new()
                }
                Some(Source::Elsewhere) | None => {
                    let says = format!("the config {} is empty: it is external", mount.source);
                    importer.remark(mount.span, Some(&service.name), says);
                    String::new()
                }
            };
            let name = file_name("config", &mount.source);
            text += &match &mount.mode {
                Some(mode) => format!("      {name}: {{ template: {}, mode: \"{mode}\" }}\n", scalar(&template)),
                None => format!("      {name}: {}\n", block(&template)),
            };
        }
        text
    }
}

pub(super) fn file_name(what: &str, source: &str) -> String {
    format!("{what}-{}", name(source, 60))
}

/// A text over several lines where it can be one, else in quotes.
fn block(text: &str) -> String {
    let plain = text
        .chars()
        .all(|it| it == '\n' || (!it.is_control() && !('\u{2028}'..='\u{2029}').contains(&it) && it != '\u{feff}'));
    let even = text.lines().all(|line| !line.ends_with(char::is_whitespace)) && !text.starts_with([' ', '\n']);
    let ended = text.ends_with('\n') && !text.ends_with("\n\n");
    if !(plain && even && ended && text.len() > 1) {
        return scalar(text);
    }
    let lines: Vec<String> =
        text.lines().map(|line| if line.is_empty() { String::new() } else { format!("        {line}") }).collect();
    format!("|\n{}", lines.join("\n"))
}

/// A literal of a phrase as a part of a template.
fn literal(writer: &Writer<'_>, before: &str, text: &str, mentioned: &mut Vec<usize>) -> String {
    let services = &writer.compose.services;
    let names: Vec<&str> = services.iter().map(|it| it.name.as_str()).collect();
    let mut places: Vec<(usize, usize, String)> = Vec::new();
    for mention in hosts::mentions(before, text, &names) {
        let own = mention.service == writer.place;
        if !own && !mentioned.contains(&mention.service) {
            mentioned.push(mention.service);
        }
        let import = format!("imports.{}[0]", writer.names[mention.service].import);
        let mut expression = if own { "{{ host }}".to_owned() } else { format!("{{{{ {import}.host }}}}") };
        if let Some(port) = mention.port {
            let ports = &writer.ports[mention.service];
            let value = ports.iter().position(|it| it.number == port).map(|place| port_name(ports, place));
            expression += &match value {
                Some(value) if own => format!(":{{{{ {value} }}}}"),
                Some(value) => format!(":{{{{ {import}.{value} }}}}"),
                None => format!(":{port}"),
            };
        }
        places.push((mention.start, mention.end, expression));
    }
    // A process finds its files in its own directory.
    let service = &services[writer.place];
    let mounts = [("config", &service.configs), ("secret", &service.secrets)];
    for (what, mount) in mounts.iter().flat_map(|(what, them)| them.iter().map(move |it| (what, it))) {
        if writer.in_container() || mount.target.len() < 2 {
            continue;
        }
        for (start, found) in text.match_indices(&mount.target) {
            let path = format!("{{{{ directory }}}}/{}", file_name(what, &mount.source));
            places.push((start, start + found.len(), path));
        }
    }
    places.sort();
    let mut done = String::new();
    let mut at = 0;
    for (start, end, expression) in places {
        if start >= at {
            done += &escaped(&text[at..start]);
            done += &expression;
            at = end;
        }
    }
    done + &escaped(&text[at..])
}
