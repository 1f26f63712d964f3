// One change: how far it is, when what was done, who said what to whom, and any moment of it again. And the list of changes.

import { get } from "./api.js";
import { cancel, problemList, problemsOf } from "./attention.js";
import { Chart } from "./chart.js";
import { actButton } from "./dialog.js";
import { h, link, patch, show, text } from "./dom.js";
import { ago, applicationOf, clock, counted, day, lasting, pathOf } from "./format.js";
import { live } from "./live.js";
import { Picture } from "./picture.js";
import { pill } from "./states.js";
import { Timeline } from "./timeline.js";

const PHASES = { lower: "lowering needs", up: "adding", down: "removing", both: "applying", forget: "forgetting a lost machine" };
/** The shortest pause between two readings of the journals while a change runs. */
const STORY_MS = 900;

/** A change that is under way, in one line. */
export function changeLine(it) {
  const waits = it.stuck_on.length ? `Waits until you act on ${it.stuck_on.join(", ")}.` : it.waits_for.slice(0, 2).join("; ") + (it.waiting > 2 ? ` and ${it.waiting - 2} more` : "");
  return h("a", { class: "change-line", href: pathOf.change(it.change) },
    h("b", {}, `Change ${it.change}`), it.stuck_on.length ? pill("failed", "needs you") : pill("starting", it.phase ? PHASES[it.phase] : "waiting"),
    h("span", { class: "asked" }, it.asked ?? ""), h("span", { class: "quiet" }, it.accepted_at_ms ? lasting(Math.floor((live.now - it.accepted_at_ms) / 1000) * 1000) : ""),
    waits ? h("span", { class: "waits" }, waits) : undefined);
}

function outcome(record) {
  if (record.cancelled && record.done_at_ms) return pill("stopped", "cancelled");
  if (record.done_at_ms) return pill("started", "done");
  const running = live.status?.changes.find((it) => it.change === record.change);
  if (running?.stuck_on.length) return pill("failed", "needs you");
  return pill("starting", running?.phase ? PHASES[running.phase] : "waiting");
}

/** A change of the past, in one line. */
export function recordLine(record) {
  const took = record.done_at_ms && record.accepted_at_ms ? lasting(record.done_at_ms - record.accepted_at_ms) : "";
  return h("a", { class: "change-line", href: pathOf.change(record.change) },
    h("b", {}, `Change ${record.change}`), outcome(record), h("span", { class: "asked" }, record.asked ?? ""),
    h("span", { class: "quiet" }, [took, record.accepted_at_ms ? ago(record.accepted_at_ms, live.now) : ""].filter(Boolean).join(" · ")));
}

/** The newest changes, kept up to date. */
export function recentChanges(element, limit, filter = () => true) {
  let records = [];
  const draw = () => patch(element, records.filter(filter), (it) => it.change, () => h("li"), (item, it) => show(item, JSON.stringify([it.done_at_ms, it.cancelled, Math.floor(live.now / 5000), live.status?.changes.find((running) => running.change === it.change)]), () => recordLine(it)));
  const read = async () => {
    records = await get(`/v1/history?limit=${limit}`).catch(() => records);
    draw();
  };
  read();
  const ended = [live.watch(draw), live.watchEvents((event) => event.change && ["accepted", "change-done", "change-cancelled"].includes(event.what) && read())];
  return () => ended.forEach((it) => it());
}

export function changes(element) {
  const list = h("ul", { class: "changes" });
  element.append(h("header", { class: "page-head" }, h("h1", {}, "Changes")), list);
  return recentChanges(list, 200);
}

/** Every component that was there before, during or after, and every binding: so that a replay does not move anything. */
function union(before, after) {
  const merge = (one, other, key) => [...new Map([...one, ...other].map((it) => [it[key], it])).values()];
  return { vms: merge(before.vms, after.vms, "name"), components: merge(before.components, after.components, "name"), bindings: merge(before.bindings, after.bindings, "binding") };
}

/** Operations from events alone, for a change whose journals are elsewhere. */
function operationsOf(events, last) {
  const open = new Map();
  const operations = [];
  for (const event of events) {
    if (event.what !== "component-is") continue;
    const { component, state, at_ms } = event;
    const running = open.get(component);
    if (running) {
      running.to_ms = at_ms;
      running.failed = state === "failed";
      open.delete(component);
    }
    const operation = { starting: "start", stopping: "stop" }[state];
    if (!operation) continue;
    const begun = { component, operation, from_ms: at_ms, to_ms: undefined, failed: false, critical: false };
    operations.push(begun);
    open.set(component, begun);
  }
  return operations.filter((it) => it.from_ms <= last);
}

