// What needs an operator: failed operations, machines that do not answer, crash loops, rollouts that wait; each with what can
// be done about it and what that would do.

import { get, post } from "./api.js";
import { actButton, confirm } from "./dialog.js";
import { h, link, patch, show } from "./dom.js";
import { ago, applicationOf, counted, encode, pathOf, short } from "./format.js";
import { live } from "./live.js";
import { icon } from "./states.js";

/** So many ends of its own within so long are a crash loop. */
const LOOP_TIMES = 3;
const LOOP_MS = 10 * 60 * 1000;

/** Everything that needs an operator, the worst first. */
export function problemsOf({ status, components, vms, now }) {
  const problems = [];
  for (const vm of vms.values()) {
    if (vm.health === "lost" && !vm.past) problems.push({ key: `lost ${vm.name}`, sort: "lost", rank: 0, vm, application: applicationOf(vm.name) });
    if (vm.health === "suspected") problems.push({ key: `suspected ${vm.name}`, sort: "suspected", rank: 2, vm, application: applicationOf(vm.name) });
  }
  for (const component of components.values()) {
    const deaths = component.deaths;
    const application = applicationOf(component.name);
    if (component.state === "failed") problems.push({ key: `failed ${component.name}`, sort: "failed", rank: 1, component, application });
    else if (deaths && deaths.times >= LOOP_TIMES && now - deaths.last_at_ms < LOOP_MS) problems.push({ key: `loop ${component.name}`, sort: "loop", rank: 3, component, application });
  }
  for (const { name, rollout } of status.applications) {
    if (rollout && rollout.state.is !== "running") problems.push({ key: `rollout ${name}`, sort: rollout.state.is, rank: 4, rollout, application: name });
  }
  return problems.sort((one, other) => one.rank - other.rank || one.key.localeCompare(other.key));
}

/** The changes that wait for a component, so that cancelling can be offered. */
function stuckOn(component) {
  return live.status.changes.filter((it) => it.stuck_on.includes(component.name));
}

const path = (component, verb) => `/v1/components/${encode(component.name)}/${verb}`;

export function retry(context, component) {
  confirm({
    title: `Retry ${component.failed_operation ?? "the operation"} of ${component.name}?`, action: "Retry",
    says: [`The agent of ${component.vm} carries out ${component.failed_operation ?? "the failed operation"} again, with all its retries.`,
      "If it succeeds, everything that waited for it goes on by itself. If it fails, it is shown here again."],
    act: () => post(path(component, "retry")),
  });
}

export function skip(context, component) {
  confirm({
    title: `Skip ${component.failed_operation ?? "the operation"} of ${component.name}?`, action: "Skip", danger: true,
    says: [`The failed ${component.failed_operation ?? "operation"} is marked as done, although it did not succeed. Nothing is run.`,
      component.failed_operation === "stop" ? "What it should have stopped may still be running on the machine." : "Its dependents are started as if it worked, and may fail because it did not."],
    act: () => post(path(component, "skip")),
  });
}

export function rollBack(context, application) {
  let plan;
  confirm({
    title: `Roll ${application} back?`, action: "Roll back", danger: true,
    says: async () => {
      plan = await post("/v1/rollback?dry-run=true", { application });
      return wordsOf(plan, `The manager makes ${application} as it was in the version before.`);
    },
    act: async () => {
      const { change } = await post("/v1/rollback", { application });
      if (change) context.go(pathOf.change(change));
    },
  });
}

export function cancel(context, change) {
  confirm({
    title: `Cancel change ${change}?`, action: "Cancel the change", danger: true,
    says: async () => {
      const { will } = await post(`/v1/changes/${change}/cancel?dry-run=true`);
      return will.map((it) => `${it[0].toUpperCase()}${it.slice(1)}.`);
    },
    act: () => post(`/v1/changes/${change}/cancel`),
  });
}

