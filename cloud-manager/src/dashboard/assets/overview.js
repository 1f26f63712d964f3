// Everything at a glance, problems first: what needs you, what changes, applications, machines.

import { problemList, problemsOf } from "./attention.js";
import { changeLine, recentChanges } from "./change.js";
import { h, link, patch, s, show, text } from "./dom.js";
import { applicationOf, byName, counted, pathOf, short } from "./format.js";
import { live } from "./live.js";
import { HEALTH, STATES, icon } from "./states.js";

/** Machines that are shown here, those with problems first; the others are on their own page. */
const TILES_MAX = 24;

/** Components in one bar, one part for each state. */
export function stateBar(components) {
  const counts = new Map();
  for (const it of components) counts.set(it.state, (counts.get(it.state) ?? 0) + 1);
  const states = Object.keys(STATES).filter((it) => counts.has(it)).reverse();
  const words = states.map((it) => `${counts.get(it)} ${STATES[it].word}`).join(", ");
  let x = 0;
  const parts = states.map((it) => {
    const width = (100 * counts.get(it)) / components.length;
    const part = s("rect", { class: `part state-${it}`, x: `${x}%`, y: 0, width: `${width}%`, height: 8 });
    x += width;
    return part;
  });
  return [
    s("svg", { class: "state-bar", height: 8, role: "img", "aria-label": words || "no components" }, parts),
    h("p", { class: "bar-words" }, states.length ? states.reverse().map((it) => h("span", {}, icon(it), `${counts.get(it).toLocaleString("en")} ${STATES[it].word}`)) : h("span", { class: "quiet" }, "no components")),
  ];
}

function applicationCards() {
  const { status, components } = live;
  const names = new Map(status.applications.map((it) => [it.name, it]));
  for (const it of components.values()) if (!names.has(applicationOf(it.name) ?? "")) names.set(applicationOf(it.name) ?? "", undefined);
  return [...names].sort(([one], [other]) => byName(one, other)).map(([name, document]) => {
    const own = [...components.values()].filter((it) => (applicationOf(it.name) ?? "") === name);
    const vms = new Set(own.map((it) => it.vm));
    return { name, document, own, vms: vms.size };
  });
}

export function overview(element, context) {
  const headline = h("p", { class: "headline" });
  const problems = h("ul", { class: "problems" });
  const needs = h("section", { hidden: true }, h("h2", {}, link("/attention", "Needs you")), problems);
  const changes = h("ul", { class: "changes" });
  const underWay = h("section", { hidden: true }, h("h2", {}, "Changing now"), changes);
  const applications = h("ul", { class: "cards" });
  const machines = h("ul", { class: "machine-tiles" });
  const allMachines = link("/machines");
  allMachines.className = "more-link";
  const machineSection = h("section", {}, h("h2", {}, link("/machines", "Machines")), machines, allMachines);
  const empty = h("section", { class: "calm", hidden: true }, h("p", {}, "Nothing is deployed yet."),
    h("p", { class: "quiet" }, "Paste an application file on the page ", link("/plan", "Plan"), ", or run holdfast apply FILE."));
  const past = h("ul", { class: "changes" });
  const recently = h("section", { hidden: true }, h("h2", {}, link("/changes", "Recent changes")), past);
  element.append(
    h("header", { class: "page-head" }, h("h1", {}, "Overview"), headline),
    needs, underWay, h("section", { class: "applications" }, h("h2", {}, "Applications"), applications, empty), machineSection, recently);
  const update = () => {
    const { status } = live;
    if (!status) return;
    const found = problemsOf(live);
    const all = [...live.components.values()].filter((it) => it.state !== "gone");
    const started = all.filter((it) => it.state === "started").length;
    const well = [...live.vms.values()].filter((it) => it.health === "well").length;
    const calm = !found.length && !status.changes.length;
    text(headline, !all.length ? "" : `${calm && started === all.length ? "All is well: " : ""}${started === all.length ? `all ${counted(all.length, "component")} started` : `${started} of ${counted(all.length, "component")} started`} on ${counted(live.vms.size, "machine")}${well < live.vms.size ? `, ${live.vms.size - well} not well` : ""}.`);
    needs.hidden = !found.length;
    problemList(context, problems, found.slice(0, 4));
    underWay.hidden = !status.changes.length;
    patch(changes, status.changes, (it) => it.change, () => h("li"), (item, it) => show(item, JSON.stringify([it, Math.floor(live.now / 1000)]), () => changeLine(it)));
    const cards = applicationCards();
    empty.hidden = cards.length > 0;
    patch(applications, cards, (it) => it.name || "alone", () => h("li"), (item, card) => {
      const counts = Object.keys(STATES).map((state) => card.own.filter((it) => it.state === state).length);
      show(item, JSON.stringify([card.name, card.document?.version, card.document?.rollout, counts, card.vms]), () => applicationCard(card));
    });
    const vms = [...live.vms.values()].filter((it) => !it.past).sort((one, other) => Object.keys(HEALTH).indexOf(one.health) - Object.keys(HEALTH).indexOf(other.health) || byName(one, other));
    machineSection.hidden = !vms.length;
    text(allMachines, vms.length > TILES_MAX ? `All ${counted(vms.length, "machine")}` : "");
    patch(machines, vms.slice(0, TILES_MAX), (it) => it.name, () => h("li"), (item, vm) => {
      const own = all.filter((it) => it.vm === vm.name);
      show(item, JSON.stringify([vm.health, vm.drained, vm.leaving, own.map((it) => it.state)]), () => machineTile(vm, own));
    });
  };
  update();
  const ended = [live.watch(update), recentChanges(past, 8, (it) => {
    const isPast = Boolean(it.done_at_ms);
    if (isPast) recently.hidden = false;
    return isPast;
  })];
  return () => ended.forEach((it) => it());
}

function applicationCard({ name, document, own, vms }) {
  const rollout = document?.rollout;
  return h("a", { class: "card", href: pathOf.application(name || "-") },
    h("h3", {}, name || "Single components", document ? h("span", { class: "version" }, `version ${document.version}`) : undefined),
    ...stateBar(own),
    h("p", { class: "quiet" }, `${counted(own.length, "component")} on ${counted(vms, "machine")}`, rollout ? ` · rollout, step ${rollout.step} of ${rollout.steps}` : ""));
}

function machineTile(vm, own) {
  const state = { well: "started", suspected: "stopping", lost: "failed", awaited: "awaited" }[vm.health];
  const note = vm.drained ? "drained" : vm.leaving ? "being removed" : vm.health === "well" ? "" : HEALTH[vm.health];
  const dots = own.sort(byName).slice(0, 40).map((it) => icon(it.state));
  return h("a", { class: `tile health-${vm.health}`, href: pathOf.machine(vm.name), "aria-label": `${vm.name}: ${HEALTH[vm.health]}${note ? `, ${note}` : ""}, ${own.filter((it) => it.state === "started").length} of ${own.length} components started` },
    h("span", { class: "tile-name" }, vm.health === "well" ? undefined : icon(state), h("span", { class: "tile-text" }, short(vm.name)), note ? h("span", { class: "note" }, note) : undefined),
    h("span", { class: "dots" }, dots.length ? dots : h("span", { class: "quiet" }, "empty"), own.length > 40 ? h("span", { class: "quiet" }, `+${own.length - 40}`) : undefined));
}
