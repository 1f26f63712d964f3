// Machines: all of them, and one with what lives on it.

import { get } from "./api.js";
import { fill } from "./application.js";
import { declareLost, problemList, problemsOf, toDrain } from "./attention.js";
import { reasons } from "./component.js";
import { actButton } from "./dialog.js";
import { h, link, patch, show, text } from "./dom.js";
import { applicationOf, byName, counted, encode, pathOf, short } from "./format.js";
import { live } from "./live.js";
import { HEALTH, healthPill } from "./states.js";

export function machines(element) {
  const body = h("tbody");
  const summary = h("p", { class: "headline" });
  const empty = h("p", { class: "calm", hidden: true }, "There are no machines yet. They come with an application, or with: holdfast vm add");
  const panel = h("div", { class: "panel scroll" }, h("table", {}, h("thead", {}, h("tr", {}, ["Machine", "Health", "Started", "Application"].map((it) => h("th", { scope: "col" }, it)))), body));
  element.append(h("header", { class: "page-head" }, h("h1", {}, "Machines"), summary), panel, empty);
  const update = () => {
    if (!live.status) return;
    const order = Object.keys(HEALTH);
    const vms = [...live.vms.values()].filter((it) => !it.past).sort((one, other) => order.indexOf(one.health) - order.indexOf(other.health) || byName(one, other));
    text(summary, `${counted(vms.length, "machine")}, ${vms.filter((it) => it.health === "well").length} well`);
    empty.hidden = vms.length > 0;
    panel.hidden = !vms.length;
    patch(body, vms, (it) => it.name, (it) => h("tr", {}, h("td", {}, link(pathOf.machine(it.name), short(it.name))), h("td"), h("td"), h("td", {}, applicationOf(it.name) ? link(pathOf.application(applicationOf(it.name)), applicationOf(it.name)) : "")), (row, it) => {
      show(row.children[1], JSON.stringify([it.health, it.drained, it.leaving]), () => healthPill(it));
      const own = [...live.components.values()].filter((component) => component.vm === it.name && component.state !== "gone");
      text(row.children[2], own.length ? `${own.filter((component) => component.state === "started").length} of ${own.length}` : "empty");
    });
  };
  update();
  return live.watch(update);
}

export function machine(element, context) {
  const { name } = context;
  const state = h("span");
  const summary = h("p", { class: "headline" });
  const buttons = h("div", { class: "buttons" });
  const problems = h("ul", { class: "problems" });
  const body = h("tbody");
  const why = h("div");
  const empty = h("p", { class: "quiet", hidden: true }, "No component lives here.");
  element.append(h("header", { class: "page-head" }, h("h1", {}, short(name)), state, summary, buttons), problems,
    h("section", { class: "panel own-machine" }, h("h2", {}, "Components"), empty, h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, ["Component", "State", "Since", "Machine", "Waits for"].map((it) => h("th", { scope: "col" }, it)))), body))),
    h("section", { class: "panel" }, h("h2", {}, "Why it is so"), why));
  const update = () => {
    if (!live.status) return;
    const vm = live.vms.get(name);
    if (!vm) {
      text(summary, "There is no machine of this name now.");
      show(state, "gone", () => []);
      buttons.replaceChildren();
      return;
    }
    const own = [...live.components.values()].filter((it) => it.vm === name && it.state !== "gone");
    show(state, JSON.stringify([vm.health, vm.drained, vm.leaving]), () => healthPill(vm));
    text(summary, own.length ? `${own.filter((it) => it.state === "started").length} of ${counted(own.length, "component")} started` : "empty");
    const application = applicationOf(name);
    show(buttons, JSON.stringify([vm.health, vm.drained, context.mayOperate]), () => [
      application ? link(pathOf.application(application), application) : undefined,
      application && vm.health === "well" ? actButton(context, vm.drained ? "Use again" : "Drain", () => toDrain(context, vm, vm.drained ? "undrain" : "drain"), { key: "drain" }) : undefined,
      vm.health === "lost" ? undefined : actButton(context, "Declare lost", () => declareLost(context, vm), { danger: true, key: "lost" }),
    ]);
    problemList(context, problems, problemsOf(live).filter((it) => it.vm?.name === name || it.component?.vm === name));
    empty.hidden = own.length > 0;
    fill(body, own);
  };
  const readWhy = async () => {
    const answers = await get(`/v1/why/${encode(name)}`).catch(() => undefined);
    show(why, JSON.stringify(answers ?? null), () => (answers ? reasons(answers) : h("p", { class: "quiet" }, "Unknown.")));
  };
  update();
  readWhy();
  let soon = 0;
  const ended = [live.watch(update), live.watchEvents(() => (soon ||= setTimeout(() => { soon = 0; readWhy(); }, 500)))];
  return () => {
    clearTimeout(soon);
    ended.forEach((it) => it());
  };
}
