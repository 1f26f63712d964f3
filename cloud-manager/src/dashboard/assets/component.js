// One component: how it is and why, what it needs and offers, what it writes, how often it ended by itself.

import { get } from "./api.js";
import { problemList, problemsOf } from "./attention.js";
import { h, link, show, text } from "./dom.js";
import { ago, applicationOf, counted, day, encode, lasting, pathOf, short } from "./format.js";
import { live } from "./live.js";
import { BINDING_WORDS, bindingState, pill } from "./states.js";

/** How often the output is asked for while it is followed. */
const FOLLOW_MS = 1500;
/** How many bytes of it. */
const OUTPUT_BYTES = 65536;

/** A chain of reasons, as a list that goes deeper. */
export function reasons(answers) {
  return answers.map((answer) => [
    h("ol", { class: "reasons" }, answer.reasons.map((it) => {
      const item = h("li", { class: `depth-${it.depth}` }, it.depth ? h("span", { class: "quiet" }, `${it.about}: `) : undefined, it.says, it.since_ms ? h("span", { class: "quiet" }, ` · ${ago(it.since_ms, live.now)}`) : undefined, it.detail && it.depth ? h("pre", { class: "output" }, it.detail) : undefined);
      item.style.marginInlineStart = `${Math.min(it.depth, 8) * 18}px`;
      return item;
    })),
    answer.remedies.length ? h("ul", { class: "remedies quiet" }, h("li", {}, "On the command line:"), answer.remedies.map((it) => h("li", {}, it))) : undefined,
  ]);
}

/** Bindings as a table; each row links to the other end. */
function bindingTable(bindings, other) {
  return h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, [other === "provider" ? "Import" : "Export", other === "provider" ? "Provider" : "Client", "Need", "State"].map((it) => h("th", { scope: "col" }, it)))),
    h("tbody", {}, bindings.map((it) => h("tr", {}, h("td", {}, other === "provider" ? it.import : it.export), h("td", {}, link(pathOf.component(it[other]), short(it[other]))), h("td", { class: "quiet" }, it.need), h("td", {}, bindingPill(it)))))));
}

function bindingPill(binding) {
  const state = bindingState(binding, live.components);
  return pill({ held: "started", recalled: "stopping", offered: "starting", waiting: "stopped" }[state], BINDING_WORDS[state]);
}

