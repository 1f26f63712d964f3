// One application: its picture, its versions, its components as a table.


import { reconcile, rollBack } from "./attention.js";
import { changeLine } from "./change.js";
import { actButton } from "./dialog.js";
import { h, link, patch, show, text } from "./dom.js";
import { ago, applicationOf, byName, counted, day, pathOf, short } from "./format.js";
import { live } from "./live.js";
import { Picture } from "./picture.js";
import { STATES, pill } from "./states.js";

/** The VMs, components and bindings of one application, with what it is bound to outside. */
export function partOf(name, { vms, components, bindings }) {
  const own = components.filter((it) => (applicationOf(it.name) ?? "-") === name);
  const names = new Set(own.map((it) => it.name));
  const touching = bindings.filter((it) => names.has(it.client) || names.has(it.provider));
  const shown = new Set(names);
  for (const it of touching) {
    shown.add(it.client);
    shown.add(it.provider);
  }
  const all = components.filter((it) => shown.has(it.name));
  const machines = new Set(all.map((it) => it.vm));
  return { vms: vms.filter((it) => machines.has(it.name) || (applicationOf(it.name) ?? "-") === name), components: all, bindings: touching };
}

export function application(element, context) {
  const { name } = context;
  const title = name === "-" ? "Single components" : name;
  const picture = new Picture({ name: title });
  const summary = h("p", { class: "headline" });
  const buttons = h("div", { class: "buttons" });
  const changes = h("ul", { class: "changes" });
  const versions = h("div");
  const table = h("tbody");
  const missing = h("p", { class: "calm", hidden: true }, `There is no application ${title}.`);
  const list = h("details", { class: "fold" }, h("summary", {}, "Components as a table"),
    h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, ["Component", "State", "Since", "Machine", "Waits for"].map((it) => h("th", { scope: "col" }, it)))), table)));
  element.append(
    h("header", { class: "page-head" }, h("h1", {}, title), summary, buttons),
    missing, changes, picture.element, list, h("section", {}, versions));
  let drawn = "";
  const update = () => {
    const { status } = live;
    if (!status) return;
    const document = status.applications.find((it) => it.name === name);
    const part = partOf(name, { vms: [...live.vms.values()].filter((it) => !it.past), components: [...live.components.values()], bindings: status.bindings });
    missing.hidden = Boolean(document || part.components.length);
    picture.element.hidden = !part.components.length && !part.vms.length;
    picture.show(part);
    const own = part.components.filter((it) => (applicationOf(it.name) ?? "-") === name);
    const started = own.filter((it) => it.state === "started").length;
    text(summary, `${document ? `Version ${document.version} · ` : ""}${started === own.length ? `all ${counted(own.length, "component")} started` : `${started} of ${counted(own.length, "component")} started`} · ${counted(part.vms.length, "machine")} · ${counted(part.bindings.length, "binding")}`);
    show(buttons, `${document?.version} ${context.mayOperate}`, () => !document ? [] : [
      link(`/plan?application=${encodeURIComponent(name)}`, "Plan a change"),
      actButton(context, "Reconcile", () => reconcile(context, name), { key: "reconcile" }),
      document.version > 1 ? actButton(context, "Roll back", () => rollBack(context, name), { key: "rollback" }) : undefined,
    ]);
    const about = status.changes.filter((it) => name === "-" || (it.asked ?? "").includes(`${name}/`) || (it.asked ?? "").includes(` ${name}:`) || document?.rollout?.changes.includes(it.change));
    patch(changes, about, (it) => it.change, () => h("li"), (item, it) => show(item, JSON.stringify([it, Math.floor(live.now / 1000)]), () => changeLine(it)));
    show(versions, JSON.stringify(document?.versions ?? []), () => !document ? [] : [h("h2", {}, "Versions"), h("ol", { class: "versions", reversed: true },
      [...document.versions].reverse().map((it) => h("li", {}, h("b", {}, `Version ${it.version}`), ` ${it.intent}`, h("span", { class: "quiet" }, ` · ${day(it.at_ms)} · ${it.by || "unnamed token"}`))))]);
    if (list.open) fill(table, own);
    drawn = name;
  };
  list.addEventListener("toggle", update);
  update();
  const ended = live.watch(update);
  return () => {
    ended();
    picture.observer.disconnect();
    return drawn;
  };
}

/** Components as rows of a table, problems first. */
export function fill(body, components) {
  const rows = [...components].sort((one, other) => (STATES[one.state]?.rank ?? 9) - (STATES[other.state]?.rank ?? 9) || byName(one, other));
  patch(body, rows, (it) => it.name, (it) => h("tr", {}, h("td", {}, link(pathOf.component(it.name), short(it.name))), h("td"), h("td", { class: "quiet" }), h("td", {}, link(pathOf.machine(it.vm), short(it.vm))), h("td", { class: "quiet" })), (row, it) => {
    const [, state, since, , waits] = row.children;
    show(state, it.state, () => pill(it.state));
    text(since, it.since_ms ? ago(it.since_ms, live.now) : "");
    text(waits, (it.waits_for ?? []).join("; "));
  });
}

