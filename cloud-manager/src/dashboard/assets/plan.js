// What an application file would change: problems with their place, the difference, a picture before and after, what happens
// when; and applying it.

import { get, post } from "./api.js";
import { actButton, confirm } from "./dialog.js";
import { announce, h, s, show, text } from "./dom.js";
import { counted, encode, lasting, pathOf } from "./format.js";

const EXAMPLE = `holdfast: 1
application: hello

types:
  Greeter:
    operations:
      start: { process: "echo hello; exec sleep 100000" }

vms:
  one: { cloud: local }

components:
  greeter: { type: Greeter, on: one }
`;

export function plan(element, context) {
  const editor = h("textarea", { spellcheck: "false", autocapitalize: "off", autocomplete: "off", rows: 18, "aria-label": "Application file", placeholder: "Paste an application file (YAML) here" });
  const file = h("input", { type: "file", accept: ".yaml,.yml,text/yaml", class: "unseen", id: "file", tabindex: -1 });
  const fileName = h("span", { class: "quiet" });
  const strategy = h("select", { id: "strategy" }, [["", "as fits"], ["up-then-down", "additions first"], ["down-then-up", "removals first"], ["together", "together"]].map(([value, words]) => h("option", { value }, words)));
  const plan = h("button", { type: "button", class: "primary", "data-act": "plan", disabled: !context.mayOperate, title: context.mayOperate ? undefined : "Your token allows to look, and this needs operate.", onclick: () => ask() }, "Plan");
  const result = h("div", { class: "plan-result", "aria-live": "polite" });
  const note = context.mayOperate ? undefined : h("p", { class: "calm" }, "Your token allows to look. Planning and applying need a token that allows to operate.");
  let main = "application.yaml";
  let known = {};
  let inputs;
  element.append(h("header", { class: "page-head" }, h("h1", {}, "Plan"), h("p", { class: "headline" }, "Nothing is changed before you apply.")), note ?? "",
    h("div", { class: "plan" },
      h("section", { class: "panel editor" },
        h("div", { class: "panel-head" }, h("button", { type: "button", onclick: () => file.click() }, "Open a file"), h("button", { type: "button", class: "plain", onclick: () => { editor.value = EXAMPLE; reset(); } }, "Example"), fileName, file,
          h("span", { class: "grow" })),
        editor,
        h("div", { class: "panel-head below" }, h("label", { class: "check", for: "strategy" }, "Additions and removals", strategy), h("span", { class: "grow" }), plan)),
      result));
  show(result, undefined, () => h("div", { class: "calm" }, h("p", {}, "What the file would change appears here."), h("p", { class: "quiet" }, "Problems with their line, the difference, a picture before and after, what happens when. Ctrl+Enter plans.")));
  const reset = () => { known = {}; inputs = undefined; main = "application.yaml"; text(fileName, ""); };
  const accept = async (found) => {
    if (!found) return;
    reset();
    editor.value = await found.text();
    main = found.name;
    text(fileName, found.name);
  };
  file.addEventListener("change", () => accept(file.files[0]));
  editor.addEventListener("dragover", (event) => event.preventDefault());
  editor.addEventListener("drop", (event) => { if (event.dataTransfer.files.length) { event.preventDefault(); accept(event.dataTransfer.files[0]); } });
  editor.addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && context.mayOperate) ask(); });

  const request = () => ({
    application: { main, files: { ...known, [main]: editor.value }, ...(inputs ? { inputs } : {}) },
    how: { picture: true, ...(strategy.value ? { strategy: strategy.value } : {}) },
  });
  const ask = async () => {
    if (!editor.value.trim()) return editor.focus();
    plan.disabled = true;
    show(result, undefined, () => h("p", { class: "calm" }, "Planning…"));
    try {
      const answer = await post("/v1/apply?dry-run=true", request());
      present(answer);
      announce("The plan is ready");
    } catch (error) {
      show(result, undefined, () => problems(error, (place) => {
        const offset = editor.value.split("\n").slice(0, place.line - 1).reduce((sum, line) => sum + line.length + 1, 0) + place.column - 1;
        editor.focus();
        editor.setSelectionRange(offset, offset + Math.max(1, place.width));
        editor.scrollTop = (place.line - 4) * 20;
      }));
    }
    plan.disabled = false;
  };
  const present = (answer) => {
    const { forecast } = answer;
    const refused = forecast.refused?.length;
    const isNothing = !answer.edits && answer.applications.every((it) => empty(it.difference));
    const apply = actButton(context, "Apply", () => confirm({
      title: `Apply ${answer.applications.map((it) => it.application).join(", ")}?`, action: "Apply",
      says: sentences(answer),
      act: async () => {
        const { how, ...rest } = request();
        const versions = Object.fromEntries(answer.applications.map((it) => [it.application, it.version]));
        const { change } = await post("/v1/apply", { ...rest, how: { ...how, picture: false, versions } });
        context.go(change ? pathOf.change(change) : pathOf.application(answer.applications[0].application));
      },
    }), { primary: true, key: "apply" });
    const frame = forecast.moments?.length ? h("div", { class: "panel" }, h("h2", {}, "What happens when")) : undefined;
    show(result, undefined, () => [
      h("section", { class: "panel verdict" },
        h("div", { class: "panel-head" }, h("h2", {}, refused ? "The manager would refuse this" : isNothing ? "Nothing would change" : "This would happen"), h("span", { class: "grow" }), refused || isNothing ? undefined : apply),
        refused ? h("ul", { class: "plain-list refused" }, forecast.refused.map((it) => h("li", {}, it))) : sentences(answer).map((it) => h("p", {}, it)),
        answer.remarks?.length ? h("ul", { class: "plain-list quiet" }, answer.remarks.map((it) => h("li", {}, `Remark: ${it}`))) : undefined,
        (answer.secrets ?? []).filter((it) => !it.kept).length ? h("p", { class: "quiet" }, "It needs secrets that the manager does not have: apply it with the command line.") : undefined),
      differences(answer),
      answer.picture ? h("section", { class: "panel" }, h("h2", {}, "Before and after"), h("div", { class: "scroll" }, h("img", { class: "before-after", alt: "The application before and after. The list of differences says the same.", src: `data:image/svg+xml;charset=utf-8,${encode(answer.picture)}` }))) : undefined,
      frame,
    ]);
    if (frame) frame.append(predicted(forecast));
  };
  const name = new URLSearchParams(location.search).get("application");
  if (name && context.mayOperate) {
    get(`/v1/applications/${encode(name)}`).then((found) => {
      if (!found.files || editor.value) return;
      ({ main, files: known, inputs } = found.files);
      editor.value = known[main] ?? "";
      text(fileName, `${name}, version ${found.version}`);
    }, () => {});
  }
}

