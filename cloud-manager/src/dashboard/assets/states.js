// The one visual language of states: a colour, a shape and a word, the same on every page and in every picture.

import { h, s } from "./dom.js";

/** What people read for each state, and in which order problems come first. */
export const STATES = {
  failed: { word: "failed", rank: 0 },
  stopping: { word: "stopping", rank: 1 },
  starting: { word: "starting", rank: 2 },
  stopped: { word: "stopped", rank: 3 },
  awaited: { word: "awaited", rank: 4 },
  started: { word: "started", rank: 5 },
  gone: { word: "removed", rank: 6 },
};

export const HEALTH = {
  lost: "lost",
  suspected: "not answering",
  awaited: "awaited",
  well: "well",
};

/** The shape of a state in a box of 12 by 12: a full dot, a ring, half dots, a cross, a dashed ring. */
export function mark(state, attributes = {}) {
  const group = s("g", { class: `mark state-${state}`, ...attributes });
  const ring = () => s("circle", { class: "ring", cx: 6, cy: 6, r: 4.6 });
  switch (state) {
    case "started":
      group.append(s("circle", { class: "full", cx: 6, cy: 6, r: 5.2 }));
      break;
    case "starting":
      group.append(ring(), s("path", { class: "full", d: "M6 1.4a4.6 4.6 0 0 1 0 9.2z" }));
      break;
    case "stopping":
      group.append(ring(), s("path", { class: "full", d: "M6 10.6a4.6 4.6 0 0 1 0-9.2z" }));
      break;
    case "failed":
      group.append(s("path", { class: "cross", d: "M2 2l8 8M10 2l-8 8" }));
      break;
    case "awaited":
      group.append(s("circle", { class: "ring dashed", cx: 6, cy: 6, r: 4.6 }));
      break;
    case "gone":
      group.append(s("path", { class: "ring", d: "M2 6h8" }));
      break;
    default:
      group.append(ring());
  }
  return group;
}

/** The mark as a small picture in a line of text. */
export function icon(state) {
  return s("svg", { class: "icon", viewBox: "0 0 12 12", width: 12, height: 12, "aria-hidden": "true" }, mark(state));
}

/** Mark and word. */
export function pill(state, word = STATES[state]?.word ?? state) {
  return h("span", { class: `pill state-${state}` }, icon(state), word);
}

/** The health of a machine in the same language. */
export function healthPill(vm) {
  const state = { well: "started", suspected: "stopping", lost: "failed", awaited: "awaited" }[vm.health];
  return pill(state, vm.drained ? `${HEALTH[vm.health]}, drained` : vm.leaving ? "being removed" : HEALTH[vm.health]);
}

/** How a binding stands: held, being recalled, offered, waiting. */
export function bindingState(binding, components) {
  const client = components.get(binding.client);
  const provider = components.get(binding.provider);
  if (binding.held) {
    const ends = binding.leaving || provider?.state === "stopping" || client?.state === "stopping" || provider?.leaving;
    return ends ? "recalled" : "held";
  }
  return provider?.state === "started" ? "offered" : "waiting";
}

export const BINDING_WORDS = {
  held: "held",
  recalled: "being recalled",
  offered: "offered",
  waiting: "waiting for its provider",
};
