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
/// Between the end of the grace and the end of patience, in seconds.
const STOP_MORE_S: u64 = 20;
const GRACE_MS: u64 = 10_000;

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
        let start = if container { list(&self.docker_run()) } else { self.process() };
        if container {
            let remove = "docker rm --force {{ container }} > /dev/null 2>&1 || true";
            let _ = writeln!(text, "      configure: {}", scalar(remove));
        }
        if service.is_job {
            let _ = writeln!(text, "      start: {{ script: {start}, time-limit: {JOB_LIMIT} }}");
            text += "      stop: { command: \"true\" }\n";
        } else {
            let _ = writeln!(text, "      start: {{ process: {start} }}");
            text += &self.check();
            text += &self.stop();
        }
        if container {
            text += "      purge: \"docker rm --force --volumes {{ container }} > /dev/null 2>&1 || true\"\n";
        }
        text
    }

    fn tag(&mut self) -> String {
        let service = self.writer.service();
        let own =
            format!("{}-{}", self.writer.application, self.writer.names[self.writer.place].component).to_lowercase();
        service.image.as_ref().map_or(own, |image| self.plain(image))
    }

    fn docker_run(&mut self) -> Vec<String> {
        let service = self.writer.service();
        let mut words: Vec<String> =
            ["docker", "run", "--rm", "--name={{ container }}", "--network=host"].map(str::to_owned).into();
        words.extend(service.environment.iter().map(|(name, _)| format!("--env={name}")));
        for volume in &service.volumes {
            let target = self.plain(&volume.target);
            let source = volume.source.as_ref().map(|source| match (volume.relative, volume.named) {
                (true, _) => self.in_folder(source),
                (_, true) => format!("{}_{}", self.writer.application, self.plain(source)),
                _ => self.plain(source),
            });
            let options = volume.options.as_ref().map(|it| self.plain(it));
            let parts = source.into_iter().chain([target]).chain(options);
            words.push(format!("--volume={}", parts.collect::<Vec<_>>().join(":")));
        }
        for (what, mounts) in [("config", &service.configs), ("secret", &service.secrets)] {
            for mount in mounts {
                let path = file_name(what, &mount.source);
                words.push(format!("--volume={{{{ directory }}}}/{path}:{}:ro", escaped(&mount.target)));
            }
        }
        for (option, phrase) in &service.options {
            let value = phrase.as_ref().map_or(String::new(), |it| format!("={}", self.plain(it)));
            words.push(format!("{option}{value}"));
        }
        if let Some(folder) = &service.folder {
            words.push(format!("--workdir={}", self.plain(folder)));
        }
        let mut rest = Vec::new();
        if let Some(entrypoint) = &service.entrypoint {
            // Docker takes one word; the others come before the command.
            let mut entry = self.words(entrypoint).into_iter();
            words.push(format!("--entrypoint={}", entry.next().unwrap_or_default()));
            rest.extend(entry);
        }
        words.push(self.tag());
        words.extend(rest);
        let command = service.command.as_ref().map(|it| self.words(it)).unwrap_or_default();
        words.extend(command);
        words
    }

    /// The command itself; or a place to say it.
    fn process(&mut self) -> String {
        let service = self.writer.service();
        let mut words: Vec<String> = Vec::new();
        for said in [&service.entrypoint, &service.command].into_iter().flatten() {
            words.extend(self.words(said));
        }
        if words.is_empty() {
            let says = format!("echo 'say here how {} is started' >&2; exit 1", name(&service.name, 60));
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
        if self.writer.in_container() {
            let seconds = grace_ms.unwrap_or(GRACE_MS).div_ceil(1_000);
            let mut words: Vec<String> = vec!["docker".into(), "stop".into()];
            words.extend(signal.map(|it| format!("--signal={it}")));
            words.extend([format!("--time={seconds}"), "{{ container }}".into()]);
            let limit = seconds.saturating_add(STOP_MORE_S);
            return format!("      stop: {{ command: {}, time-limit: {limit}s }}\n", list(&words));
        }
        let signal = signal.map(|it| format!("signal: {it}"));
        let grace = grace_ms.map(|it| format!("grace: {}", duration(it)));
        let said: Vec<String> = signal.into_iter().chain(grace).collect();
        if said.is_empty() { String::new() } else { format!("      stop: {{ {} }}\n", said.join(", ")) }
    }
}
