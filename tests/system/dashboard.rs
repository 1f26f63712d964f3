//! The dashboard in a real browser, against a real manager with real agents.

use crate::browser::Browser;
use crate::site::{Site, until};
use cloud_manager::access::Access;
use cloud_manager::document::{NewToken, OperatorToken, Role};
use serde_json::{Value, json};
use std::{fs, path::Path};

const THREE_TIER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/applications/three-tier.yaml");
const IS_LIVE: &str = "document.querySelector('#connection').dataset.connection === 'live'";

/// A site with a browser that is logged in; nothing where there is no browser.
fn open(name: &str) -> Option<(Site, Browser, String)> {
    let site = Site::open(name);
    let browser = Browser::open(&site.place)?;
    let url = log_in(&site, &browser, &site.data().join("access.json"));
    Some((site, browser, url))
}

/// Follows a link as `holdfast dashboard` prints it.
fn log_in(site: &Site, browser: &Browser, access: &Path) -> String {
    let link = site.done(&["dashboard", "--no-open", "--access", access.to_str().unwrap()]);
    browser.visit(link.trim());
    browser.until(&format!("location.pathname === '/' && {IS_LIVE}"));
    link.split("/login").next().unwrap().to_owned()
}

fn number(browser: &Browser, script: &str) -> u64 {
    browser.run(&format!("return {script}")).as_u64().unwrap_or_else(|| panic!("{script} is no number"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deployment_goes_green_and_its_change_is_shown_and_replayed() {
    let Some((site, browser, url)) = open("dashboard") else { return };
    browser.until("document.body.innerText.includes('Nothing is deployed yet')");
    site.done(&["apply", THREE_TIER, "--yes"]);
    browser.until("document.querySelector('.headline').innerText.includes('all 5 components started')");
    browser.until("document.querySelectorAll('.card').length === 1");
    // By keyboard and link, without loading the page anew.
    browser.run("window.stays = true; document.querySelector('.card').click()");
    browser.until("location.pathname === '/applications/shop'");
    browser.until("document.querySelectorAll('.picture .row.state-started').length === 5");
    assert_eq!(number(&browser, "document.querySelectorAll('.picture .box').length"), 3);
    browser.until("document.querySelectorAll('.arrows path.held').length >= 4");
    assert_eq!(number(&browser, "document.querySelectorAll('.world .arrows path.weak').length"), 2);
    // The picture stands still while states change, and shows them.
    let places = "return JSON.stringify([...document.querySelectorAll('.box, .row')].map((it) => it.style.transform))";
    let before = browser.run(places);
    browser.run(
        "window.seen = new Set(); new MutationObserver(() => document.querySelectorAll('.row').forEach((it) => \
         seen.add(it.getAttribute('class')))).observe(document.querySelector('.boxes'), { subtree: true, attributes: true })",
    );
    site.done(&["component", "restart", "shop/mysql[0]"]);
    browser.until(
        "[...seen].some((it) => it.includes('state-stop')) && [...seen].some((it) => it.includes('state-starting'))",
    );
    browser.until("document.querySelectorAll('.picture .row.state-started').length === 5");
    assert_eq!(browser.run(places), before);
    assert_eq!(browser.run("return window.stays"), true);

    browser.visit(&format!("{url}/changes/2"));
    browser.until("document.querySelectorAll('.timeline .bar').length >= 6");
    browser.until("document.querySelectorAll('.timeline .bar.critical').length >= 1");
    browser.until("document.querySelectorAll('.timeline .waiting').length >= 2");
    browser.until("[...document.querySelectorAll('.letter-words')].some((it) => it.textContent.startsWith('recall'))");
    // In the middle of it, something that is started now was not.
    let slide = |value: u32| {
        format!(
            "const it = document.querySelector('.slider'); it.value = {value}; it.dispatchEvent(new Event('input'))"
        )
    };
    let states = "return [...document.querySelectorAll('.picture .row')].map((it) => it.getAttribute('class')).join()";
    browser.run(&slide(0));
    let first = browser.run(states);
    let differs = (1..10).any(|tenth| {
        browser.run(&slide(tenth * 100));
        browser.run(states) != first
    });
    assert!(differs, "the picture never changes: {first}");
    browser.run(&slide(1000));
    browser.until("document.querySelectorAll('.picture .row.state-started').length === 5");
    browser.click(".play");
    browser.until("document.querySelector('.play').textContent === 'Pause'");
    browser.until("document.querySelector('.play').textContent === 'Replay'");
    assert_eq!(browser.complaints(&[]), [""; 0]);
}

/// One component that is ready once a file is there; and one that needs it.
fn gated(gate: &Path) -> String {
    format!(
        r#"holdfast: 1
application: a
types:
  Slow:
    exports: {{ it: {{ values: [host] }} }}
    operations:
      start: {{ process: "echo beginning; exec sleep 100000" }}
      check: {{ command: "test -e {} || {{ echo no gate; exit 3; }}", interval: 50ms, ready-within: 300ms }}
    patience: {{ start: {{ retries: 0 }} }}
  User:
    imports: {{ it: it }}
    operations: {{ start: {{ process: "exec sleep 100000" }} }}
vms: {{ v: {{ cloud: local }} }}
components: {{ slow: {{ type: Slow }}, user: {{ type: User }} }}
"#,
        gate.display()
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_is_planned_and_applied_and_what_fails_is_retried_by_button() {
    let Some((site, browser, url)) = open("dashboard-plan") else { return };
    let gate = site.place.join("gate");
    browser.visit(&format!("{url}/plan"));
    let paste = |text: &str| {
        let text = serde_json::to_string(text).unwrap();
        browser.until("document.querySelector('textarea')");
        browser.run(&format!("document.querySelector('textarea').value = {text}"));
        browser.click("[data-act=plan]");
    };
    paste(&gated(&gate).replace("type: User", "type: Usr"));
    browser.until("document.querySelector('.place .output').textContent.includes('^^^')");
    browser.until("document.querySelector('.place').textContent.includes('did you mean `User`')");
    paste(&gated(&gate));
    browser.until("document.querySelectorAll('.difference.added').length === 4");
    browser.until("document.querySelector('.before-after').naturalWidth > 100");
    browser.click("[data-act=apply]");
    browser.until("document.querySelector('dialog').textContent.includes('2 starts, 0 stops')");
    browser.click("dialog button.primary");
    browser.until("location.pathname === '/changes/1'");
    // It fails, says so on every page, and waits.
    browser.until("document.querySelector('.problem').textContent.includes('no gate')");
    browser.visit(&format!("{url}/attention"));
    browser.until("document.querySelector('.problem').textContent.includes('Change 1 waits until you act')");
    browser.until("document.querySelector('.badge').textContent.startsWith('1')");
    fs::write(&gate, "").unwrap();
    browser.click("[data-act='retry a/slow[0]']");
    browser.until("document.querySelector('dialog').textContent.includes('carries out start again')");
    browser.click("dialog button.primary");
    browser.until("document.body.innerText.includes('Nothing needs you')");
    browser.visit(&format!("{url}/components/a%2Fuser%5B0%5D"));
    browser.until("document.querySelector('.page-head .pill').textContent === 'started'");
    browser.visit(&format!("{url}/components/a%2Fslow%5B0%5D"));
    browser.until("document.querySelector('.log').textContent.includes('beginning')");
    assert_eq!(browser.complaints(&["status of 422"]), [""; 0]);
}

/// Sends a request from the page, as a script there would, and says the status.
fn status(browser: &Browser, method: &str, path: &str, csrf: bool) -> u64 {
    let script = format!(
        "const done = arguments[0]; (async () => {{ const {{ csrf }} = await (await fetch('/dashboard/session')).json(); \
         const headers = {{ 'content-type': 'application/json', ...({csrf} ? {{ 'x-holdfast-csrf': csrf }} : {{}}) }}; \
         window.status = (await fetch('{path}', {{ method: '{method}', headers, body: '{{}}' }})).status; window.answered = true; }})()"
    );
    browser.run(&format!("window.answered = false; {}", script.replace("const done = arguments[0]; ", "")));
    browser.until("window.answered");
    number(browser, "Number(window.status)")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_looks_and_is_refused_and_so_is_a_request_from_elsewhere() {
    let Some((site, browser, url)) = open("dashboard-reader") else { return };
    site.done(&["apply", THREE_TIER, "--yes"]);
    // An operator's request without the session's header may come from another site.
    let restart = "/v1/components/shop%2Fmysql%5B0%5D/retry";
    assert_eq!(status(&browser, "POST", restart, false), 403);
    assert_eq!(status(&browser, "POST", restart, true), 409);
    let link = site.done(&["dashboard", "--no-open"]);
    let token: OperatorToken =
        site.client.post("/v1/tokens", &NewToken { name: "colleague".into(), role: Role::Read }).await.unwrap();
    let access = Access::read(&site.data().join("access.json")).unwrap();
    let reader = site.place.join("reader.json");
    Access { token: token.text, ..access }.write(&reader).unwrap();
    browser.tell("Network.clearBrowserCookies", &json!({}));
    browser.visit(&url);
    browser.until("document.querySelector('.gate').textContent.includes('holdfast dashboard')");
    log_in(&site, &browser, &reader);
    browser.until("document.querySelector('.who-name').textContent === 'may look'");
    browser.visit(&format!("{url}/machines/shop%2Fback%5B0%5D"));
    browser.until("document.querySelector('[data-act=lost]').disabled");
    assert_eq!(status(&browser, "POST", "/v1/vms/shop%2Fback%5B0%5D/lost", true), 403);
    browser.visit(&format!("{url}/plan"));
    browser.until("document.querySelector('[data-act=plan]').disabled");
    // A link is good once, and a session ends with its token.
    browser.visit(link.trim());
    browser.until("location.pathname === '/'");
    browser.visit("about:blank");
    browser.visit(link.trim());
    browser.until("document.querySelector('.gate-reason').textContent.includes('used before')");
    let expected = ["status of 403", "status of 409", "status of 401"];
    assert_eq!(browser.complaints(&expected), [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_survives_a_restart_of_the_manager() {
    let Some((mut site, browser, url)) = open("dashboard-restart") else { return };
    site.done(&["apply", THREE_TIER, "--yes"]);
    browser.visit(&format!("{url}/applications/shop"));
    browser.until("document.querySelectorAll('.picture .row.state-started').length === 5");
    browser.run("window.stays = true");
    site.kill_manager();
    browser.until("document.querySelector('#connection').dataset.connection === 'lost'");
    browser.until("!document.querySelector('#banner').hidden");
    site.restart_manager();
    browser.until(IS_LIVE);
    browser.until("document.querySelector('#banner').hidden");
    // The session goes on, and so do the events.
    site.done(&["scale", "object-cache=0", "--yes"]);
    browser.until("document.querySelectorAll('.picture .row').length === 4");
    assert_eq!(browser.run("return window.stays"), true);
    let lost = ["ERR_CONNECTION", "ERR_INCOMPLETE", "ERR_EMPTY"];
    assert_eq!(browser.complaints(&lost), [""; 0]);
}

/// A thousand components on a hundred VMs whose agents have not come, and one VM where things really happen.
const THOUSAND: &str = r#"holdfast: 1
application: big
types:
  Database:
    exports: { sql: { values: [host] } }
    operations: { start: { process: "exec sleep 100000" } }
  App:
    imports: { db: { export: sql } }
    exports: { http: { values: [host] } }
    operations: { start: { process: "exec sleep 100000" } }
  Web:
    imports: { app: { export: http } }
    operations: { start: { process: "exec sleep 100000" } }
vms:
  data: { count: 10 }
  app: { count: 50 }
  web: { count: 40 }
components:
  database: { type: Database, on: data, count: 100 }
  app: { type: App, on: app, count: 500 }
  web: { type: Web, on: web, count: 400 }
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_components_are_collapsed_found_and_opened() {
    let Some((site, browser, url)) = open("dashboard-thousand") else { return };
    fs::write(site.place.join("big.yaml"), THOUSAND).unwrap();
    site.done(&["apply", "big.yaml", "--yes", "--no-wait"]);
    browser.visit(&format!("{url}/applications/big"));
    browser.until("document.querySelectorAll('.picture .box.grouped').length === 3");
    browser.until("document.querySelector('.headline').textContent.includes('1,000 components')");
    let type_in = "const it = document.querySelector('.picture-tools input'); it.value = 'app[123]'; \
                   it.dispatchEvent(new Event('input')); it.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter' }))";
    browser.run(type_in);
    browser.until("document.querySelectorAll('.picture .box').length === 52");
    browser.until("[...document.querySelectorAll('.row.stands-out')].some((it) => it.dataset.id === 'big/app[123]')");
    browser.run("document.querySelector('.tool.wide').click()");
    browser.until("document.querySelectorAll('.picture .box').length === 3");
    assert_eq!(browser.complaints(&[]), [""; 0]);
    measure(&site, &browser, &url).await;
}

/// Prints how long a thousand components take to appear, and a state change to its pixel. Nothing is asserted: it depends on
/// the machine. docs/BENCHMARKS.md has numbers.
async fn measure(site: &Site, browser: &Browser, url: &str) {
    let mut useful: Vec<f64> = Vec::new();
    let mut bytes = 0;
    for _ in 0..7 {
        browser.visit(&format!("{url}/applications/big"));
        browser.until("performance.getEntriesByName('useful').length");
        useful.push(browser.run("return performance.getEntriesByName('useful')[0].startTime").as_f64().unwrap());
        bytes = number(
            browser,
            "performance.getEntriesByType('resource').concat(performance.getEntriesByType('navigation')).reduce((sum, it) => sum + it.transferSize, 0)",
        );
    }
    useful.sort_by(f64::total_cmp);
    site.done(&["vm", "add", "here", "--cloud", "local"]);
    site.done(&["component", "add", "flip", "--on", "here", "--start", "exec sleep 1000"]);
    browser.visit(&format!("{url}/components/flip"));
    browser.until("document.querySelector('.page-head .pill').textContent === 'started'");
    browser.run(
        "window.seen = []; const head = document.querySelector('.page-head'); \
         new MutationObserver(() => { const word = head.querySelector('.pill')?.textContent; \
         if (word && word !== window.seen.at(-1)?.[0]) { const entry = [word, 0]; window.seen.push(entry); \
         requestAnimationFrame(() => setTimeout(() => { entry[1] = Date.now(); })); } }).observe(head, { subtree: true, childList: true })",
    );
    let mut delays: Vec<f64> = Vec::new();
    for _ in 0..10 {
        browser.run("window.seen.length = 0");
        let after = site.status().await.newest_event;
        site.done(&["component", "restart", "flip"]);
        browser.until("window.seen.at(-1)?.[0] === 'started' && window.seen.every((it) => it[1])");
        let told = site.events_since(after).await;
        let seen = browser.run("return window.seen");
        // A state that was over within one frame was never shown.
        for entry in seen.as_array().unwrap() {
            let fits = |state: &str| told.iter().find(|it| it.state.is_some_and(|it| it.to_string() == state));
            let Some(event) = entry[0].as_str().and_then(fits) else { continue };
            delays.push(entry[1].as_f64().unwrap() - event.at_ms as f64);
        }
    }
    delays.sort_by(f64::total_cmp);
    let at = |values: &[f64], share: usize| values[(values.len() - 1) * share / 100];
    eprintln!(
        "1,000 components on 100 VMs: {bytes} bytes; first useful paint: median {:.0} ms, worst of {} {:.0} ms; \
         from a state change to its pixel: median {:.0} ms, p99 {:.0} ms of {}",
        at(&useful, 50),
        useful.len(),
        at(&useful, 100),
        at(&delays, 50),
        at(&delays, 99),
        delays.len()
    );
}

/// The pages that docs/ shows, and their names there.
const PAGES: [(&str, &str); 7] = [
    ("overview", "/"),
    ("application", "/applications/shop"),
    ("change", "/changes/2"),
    ("component", "/components/shop%2Ftomcat%5B0%5D"),
    ("machine", "/machines/shop%2Ffront%5B0%5D"),
    ("attention", "/attention"),
    ("plan", "/plan?application=shop"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_page_fits_every_screen_in_light_and_dark() {
    let Some((site, browser, url)) = open("dashboard-screens") else { return };
    site.done(&["apply", THREE_TIER, "--yes"]);
    site.done(&["component", "restart", "shop/mysql[0]"]);
    let gate = site.place.join("gate");
    fs::write(site.place.join("a.yaml"), gated(&gate).replace("application: a", "application: billing")).unwrap();
    site.done(&["apply", "a.yaml", "--yes", "--no-wait"]);
    browser.until("document.querySelector('.problem')");
    let folder = std::env::var_os("HOLDFAST_SCREENSHOTS").map(std::path::PathBuf::from);
    for (name, path) in PAGES {
        browser.visit(&format!("{url}{path}"));
        browser.until(IS_LIVE);
        browser.until("document.querySelector('h1') && document.querySelector('.panel, .card, .problem, .picture')");
        prepare(&browser, name);
        check_names(&browser, name);
        for (width, height) in [(1440, 900), (900, 900), (390, 844)] {
            browser.resize(width, height);
            for scheme in ["light", "dark"] {
                browser.prefer(scheme);
                browser.until(&format!("innerWidth === {width}"));
                let too_wide = browser.run("return document.documentElement.scrollWidth - innerWidth");
                assert!(too_wide.as_i64().unwrap() <= 0, "{name} at {width} is too wide by {too_wide}");
                assert_eq!(browser.run(FAINT), json!([]), "{name} in {scheme}: text that is hard to read");
                if let Some(folder) = &folder {
                    photograph(&browser, &folder.join(format!("{name}-{width}-{scheme}.png")));
                }
            }
        }
    }
    assert_eq!(browser.complaints(&[]), [""; 0]);
}

/// Every text whose contrast with what is behind it is below 4.5, as the guidelines for accessible pages count.
const FAINT: &str = r"
const light = (colour) => colour.map((it) => it / 255).map((it) => it <= 0.03928 ? it / 12.92 : ((it + 0.055) / 1.055) ** 2.4)
  .reduce((sum, it, place) => sum + it * [0.2126, 0.7152, 0.0722][place], 0);
const parsed = (text) => text.match(/[\d.]+/g).map(Number);
const found = [];
for (const element of document.querySelectorAll('body *')) {
  const hasText = [...element.childNodes].some((it) => it.nodeType === Node.TEXT_NODE && it.textContent.trim());
  if (!hasText || element.closest('svg, [disabled], .unseen, .skip, noscript') || !element.checkVisibility()) continue;
  let behind = [255, 255, 255];
  for (let at = element; at; at = at.parentElement) {
    const colour = parsed(getComputedStyle(at).backgroundColor);
    if ((colour[3] ?? 1) > 0.9) { behind = colour.slice(0, 3); break; }
  }
  const [more, less] = [light(parsed(getComputedStyle(element).color).slice(0, 3)), light(behind)].sort((a, b) => b - a);
  if ((more + 0.05) / (less + 0.05) < 4.5) found.push(`${element.className}: ${element.textContent.slice(0, 40)}`);
}
return found;";

/// Checks what a screen reader is told: everything that can be used has a name.
fn check_names(browser: &Browser, page: &str) {
    const USED: [&str; 8] = ["button", "link", "textbox", "searchbox", "slider", "combobox", "checkbox", "image"];
    let tree = browser.tell("Accessibility.getFullAXTree", &json!({}));
    for node in tree["nodes"].as_array().unwrap() {
        let role = node["role"]["value"].as_str().unwrap_or_default();
        let name = node["name"]["value"].as_str().unwrap_or_default();
        let is_used = USED.contains(&role) && node["ignored"] != true;
        assert!(!is_used || !name.trim().is_empty(), "{page}: a {role} has no name: {node}");
    }
}

/// Brings a page to where it has something to show.
fn prepare(browser: &Browser, name: &str) {
    if name == "plan" {
        browser.until("document.querySelector('textarea').value.includes('application: shop')");
        browser.run(
            "const it = document.querySelector('textarea'); it.value = it.value.replace('exec sleep', 'exec nice sleep')",
        );
        browser.click("[data-act=plan]");
        browser.until("document.querySelector('.before-after')?.naturalWidth > 0");
    }
    if name == "change" {
        browser.until("document.querySelectorAll('.letter').length > 5");
    }
}

/// A picture of the page, once nothing moves any more.
fn photograph(browser: &Browser, file: &Path) {
    browser.until("document.getAnimations().every((it) => it.playState === 'finished')");
    let size = browser.tell("Page.getLayoutMetrics", &json!({}));
    let size = &size["cssContentSize"];
    let clip = json!({ "x": 0, "y": 0, "width": size["width"], "height": size["height"].as_f64().unwrap().min(2_000.0), "scale": 1 });
    let shot = browser
        .tell("Page.captureScreenshot", &json!({ "format": "png", "captureBeyondViewport": true, "clip": clip }));
    fs::write(file, decoded(shot["data"].as_str().unwrap())).unwrap();
}

/// Bytes from Base64.
fn decoded(text: &str) -> Vec<u8> {
    let value = |letter: u8| match letter {
        b'A'..=b'Z' => u32::from(letter - b'A'),
        b'a'..=b'z' => u32::from(letter - b'a') + 26,
        b'0'..=b'9' => u32::from(letter - b'0') + 52,
        b'+' => 62,
        _ => 63,
    };
    let mut bytes = Vec::new();
    for group in text.trim_end_matches('=').as_bytes().chunks(4) {
        let whole = group.iter().fold(0, |whole, letter| whole << 6 | value(*letter)) << (6 * (4 - group.len()));
        bytes.extend(whole.to_be_bytes()[1..group.len()].iter());
    }
    bytes
}

#[test]
fn base64_is_read() {
    assert_eq!(decoded("aG9sZGZhc3Q="), b"holdfast");
    assert_eq!(decoded("aG9sZA=="), b"hold");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_shell_is_strict_and_tells_nothing() {
    let site = Site::open("dashboard-shell");
    let access = Access::read(&site.data().join("access.json")).unwrap();
    let curl = |arguments: &[&str]| {
        let output =
            std::process::Command::new("curl").args(["--silent", "--insecure", "--include"]).args(arguments).output();
        String::from_utf8(output.unwrap().stdout).unwrap().to_lowercase()
    };
    let shell = curl(&[&format!("{}/applications/shop", access.url)]);
    for header in ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "nosniff", "no-referrer"] {
        assert!(shell.contains(header), "{header}: {shell}");
    }
    let session = curl(&[&format!("{}/dashboard/session", access.url)]);
    assert!(session.starts_with("http/1.1 401"), "{session}");
    let stranger = curl(&["--cookie", "__Host-holdfast=1", &format!("{}/v1/status", access.url)]);
    assert!(stranger.starts_with("http/1.1 401"), "{stranger}");
    let link: Value = serde_json::from_str(&site.done(&["dashboard", "--no-open", "--json"])).unwrap();
    let (_, secret) = link["url"].as_str().unwrap().split_once('#').unwrap();
    let entered = curl(&["--data-raw", secret, &format!("{}/dashboard/login", access.url)]);
    for word in ["http/1.1 204", "secure", "httponly", "samesite=strict", "__host-"] {
        assert!(entered.contains(word), "{word}: {entered}");
    }
    until("the sessions are written", || site.data().join("sessions.json").exists()).await;
}