function empty(difference) {
  return !Object.keys(difference.vms).length && !Object.keys(difference.components).length && !difference.bound.length && !difference.unbound.length;
}

/** The plan in a few sentences. */
function sentences(plan) {
  const { forecast } = plan;
  const words = [];
  for (const it of plan.applications) words.push(`${it.application}: ${counted(it.vms, "machine")}, ${counted(it.components, "component")}, ${counted(it.bindings, "binding")}${it.version ? ` (now version ${it.version})` : " (new)"}.`);
  words.push(`${counted(forecast.starts, "start")}, ${counted(forecast.stops, "stop")}${forecast.seconds === undefined ? "" : `, about ${lasting(forecast.seconds * 1000)}${forecast.known ? "" : " (some lengths are assumed)"}`}${plan.steps > 1 ? `, in ${plan.steps} steps` : ""}.`);
  if (forecast.stopped?.length) words.push(`Stopped for a while: ${forecast.stopped.join(", ")}.`);
  else if (forecast.stops || forecast.starts) words.push("Nothing that stays is stopped on the way.");
  for (const it of plan.applications) if (it.placement?.cost !== undefined) words.push(`Placement cost ${it.placement.cost}.`);
  if (forecast.critical_path?.length) words.push(`Critical path: ${forecast.critical_path.join(" → ")}.`);
  return words;
}

