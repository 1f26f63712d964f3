//! What is done for a service: as a container that is run in the foreground, or as the command itself.

use super::{
    component::{Draft, file_name},
    health::Test,
    interpolation::escaped,
    service::Service,
    words::{duration, list, name, scalar},
};
use std::fmt::Write as _;

/// How long a job, and the making of an image, may take.
const JOB_LIMIT: &str = "1h";

impl Draft<'_> {
    pub(super) fn operations(&mut self) -> String {
        let service = self.writer.service();
        let container = self.writer.in_container();
        let mut text = String::new();
        if container && let Some(build) = &service.build {
            let tag = self.tag();
            let mut words: Vec<String> = vec!["docker".into(), "build".into(), format!("--tag={tag}")];
            let context = self.in_folder(&build.context);
            for (option, phrase) in &build.options {
                let value = self.plain(phrase);
                let inside = *option == "--file" && !value.starts_with('/');
                words.push(if inside { format!("{option}={context}/{value}") } else { format!("{option}={value}") });
            }
            words.push(context);
            let _ = writeln!(text, "      install: {{ run: {}, time-limit: {JOB_LIMIT} }}", list(&words));
        }
        let what = if container {
            "container"
        } else if service.is_job {
            "script"
        } else {
            "process"
        };
        let start = if container { self.container() } else { self.process() };
        if service.is_job && !container {
            let _ = writeln!(text, "      start: {{ {what}: {start}, time-limit: {JOB_LIMIT} }}");
            text += "      stop: { command: \"true\" }\n";
        } else {
            let _ = writeln!(text, "      start: {{ {what}: {start} }}");
        }
        if !service.is_job {
            text += &self.check();
            text += &self.stop();
        }
        text
    }

    fn tag(&mut self) -> String {
        let service = self.writer.service();
        let own =
            format!("{}-{}", self.writer.application, self.writer.names[self.writer.place].component).to_lowercase();
        service.image.as_ref().map_or(own, |image| self.plain(image))
    }

    /// What is run in a container, and what it sees of the machine.
    fn container(&mut self) -> String {
        let service = self.writer.service();
        let mut volumes = Vec::new();
        for volume in &service.volumes {
            let target = self.plain(&volume.target);
            let source = volume.source.as_ref().map(|source| match (volume.relative, volume.named) {
                (true, _) => self.in_folder(source),
                (_, true) => match self.writer.compose.real_name(source) {
                    Some(name) => self.plain(name),
                    None => format!("{}_{}", self.writer.application, self.plain(source)),
                },
                _ => self.plain(source),
            });
            let options = volume.options.as_ref().map(|it| self.plain(it));
            let parts = source.into_iter().chain([target]).chain(options);
            volumes.push(parts.collect::<Vec<_>>().join(":"));
        }
        for (what, mounts) in [("config", &service.configs), ("secret", &service.secrets)] {
            for mount in mounts {
                let path = file_name(what, &mount.source);
                volumes.push(format!("{{{{ directory }}}}/{path}:{}:ro", escaped(&mount.target)));
            }
        }
        let mut options = Vec::new();
        for (option, phrase) in &service.options {
            let value = phrase.as_ref().map_or(String::new(), |it| format!("={}", self.plain(it)));
            options.push(format!("{option}{value}"));
        }
        if let Some(folder) = &service.folder {
            options.push(format!("--workdir={}", self.plain(folder)));
        }
        let mut command = Vec::new();
        if let Some(entrypoint) = &service.entrypoint {
            // Docker takes one word; the others come before the command.
            let mut entry = self.words(entrypoint).into_iter();
            options.push(format!("--entrypoint={}", entry.next().unwrap_or_default()));
            command.extend(entry);
        }
        let image = scalar(&self.tag());
        command.extend(service.command.as_ref().map(|it| self.words(it)).unwrap_or_default());
        let said = [("volumes", volumes), ("options", options), ("command", command)];
        let mut said: Vec<String> =
            said.iter().filter(|(_, it)| !it.is_empty()).map(|(name, it)| format!("{name}: {}", list(it))).collect();
        said.extend(service.is_job.then(|| "job: true".to_owned()));
        if said.is_empty() { image } else { format!("{{ image: {image}, {} }}", said.join(", ")) }
    }

    /// The command itself; or a place to say it.
    fn process(&mut self) -> String {
        let service = self.writer.service();
        let mut words: Vec<String> = Vec::new();
        for said in [&service.entrypoint, &service.command].into_iter().flatten() {
            words.extend(self.words(said));
        }
        if words.is_empty() {
            let says =
                format!("echo 'replace this with the command that starts {}' >&2; exit 1", name(&service.name, 60));
            return scalar(&says);
        }
        // What is built from a folder lies there; it is not built.
        let folder = match (&service.build, &service.folder) {
            (Some(build), _) => Some(self.in_folder(&build.context)),
            (None, Some(folder)) => Some(self.plain(folder)),
            (None, None) => None,
        };
        if let Some(folder) = folder {
            words.splice(0..0, ["env".to_owned(), format!("--chdir={folder}")]);
        }
        list(&words)
    }

    fn check(&mut self) -> String {
        let service = self.writer.service();
        let container = self.writer.in_container();
        let Some(check) = &service.check else { return String::new() };
        let inside = ["docker", "exec", "{{ container }}"].map(str::to_owned);
        let command = match &check.test {
            Test::Shell(phrase) if container => {
                let text = self.template("", phrase);
                list(&inside.into_iter().chain(["sh".into(), "-c".into(), text]).collect::<Vec<_>>())
            }
            Test::Shell(phrase) => scalar(&self.template("", phrase)),
            Test::Words(words) => {
                let words = self.words(words);
                list(&inside.into_iter().filter(|_| container).chain(words).collect::<Vec<_>>())
            }
        };
        let patient = check.interval_ms.saturating_add(check.timeout_ms).saturating_mul(u64::from(check.retries));
        let ready = check.start_period_ms.saturating_add(patient);
        let interval = check.start_interval_ms.filter(|it| *it > 0).unwrap_or(check.interval_ms.min(1_000));
        format!(
            "      check: {{ command: {command}, interval: {}, ready-within: {}, attempt: {}, liveness: {}, failures: {} }}\n",
            duration(interval),
            duration(ready),
            duration(check.timeout_ms),
            duration(check.interval_ms),
            check.retries
        )
    }

    fn stop(&mut self) -> String {
        let Service { grace_ms, signal, .. } = self.writer.service();
        let signal = signal.map(|it| format!("signal: {it}"));
        let grace = grace_ms.map(|it| format!("grace: {}", duration(it)));
        let said: Vec<String> = signal.into_iter().chain(grace).collect();
        if said.is_empty() { String::new() } else { format!("      stop: {{ {} }}\n", said.join(", ")) }
    }
}