export function declareLost(context, vm) {
  confirm({
    title: `Declare ${vm.name} lost?`, action: "Declare lost", danger: true,
    says: [`The manager gives ${vm.name} up: its ${counted(vm.components, "component")} count as gone, and what needed them strongly stops.`,
      "Do this only if the machine is really down. If it is alive but cut off, its components keep running there until its agent hears of this.",
      applicationOf(vm.name) ? `Afterwards, reconcile ${applicationOf(vm.name)} to start the components elsewhere.` : "Afterwards, place its components elsewhere."],
    act: () => post(`/v1/vms/${encode(vm.name)}/lost`),
  });
}

export function reconcile(context, application) {
  confirm({
    title: `Reconcile ${application}?`, action: "Reconcile",
    says: async () => wordsOf(await post("/v1/reconcile?dry-run=true", { names: [application] }), `The manager makes ${application} again as it was applied.`),
    act: async () => {
      const { change } = await post("/v1/reconcile", { names: [application] });
      if (change) context.go(pathOf.change(change));
    },
  });
}

export function promote(context, rollout) {
  confirm({
    title: "Continue the rollout?", action: "Continue",
    says: [`Step ${rollout.step} of ${rollout.steps} is done. The manager replaces the remaining components step by step.`],
    act: () => post(`/v1/changes/${rollout.change}/promote`),
  });
}

/** What a plan would do, in a few sentences. */
export function wordsOf(plan, first) {
  const { forecast } = plan;
  if (forecast.refused?.length) return [first, "The manager would refuse this:", ...forecast.refused];
  const words = [first];
  if (!plan.edits) words.push("Nothing has to be changed.");
  else {
    words.push(`${counted(forecast.starts, "start")}, ${counted(forecast.stops, "stop")}${forecast.seconds === undefined ? "" : `, about ${forecast.seconds.toFixed(1)} s`}.`);
    words.push(forecast.stopped?.length ? `Stopped for a while: ${forecast.stopped.join(", ")}.` : "Nothing that stays is stopped on the way.");
  }
  return words;
}

export async function toDrain(context, vm, verb) {
  confirm({
    title: verb === "drain" ? `Drain ${vm.name}?` : `Use ${vm.name} again?`, action: verb === "drain" ? "Drain" : "Use again",
    says: async () => wordsOf(await post(`/v1/${verb}?dry-run=true`, { vm: vm.name }), verb === "drain" ? "All its components move elsewhere, in safe order." : "Components may be placed on it again."),
    act: async () => {
      const { change } = await post(`/v1/${verb}`, { vm: vm.name });
      if (change) context.go(pathOf.change(change));
    },
  });
}

/** The buttons for a problem. */
export function remedies(context, problem) {
  const { sort, component, vm, rollout, application } = problem;
  const buttons = [];
  if (sort === "failed") {
    buttons.push(actButton(context, "Retry", () => retry(context, component), { primary: true, key: `retry ${component.name}` }));
    buttons.push(actButton(context, "Skip", () => skip(context, component), { key: `skip ${component.name}` }));
    for (const { change } of stuckOn(component)) buttons.push(actButton(context, `Cancel change ${change}`, () => cancel(context, change), { key: `cancel ${change}` }));
  }
  if (sort === "lost" && application) buttons.push(actButton(context, `Reconcile ${application}`, () => reconcile(context, application), { primary: true, key: `reconcile ${application}` }));
  if (sort === "suspected") buttons.push(actButton(context, "Declare lost", () => declareLost(context, vm), { danger: true, key: `lost ${vm.name}` }));
  if (sort === "canary" || sort === "blocked") {
    buttons.push(actButton(context, "Continue", () => promote(context, rollout), { primary: true, key: `promote ${rollout.change}` }));
    buttons.push(actButton(context, "Cancel the rollout", () => cancel(context, rollout.change), { danger: true, key: `cancel ${rollout.change}` }));
  }
  if ((sort === "failed" || sort === "loop") && application && live.status.applications.find((it) => it.name === application)?.version > 1) {
    buttons.push(actButton(context, "Roll back", () => rollBack(context, application), { key: `rollback ${application}` }));
  }
  return buttons;
}

