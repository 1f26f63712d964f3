//! A real browser, driven over the WebDriver protocol: Chromium without a window, in a profile of its own.
//!
//! Where Chromium or its driver is missing, tests that need it print that they are skipped, and why.

use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

const CHROMIUM: &str = "/usr/bin/chromium";
const DRIVER: &str = "/usr/bin/chromedriver";
/// A page that is not ready by then will not be.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Browser {
    driver: Child,
    port: u16,
    session: String,
    profile: PathBuf,
}

impl Browser {
    /// A browser with an empty profile below this place; nothing where there is none, which is printed.
    pub(crate) fn open(place: &Path) -> Option<Self> {
        for program in [CHROMIUM, DRIVER] {
            if !Path::new(program).exists() {
                eprintln!("skipped: {program} is missing (cargo xtask packages installs it, as root on Debian)");
                return None;
            }
        }
        let profile = place.join("browser");
        fs::create_dir_all(&profile).unwrap();
        let mut driver = Command::new(DRIVER);
        let mut driver = driver.arg("--port=0").stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines();
        let port = lines.by_ref().find_map(|line| {
            let line = line.unwrap();
            line.strip_suffix('.')?.rsplit_once("successfully on port ")?.1.parse().ok()
        });
        std::thread::spawn(move || lines.for_each(drop));
        let mut browser =
            Self { driver, port: port.expect("the driver says its port"), session: String::new(), profile };
        let arguments = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--hide-scrollbars",
            "--window-size=1440,900",
            &format!("--user-data-dir={}", browser.profile.display()),
        ];
        let capabilities = json!({ "capabilities": { "alwaysMatch": {
            "acceptInsecureCerts": true,
            "timeouts": { "script": PATIENCE.as_millis() },
            "goog:chromeOptions": { "args": arguments, "binary": CHROMIUM },
            "goog:loggingPrefs": { "browser": "ALL" },
        }}});
        let made = browser.request("POST", "/session", &capabilities);
        made["sessionId"].as_str().unwrap().clone_into(&mut browser.session);
        Some(browser)
    }

    pub(crate) fn visit(&self, url: &str) {
        self.command("POST", "/url", &json!({ "url": url }));
    }

    /// Runs a script in the page, and returns what it returns.
    pub(crate) fn run(&self, script: &str) -> Value {
        self.command("POST", "/execute/sync", &json!({ "script": script, "args": [] }))
    }

    /// Waits until an expression is true in the page, looking once per frame.
    #[track_caller]
    pub(crate) fn until(&self, expression: &str) {
        let script = format!(
            "const done = arguments[0]; const look = () => {{ let is; try {{ is = {expression}; }} catch {{ is = false; }} \
             is ? done(true) : setTimeout(look, 16); }}; look();"
        );
        let body = json!({ "script": script, "args": [] });
        let answer = self.raw("POST", &format!("/session/{}/execute/async", self.session), &body);
        if answer["value"] != true {
            let text = self.run("return location.href + '\\n' + document.body.innerText");
            panic!("never true: {expression}\n{answer}\n{}", text.as_str().unwrap_or_default());
        }
    }

    /// Clicks what a selector finds first.
    #[track_caller]
    pub(crate) fn click(&self, selector: &str) {
        let selector = serde_json::to_string(selector).unwrap();
        self.until(&format!("(document.querySelector({selector}) && !document.querySelector({selector}).disabled)"));
        self.run(&format!("document.querySelector({selector}).click()"));
    }

    /// Sends a command of the browser's own protocol.
    pub(crate) fn tell(&self, command: &str, parameters: &Value) -> Value {
        self.command("POST", "/goog/cdp/execute", &json!({ "cmd": command, "params": parameters }))
    }

    pub(crate) fn resize(&self, width: u32, height: u32) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.tell("Emulation.setDeviceMetricsOverride", &size);
    }

    /// Prefers `light` or `dark`.
    pub(crate) fn prefer(&self, scheme: &str) {
        let features = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.tell("Emulation.setEmulatedMedia", &features);
    }

    /// Everything that the page and the browser complained of, besides answers with a status that the test expects.
    pub(crate) fn complaints(&self, expected: &[&str]) -> Vec<String> {
        let entries = self.command("POST", "/se/log", &json!({ "type": "browser" }));
        let entries = entries.as_array().cloned().unwrap_or_default();
        let bad = entries.iter().filter(|it| matches!(it["level"].as_str(), Some("SEVERE" | "WARNING")));
        let texts = bad.filter_map(|it| it["message"].as_str().map(str::to_owned));
        texts.filter(|text| !expected.iter().any(|it| text.contains(it))).collect()
    }

    #[track_caller]
    fn command(&self, method: &str, path: &str, body: &Value) -> Value {
        self.request(method, &format!("/session/{}{path}", self.session), body)
    }

    #[track_caller]
    fn request(&self, method: &str, path: &str, body: &Value) -> Value {
        let answer = self.raw(method, path, body);
        let value = &answer["value"];
        assert!(value.get("error").is_none() || value.get("stacktrace").is_none(), "{method} {path} {body}: {value:#}");
        value.clone()
    }

    /// One request to the driver. It closes the connection afterwards, so the answer ends where the stream does.
    fn raw(&self, method: &str, path: &str, body: &Value) -> Value {
        let body = body.to_string();
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body.as_bytes()).unwrap();
        let mut reader = BufReader::new(stream);
        let mut length = None;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            let line = line.trim();
            if line.is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().ok();
            }
        }
        let mut bytes = vec![0; length.expect("the driver says how long its answer is")];
        reader.read_exact(&mut bytes).unwrap();
        serde_json::from_slice(&bytes).unwrap()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if !self.session.is_empty() && !std::thread::panicking() {
            self.raw("DELETE", &format!("/session/{}", self.session), &json!({}));
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
        // A browser whose driver was killed is found by its profile.
        for pid in crate::site::processes_of(&self.profile, None) {
            let _ = Command::new("kill").args(["-9", &pid.to_string()]).status();
        }
        let _ = fs::remove_dir_all(&self.profile);
    }
}