export function change(element, context) {
  const id = Number(context.name);
  let [record, story, applications] = [undefined, undefined, []];
  let moment; // Nothing means: now, or the end.
  let playing = 0;
  const picture = new Picture({ name: `change ${id}` });
  const timeline = new Timeline({ onSeek: (at) => seek(at) });
  const chart = new Chart();
  const title = h("h1", {}, `Change ${id}`);
  const state = h("span");
  const summary = h("p", { class: "headline" });
  const buttons = h("div", { class: "buttons" });
  const asked = h("p", { class: "asked-line" });
  const progress = h("div", { class: "progress" });
  const problems = h("ul", { class: "problems" });
  const slider = h("input", { type: "range", min: 0, max: 1000, value: 1000, step: 1, class: "slider", "aria-label": "Moment of the change", oninput: () => { stop(); const [begin, end] = span(); seek(Number(slider.value) >= 1000 ? undefined : begin + (Number(slider.value) / 1000) * (end - begin)); } });
  const play = h("button", { type: "button", class: "play", onclick: () => (playing ? stop() : start()) }, "Replay");
  const now = h("output", { class: "moment-words" });
  const events = h("ol", { class: "event-list" });
  const missing = h("p", { class: "quiet", hidden: true });
  const story_section = h("section", {}, h("h2", {}, "Messages"), missing, h("div", { class: "panel" }, chart.element));
  element.append(
    h("header", { class: "page-head" }, title, state, summary, buttons), asked, problems, progress,
    h("section", { class: "replay" }, h("div", { class: "replay-bar" }, play, slider, now), picture.element),
    h("section", {}, h("h2", {}, "Timeline"), h("div", { class: "panel" }, timeline.element)),
    story_section, h("details", { class: "fold" }, h("summary", {}, "Events"), events));

  const span = () => {
    const begin = record?.accepted_at_ms ?? record?.events?.[0]?.at_ms ?? live.now;
    return [begin, Math.max(record?.done_at_ms ?? live.now, begin + 1)];
  };
  const isRunning = () => record && !record.done_at_ms;

  /** The configuration as it was at a moment. */
  const then = (at) => {
    const { vms, components, bindings } = union(story.before, story.after);
    const states = new Map(components.map((it) => [it.name, "absent"]));
    for (const it of story.before.components) states.set(it.name, it.state);
    for (const event of record.events) {
      if (event.at_ms > at) break;
      if (event.what === "component-is") states.set(event.component, event.state);
      if (event.what === "component-gone") states.set(event.component, "gone");
    }
    const shown = components.map((it) => ({ ...it, state: states.get(it.name) === "absent" ? "awaited" : states.get(it.name), ghost: states.get(it.name) === "absent", waits_for: [], leaving: false }));
    const of = new Map(shown.map((it) => [it.name, it.state]));
    const uses = (name) => ["starting", "started", "stopping"].includes(of.get(name));
    const lends = (name) => ["started", "stopping"].includes(of.get(name));
    const left = new Set(story.after.bindings.map((it) => it.binding));
    return { vms, components: shown, bindings: bindings.filter((it) => left.has(it.binding) || uses(it.client)).map((it) => ({ ...it, held: uses(it.client) && lends(it.provider), leaving: false })) };
  };

  const drawPicture = () => {
    if (moment === undefined && isRunning() && live.status) {
      const names = new Set(applications);
      const own = (it) => !names.size || names.has(applicationOf(it.name ?? it.client) ?? "-");
      picture.show({ vms: [...live.vms.values()].filter((it) => own(it) && !it.past), components: [...live.components.values()].filter(own), bindings: live.status.bindings.filter((it) => own({ client: it.client })) });
      picture.element.hidden = false;
    } else if (story && !story.unknown) {
      const whole = then(moment ?? span()[1]);
      const names = new Set(applications);
      const own = (it) => !names.size || names.has(applicationOf(it.name ?? it.client) ?? "-");
      picture.show({ vms: whole.vms.filter((it) => own(it)), components: whole.components.filter(own), bindings: whole.bindings.filter((it) => own({ client: it.client })) });
      picture.element.hidden = false;
    } else picture.element.hidden = true;
  };

  const seek = (at) => {
    const [begin, end] = span();
    moment = at === undefined || at >= end ? undefined : Math.max(begin, at);
    slider.value = moment === undefined ? 1000 : Math.round(((moment - begin) / (end - begin)) * 1000);
    text(now, moment === undefined ? (isRunning() ? "now" : lasting(end - begin)) : `${lasting(moment - begin)} of ${lasting(end - begin)}`);
    slider.setAttribute("aria-valuetext", now.textContent);
    drawPicture();
    timeline.at(moment ?? end);
    chart.at(moment ?? Infinity, moment !== undefined);
  };

  const stop = () => {
    cancelAnimationFrame(playing);
    playing = 0;
    text(play, "Replay");
  };
  const start = () => {
    const [begin, end] = span();
    // As fast as it was, but not shorter than three seconds and not longer than twelve.
    const speed = (end - begin) / Math.min(12000, Math.max(3000, end - begin));
    let at = moment === undefined ? begin : moment;
    let last;
    text(play, "Pause");
    const frame = (time) => {
      at += last === undefined ? 0 : (time - last) * speed;
      last = time;
      seek(at);
      if (at >= end) stop();
      else playing = requestAnimationFrame(frame);
    };
    playing = requestAnimationFrame(frame);
  };

  const draw = () => {
    if (!record) return;
    const [begin, end] = span();
    const running = live.status?.changes.find((it) => it.change === id);
    show(state, JSON.stringify([record.done_at_ms, record.cancelled, running?.phase, running?.stuck_on]), () => outcome(record));
    text(summary, `${record.accepted_at_ms ? `${day(record.accepted_at_ms)} · ` : ""}${isRunning() ? `running for ${lasting(Math.floor((live.now - begin) / 1000) * 1000)}` : `took ${lasting(end - begin)}`}`);
    show(buttons, `${isRunning()} ${context.mayOperate}`, () => [isRunning() ? actButton(context, "Cancel", () => cancel(context, id), { danger: true, key: "cancel" }) : undefined, applications.map((it) => link(pathOf.application(it), it))]);
    text(asked, record.asked ?? "");
    const own = problemsOf(live.status ? live : { status: { applications: [] }, components: new Map(), vms: new Map(), now: live.now });
    problemList(context, problems, isRunning() ? own.filter((it) => running?.stuck_on.includes(it.component?.name)) : []);
    show(progress, JSON.stringify([record.phases, running?.waits_for, running?.waiting, record.done_at_ms]), () => steps(record, running));
    const operations = story?.operations?.length ? story.operations : operationsOf(record.events, end);
    timeline.show({ operations, begin, end, at: moment, running: isRunning(), forecast: story?.forecast, bindings: [...(story?.before?.bindings ?? []), ...(story?.after?.bindings ?? live.status?.bindings ?? [])] });
    story_section.hidden = !story?.rows?.length && !story?.unknown;
    missing.hidden = !story?.unknown && !story?.missing?.length;
    text(missing, story?.unknown ? `There is no chart: ${story.unknown}.` : `Machines whose journals are elsewhere: ${(story?.missing ?? []).join(", ")}.`);
    if (story?.rows?.length) chart.show(story);
    chart.element.parentElement.hidden = !story?.rows?.length;
    patch(events, record.events, (it) => it.number, (it) => h("li", {}, h("time", { class: "mono quiet" }, clock(it.at_ms)), h("span", {}, it.text)), () => {});
    if (!playing) seek(moment);
  };

  let readAt = 0;
  let timer = 0;
  let closed = false;
  const read = async () => {
    timer = 0;
    readAt = performance.now();
    try {
      record = await get(`/v1/changes/${id}`);
      story = await get(`/v1/changes/${id}/story`);
      const named = [...(record.asked ?? "").matchAll(/[\w-]+\/[\w-]+\[/g)].map(([it]) => it);
      const about = [...record.events.map((it) => it.component ?? it.vm).filter(Boolean), ...named];
      applications = [...new Set(about.map((it) => applicationOf(it)))].filter(Boolean);
      if (about.some((it) => !applicationOf(it))) applications = [];
    } catch (error) {
      if (!record) text(summary, error.message);
    }
    if (!closed) draw();
  };
  const readSoon = () => {
    if (timer || closed) return;
    timer = setTimeout(read, Math.max(0, STORY_MS - (performance.now() - readAt)));
  };
  read();
  const ended = [live.watch(() => isRunning() && moment === undefined && !playing && (drawPicture(), draw())), live.watchEvents(readSoon)];
  const ticking = setInterval(() => isRunning() && !playing && draw(), 1000);
  return () => {
    closed = true;
    stop();
    clearInterval(ticking);
    clearTimeout(timer);
    ended.forEach((it) => it());
    picture.observer.disconnect();
    timeline.observer.disconnect();
  };
}

/** The phases as steps, and what the present one waits for. */
function steps(record, running) {
  const phases = record.phases.map((it) => h("li", { class: it.done_at_ms ? "done" : "open" }, h("b", {}, PHASES[it.phase]), it.done_at_ms && it.posted_at_ms ? h("span", { class: "quiet" }, lasting(it.done_at_ms - it.posted_at_ms)) : undefined));
  const waits = running?.waits_for ?? [];
  return [
    h("ol", { class: "phases" }, h("li", { class: "done" }, h("b", {}, "accepted")), phases, h("li", { class: record.done_at_ms ? "done" : "later" }, h("b", {}, record.cancelled ? "cancelled" : "done"))),
    waits.length ? h("div", { class: "waits-for" }, h("h2", {}, `Waits for ${counted(running.waiting, "thing")}`), h("ul", {}, waits.slice(0, 6).map((it) => h("li", {}, it)), running.waiting > 6 ? h("li", { class: "quiet" }, `and ${running.waiting - 6} more`) : undefined)) : undefined,
  ];
}