function heading({ sort, component, vm, rollout, application }) {
  switch (sort) {
    case "failed": return [link(pathOf.component(component.name), component.name), `: ${component.failed_operation ?? "run"} failed`];
    case "loop": return [link(pathOf.component(component.name), component.name), `: ended by itself ${counted(component.deaths.times, "time")}`];
    case "lost": return [link(pathOf.machine(vm.name), vm.name), " is lost"];
    case "suspected": return [link(pathOf.machine(vm.name), vm.name), " does not answer"];
    case "canary": return [link(pathOf.application(application), application), `: canaries run, step ${rollout.step} of ${rollout.steps}`];
    default: return [link(pathOf.application(application), application), ": the next step was refused"];
  }
}

function explained({ sort, component, vm, rollout }) {
  switch (sort) {
    case "failed": {
      const waiting = stuckOn(component);
      return waiting.length ? `${waiting.map((it) => `Change ${it.change}`).join(", ")} waits until you act.` : "It stays as it is until you act.";
    }
    case "loop": return `Last ${ago(component.deaths.last_at_ms, live.now)}. Its agent starts it again each time, with a growing pause.`;
    case "lost": return `Its ${counted(vm.components, "component")} count as gone.`;
    case "suspected": return "Its components keep running, and everything goes on when it answers again: waiting is safe. Declare it lost only if it is down for good.";
    case "canary": return rollout.state.promotes_at_ms ? `It continues by itself ${ago(2 * live.now - rollout.state.promotes_at_ms, live.now).replace("ago", "from now")}.` : "The rest waits until you continue or cancel.";
    default: return (rollout.state.reasons ?? []).join(" ");
  }
}

/** One problem as a card. */
export function problemCard(context, problem) {
  const output = problem.component?.failure?.trim();
  const state = { failed: "failed", lost: "failed", suspected: "stopping", loop: "stopping", canary: "starting", blocked: "failed" }[problem.sort];
  return h("article", { class: `problem problem-${problem.sort}` },
    h("h3", {}, icon(state), h("span", {}, ...heading(problem))),
    h("p", { class: "quiet" }, explained(problem)),
    output ? h("pre", { class: "output", tabindex: 0, "aria-label": "The end of its output" }, output.split("\n").slice(-8).join("\n")) : undefined,
    h("div", { class: "buttons" }, remedies(context, problem)));
}

/** A list of problems that is patched as they come and go. */
export function problemList(context, element, problems) {
  patch(element, problems, (it) => it.key, () => h("li"), (item, problem) => {
    const stuck = problem.component ? stuckOn(problem.component).map((it) => it.change).join() : "";
    const key = JSON.stringify([problem.sort, problem.component?.failure, problem.component?.failed_operation, problem.component?.deaths?.times, problem.vm?.components, problem.rollout?.state, problem.rollout?.step, stuck]);
    show(item, key, () => problemCard(context, problem));
  });
}

/** The page. */
export function attention(element, context) {
  const list = h("ul", { class: "problems" });
  const calm = h("div", { class: "calm", hidden: true }, icon("started"), h("p", {}, "Nothing needs you."), h("p", { class: "quiet" }, "Failed operations, machines that do not answer, crash loops and rollouts that wait appear here by themselves."));
  const drift = h("section", { hidden: true });
  element.append(h("header", { class: "page-head" }, h("h1", {}, "Needs you")), list, calm, drift);
  const update = () => {
    if (!live.status) return;
    const problems = problemsOf(live);
    problemList(context, list, problems);
    calm.hidden = problems.length > 0;
    const differing = live.status.applications.map((it) => it.name).filter((name) => live.status.attention.some((line) => line.startsWith(`${name}: `) && line.includes("holdfast reconcile")));
    drift.hidden = !differing.length;
    show(drift, differing.join(), () => [h("h2", {}, "Differs from what was applied"), h("ul", { class: "plain-list" }, differing.map((name) => h("li", {},
      link(pathOf.application(name), name), " ",
      h("span", { class: "quiet" }, live.status.attention.filter((line) => line.startsWith(`${name}: `)).map((it) => short(it.replace(`${name}: `, "")).replace(/ \(holdfast reconcile.*/, "")).join("; ")), " ",
      actButton(context, "Reconcile", () => reconcile(context, name), { key: `reconcile ${name}` }))))]);
  };
  update();
  return live.watch(update);
}