export function component(element, context) {
  const { name } = context;
  let [detail, answers, definition] = [undefined, undefined, undefined];
  let follow = true;
  const state = h("span");
  const summary = h("p", { class: "headline" });
  const problems = h("ul", { class: "problems" });
  const facts = h("dl");
  const why = h("div");
  const imports = h("section", { class: "panel" });
  const lends = h("section", { class: "panel" });
  const settings = h("details", { class: "fold", hidden: true });
  const output = h("pre", { class: "output log", tabindex: 0, "aria-label": "Output" });
  const following = h("input", { type: "checkbox", checked: true, onchange: () => { follow = following.checked; follow && readOutput(); } });
  const filter = h("input", { type: "search", placeholder: "Filter lines", "aria-label": "Filter lines", oninput: () => drawOutput() });
  const application = applicationOf(name);
  element.append(
    h("header", { class: "page-head" }, h("h1", {}, short(name)), state, summary,
      h("div", { class: "buttons" }, application ? link(pathOf.application(application), application) : undefined)),
    problems,
    h("div", { class: "columns" },
      h("section", { class: "panel" }, h("h2", {}, "Now"), facts), h("section", { class: "panel" }, h("h2", {}, "Why it is so"), why),
      imports, lends,
      h("section", { class: "panel wide" }, h("div", { class: "panel-head" }, h("h2", {}, "Output"), h("span", { class: "grow" }), filter, h("label", { class: "check" }, following, "Follow")), output),
      settings));
  settings.classList.add("wide");

  let written = "";
  const drawOutput = () => {
    const words = filter.value.toLowerCase();
    const lines = written.split("\n").filter((it) => !words || it.toLowerCase().includes(words));
    const atEnd = output.scrollHeight - output.scrollTop - output.clientHeight < 30;
    text(output, lines.join("\n").trimEnd() || (words ? "No line matches." : "It has written nothing."));
    if (follow && atEnd) output.scrollTop = output.scrollHeight;
  };
  const readOutput = async () => {
    const found = await get(`/v1/components/${encode(name)}/logs?bytes=${OUTPUT_BYTES}`).catch((error) => `(${error.message})`);
    if (found === written) return;
    written = found;
    drawOutput();
  };
  const readWhy = async () => {
    answers = await get(`/v1/why/${encode(name)}`).catch(() => undefined);
    show(why, JSON.stringify(answers ?? null), () => (answers ? reasons(answers) : h("p", { class: "quiet" }, "Unknown.")));
  };
  const readDetail = async () => {
    try {
      detail = await get(`/v1/components/${encode(name)}`);
    } catch (error) {
      if (error.status === 404) detail = null;
    }
    draw();
    readWhy();
  };
  const readDefinition = async () => {
    definition = await get(`/v1/components/${encode(name)}/definition`).catch(() => undefined);
    settings.hidden = !definition;
    if (definition) show(settings, JSON.stringify(definition), () => [h("summary", {}, "Definition"), h("p", { class: "quiet" }, "As it could be added again. Secrets are masked."), h("pre", { class: "output definition", tabindex: 0 }, JSON.stringify(definition, null, 2))]);
  };
  const draw = () => {
    const own = live.components.get(name);
    if (detail === null && !own) {
      show(state, "gone", () => pill("gone", "removed"));
      text(summary, "There is no component of this name now.");
      return;
    }
    const it = own ?? detail?.component;
    if (!it) return;
    show(state, it.state, () => pill(it.state));
    text(summary, `${it.since_ms ? `${ago(it.since_ms, live.now)}, ` : ""}on `);
    summary.append(link(pathOf.machine(it.vm), short(it.vm)));
    if (live.status) problemList(context, problems, problemsOf(live).filter((found) => found.component?.name === name));
    show(facts, JSON.stringify([it, Math.floor(live.now / 5000)]), () => [
      ["State", pill(it.state)], ["Since", it.since_ms ? `${day(it.since_ms)} (${ago(it.since_ms, live.now)})` : undefined],
      ["Should be", it.leaving ? "removed" : it.expected ? "started" : "stopped, until what it needs is there"], ["Waits for", it.waits_for?.length ? h("ul", {}, it.waits_for.map((words) => h("li", {}, words))) : undefined],
      ["Last start took", it.start_ms === undefined ? undefined : lasting(it.start_ms)], ["Last stop took", it.stop_ms === undefined ? undefined : lasting(it.stop_ms)],
      ["Was prepared in", it.prepare_ms === undefined ? undefined : lasting(it.prepare_ms)],
      ["Ended by itself", it.deaths ? `${counted(it.deaths.times, "time")}, last ${ago(it.deaths.last_at_ms, live.now)}` : "never"],
    ].filter(([, value]) => value).flatMap(([term, value]) => [h("dt", {}, term), h("dd", {}, value)]));
    const bindings = live.status?.bindings ?? [];
    const borrows = bindings.filter((binding) => binding.client === name);
    const lent = bindings.filter((binding) => binding.provider === name);
    const states = (list) => list.map((binding) => bindingState(binding, live.components)).join();
    show(imports, JSON.stringify([borrows, states(borrows), detail?.imports]), () => [h("h2", {}, "Uses"), borrows.length ? bindingTable(borrows, "provider") : h("p", { class: "quiet" }, "It needs nothing."),
      (detail?.imports ?? []).filter((found) => !borrows.some((binding) => binding.import === found.name)).map((found) => h("p", { class: "quiet" }, `${found.name} (${found.need}) is bound to nothing.`))]);
    show(lends, JSON.stringify([lent, states(lent), detail?.exports]), () => [h("h2", {}, "Offers"), lent.length ? bindingTable(lent, "client") : h("p", { class: "quiet" }, detail?.exports?.length ? `${detail.exports.join(", ")}: no component uses it.` : "It offers nothing.")]);
  };
  readDetail();
  readOutput();
  if (context.mayOperate) readDefinition();
  const timer = setInterval(() => follow && !document.hidden && readOutput(), FOLLOW_MS);
  let soon = 0;
  const ended = [live.watch(draw), live.watchEvents((event) => {
    if (soon || (event.component && event.component !== name && !detail?.borrows?.some((it) => it.provider === event.component))) return;
    soon = setTimeout(() => { soon = 0; readDetail(); }, 300);
  })];
  return () => {
    clearInterval(timer);
    clearTimeout(soon);
    ended.forEach((it) => it());
  };
}