/** What is added, removed, replaced and adjusted. */
function differences(plan) {
  const items = [];
  const how = (it) => (typeof it === "string" ? [it, []] : Object.entries(it)[0]);
  for (const { difference, restarts = {} } of plan.applications) {
    for (const [sort, list] of [["machine", difference.vms], ["component", difference.components]]) {
      for (const [key, it] of Object.entries(list)) {
        const [verb, reasons] = how(it);
        items.push(line(verb, `${sort} ${key}`, reasons));
      }
    }
    for (const [key, reasons] of Object.entries(restarts)) items.push(line("restarts", `component ${key}`, reasons));
    for (const it of difference.bound) items.push(line("added", `binding ${it}`, []));
    for (const it of difference.unbound) items.push(line("removed", `binding ${it}`, []));
  }
  if (!items.length) return undefined;
  const first = items.slice(0, 30);
  return h("section", { class: "panel" }, h("h2", {}, "Difference"), h("ul", { class: "differences" }, first),
    items.length > first.length ? h("details", {}, h("summary", { class: "quiet" }, `and ${items.length - first.length} more`), h("ul", { class: "differences" }, items.slice(first.length))) : undefined);
}

function line(verb, what, reasons) {
  const sign = { added: "+", removed: "−", replaced: "±", adjusted: "~", restarts: "↻" }[verb] ?? "~";
  return h("li", { class: `difference ${verb}` }, h("b", { "aria-hidden": "true" }, sign), h("span", {}, h("span", { class: "unseen" }, `${verb} `), what, reasons.length ? h("span", { class: "quiet" }, ` · ${verb}: ${reasons.join(", ")}`) : verb === "restarts" ? h("span", { class: "quiet" }, " · restarts") : undefined));
}

/** When what begins, as the simulation says. */
function predicted(forecast) {
  const whole = Math.max(0.001, forecast.seconds ?? 0, ...forecast.moments.map((it) => it.at));
  return h("ol", { class: "moments" }, forecast.moments.slice(0, 60).map((it) => {
    const dot = s("svg", { class: "moment-line", height: 12, "aria-hidden": "true" }, s("path", { class: "tick", d: "M0 6H2000" }), s("circle", { class: it.start.length ? "dot started" : "dot stopping", cx: `${(2 + (96 * it.at) / whole).toFixed(1)}%`, cy: 6, r: 4.5 }));
    return h("li", {}, h("time", { class: "mono quiet" }, lasting(it.at * 1000)), dot, h("span", {}, it.stop.length ? `stop ${it.stop.join(", ")}` : "", it.stop.length && it.start.length ? "; " : "", it.start.length ? `start ${it.start.join(", ")}` : ""));
  }), forecast.seconds === undefined ? undefined : h("li", {}, h("time", { class: "mono quiet" }, lasting(forecast.seconds * 1000)), s("svg", { class: "moment-line", height: 12, "aria-hidden": "true" }, s("path", { class: "tick", d: "M0 6H2000" }), s("circle", { class: "dot news", cx: "98%", cy: 6, r: 4.5 })), h("span", {}, "done")));
}

/** What is wrong, each with its line and a caret. */
function problems(error, jump) {
  const places = error.places ?? [];
  return h("section", { class: "panel wrong", role: "alert" }, h("h2", {}, places.length ? counted(places.length, "problem") : "The manager refused"),
    places.length ? undefined : h("p", {}, error.message),
    places.map((it) => h("article", { class: "place" },
      h("p", {}, h("button", { type: "button", class: "plain", onclick: () => jump(it) }, `line ${it.line}, column ${it.column}`), ` ${it.says}`),
      it.text.trim() ? h("pre", { class: "output" }, `${it.text}\n${it.text.slice(0, it.column - 1).replace(/[^\t]/g, " ")}${"^".repeat(Math.max(1, Math.min(it.width, it.text.length - it.column + 1)))}`) : undefined)),
    places.length ? undefined : error.problems?.map((it) => h("p", {}, it)));
}

