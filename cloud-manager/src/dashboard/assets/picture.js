// The picture of an application: machines as boxes, components inside, bindings as arrows from client to provider.
//
// It is drawn from a configuration and patched in place: what stays keeps its element, so that it moves smoothly to its new
// place. The same picture shows the present and, in a replay, any moment of the past.

import { announce, h, patch, s, text } from "./dom.js";
import { counted, pathOf, short } from "./format.js";
import { COLLAPSE_AT, arrange, curve } from "./layout.js";
import { BINDING_WORDS, HEALTH, STATES, bindingState, icon, mark } from "./states.js";

const SCALE_MIN = 0.12;
const SCALE_MAX = 2.5;
const MARGIN = 26;

export class Picture {
  #data = { vms: [], components: [], bindings: [] };
  #shape = "";
  #arranged;
  #open = new Set();
  #view = { x: 0, y: 0, scale: 1 };
  #fitted = true;
  #search = "";
  #focus;
  #components = new Map();
  #narrow = false;

  constructor({ name, height = 520, links = true } = {}) {
    this.links = links;
    this.world = s("g", { class: "world" });
    this.arrows = s("g", { class: "arrows" });
    this.boxes = s("g", { class: "boxes" });
    this.world.append(this.arrows, this.boxes);
    this.svg = s("svg", {
      class: "picture", tabindex: 0, role: "group", "aria-roledescription": "diagram",
      "aria-label": `Machines and components of ${name}. Arrow keys move, plus and minus zoom, 0 fits.`,
    }, arrowHeads(), this.world);
    this.svg.style.height = `${height}px`;
    this.counter = h("span", { class: "quiet search-count", "aria-live": "polite" });
    this.input = h("input", {
      type: "search", placeholder: "Find a component or machine", "aria-label": "Find a component or machine",
      oninput: () => this.#find(this.input.value), onkeydown: (event) => event.key === "Enter" && this.#next(),
    });
    const button = (label, title, act) => h("button", { type: "button", class: "tool", title, "aria-label": title, onclick: act }, label);
    this.collapse = h("button", { type: "button", class: "tool wide", hidden: true, onclick: () => this.#collapseAll() }, "Collapse all");
    this.element = h("figure", { class: "picture-frame" },
      h("div", { class: "picture-tools" }, this.input, this.counter, h("span", { class: "grow" }), this.collapse,
        button("−", "Zoom out", () => this.#zoom(1 / 1.3)), button("+", "Zoom in", () => this.#zoom(1.3)),
        button("Fit", "Fit into the window", () => this.fit())),
      this.svg, legend());
    this.#listen();
  }

  /** Shows a configuration. States may differ from the last time without anything moving. */
  show(data) {
    this.#data = data;
    this.#components = new Map(data.components.map((it) => [it.name, it]));
    const shape = JSON.stringify([
      data.vms.map((it) => it.name), data.components.map((it) => [it.name, it.vm]),
      data.bindings.map((it) => it.binding + it.need), [...this.#open],
    ]);
    if (shape !== this.#shape || this.#narrow !== this.#isNarrow()) {
      this.#shape = shape;
      this.#narrow = this.#isNarrow();
      this.#arranged = arrange(data, this.#open, this.#narrow);
      this.collapse.hidden = !(data.components.length > COLLAPSE_AT && this.#open.size);
      if (this.#fitted) this.fit();
    } else {
      // The same rows, with components as they are now.
      const { boxes, rowOf, arrows } = this.#arranged;
      for (const box of boxes) {
        box.vms = box.vms.map((it) => data.vms.find((vm) => vm.name === it.name) ?? it);
        for (const row of box.rows.values()) row.components = [];
      }
      for (const component of data.components) rowOf.get(component.name)?.components.push(component);
      for (const arrow of arrows) arrow.bindings = [];
      const byKey = new Map(arrows.map((it) => [it.key, it]));
      for (const binding of data.bindings) {
        const [from, to] = [rowOf.get(binding.client), rowOf.get(binding.provider)];
        if (from && to) byKey.get(`${from.key} → ${to.key}`)?.bindings.push(binding);
      }
    }
    this.#draw();
  }

  /** Makes everything visible, but not larger than life. */
  fit() {
    if (this.#narrow !== this.#isNarrow()) {
      this.show(this.#data);
      return;
    }
    const { width: bare, height } = this.#arranged ?? { width: 1, height: 1 };
    // Arrows bend around the only column.
    const width = this.#narrow ? bare + 70 : bare;
    const frame = this.svg.getBoundingClientRect();
    if (!frame.width) {
      requestAnimationFrame(() => this.svg.isConnected && this.svg.getBoundingClientRect().width && this.fit());
      return;
    }
    const wide = frame.width - MARGIN * 2;
    const scale = Math.min(wide / width, 1.15);
    // A small picture needs no empty room below it, and a large one not more than the screen.
    const tall = Math.min(Math.max(height * scale + MARGIN * 2, 200), Math.max(360, window.innerHeight * 0.68));
    this.svg.style.height = `${tall}px`;
    const fitting = Math.max(SCALE_MIN, Math.min(scale, (tall - MARGIN * 2) / height));
    this.#view = { scale: fitting, x: (frame.width - width * fitting) / 2, y: (tall - height * fitting) / 2 };
    this.#fitted = true;
    this.#look();
  }

  #isNarrow() {
    const { width } = this.svg.getBoundingClientRect();
    return width > 0 && width < 560;
  }

  #look() {
    const { x, y, scale } = this.#view;
    this.world.setAttribute("transform", `translate(${x.toFixed(1)} ${y.toFixed(1)}) scale(${scale.toFixed(4)})`);
  }

  #zoom(factor, at) {
    const frame = this.svg.getBoundingClientRect();
    const point = at ?? { x: frame.width / 2, y: frame.height / 2 };
    const scale = Math.min(SCALE_MAX, Math.max(SCALE_MIN, this.#view.scale * factor));
    const ratio = scale / this.#view.scale;
    this.#view = { scale, x: point.x - (point.x - this.#view.x) * ratio, y: point.y - (point.y - this.#view.y) * ratio };
    this.#fitted = false;
    this.#look();
  }

  #pan(dx, dy) {
    this.#view.x += dx;
    this.#view.y += dy;
    this.#fitted = false;
    this.#look();
  }

  #listen() {
    const pointers = new Map();
    let moved = 0;
    let spread = 0;
    this.svg.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      pointers.set(event.pointerId, event);
      moved = 0;
      spread = 0;
    });
    this.svg.addEventListener("pointermove", (event) => {
      const last = pointers.get(event.pointerId);
      if (!last) return;
      pointers.set(event.pointerId, event);
      moved += Math.abs(event.clientX - last.clientX) + Math.abs(event.clientY - last.clientY);
      if (pointers.size === 2) {
        const [one, other] = [...pointers.values()];
        const distance = Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY);
        const frame = this.svg.getBoundingClientRect();
        const middle = { x: (one.clientX + other.clientX) / 2 - frame.left, y: (one.clientY + other.clientY) / 2 - frame.top };
        if (spread) this.#zoom(distance / spread, middle);
        spread = distance;
      } else if (moved > 4) {
        if (!this.svg.hasPointerCapture(event.pointerId)) this.svg.setPointerCapture(event.pointerId);
        this.svg.classList.add("dragging");
        this.#pan(event.clientX - last.clientX, event.clientY - last.clientY);
      }
    });
    const end = (event) => {
      pointers.delete(event.pointerId);
      this.svg.classList.remove("dragging");
    };
    this.svg.addEventListener("pointerup", end);
    this.svg.addEventListener("pointercancel", end);
    // The end of a drag is not a click.
    this.svg.addEventListener("click", (event) => moved > 4 && (event.preventDefault(), event.stopPropagation()), true);
    this.svg.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      const frame = this.svg.getBoundingClientRect();
      this.#zoom(Math.exp(-event.deltaY / 200), { x: event.clientX - frame.left, y: event.clientY - frame.top });
    }, { passive: false });
    this.svg.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const step = 60;
      const acts = {
        ArrowLeft: () => this.#pan(step, 0), ArrowRight: () => this.#pan(-step, 0),
        ArrowUp: () => this.#pan(0, step), ArrowDown: () => this.#pan(0, -step),
        "+": () => this.#zoom(1.3), "=": () => this.#zoom(1.3), "-": () => this.#zoom(1 / 1.3), 0: () => this.fit(),
      };
      if (!acts[event.key]) return;
      event.preventDefault();
      acts[event.key]();
    });
    const emphasise = (event) => {
      const row = event.target.closest?.(".row")?.dataset.id;
      if (row === this.#focus) return;
      this.#focus = row;
      this.#emphasis();
    };
    this.svg.addEventListener("pointerover", emphasise);
    this.svg.addEventListener("focusin", emphasise);
    this.svg.addEventListener("pointerleave", () => emphasise({ target: this.svg }));
    this.observer = new ResizeObserver(() => this.#fitted && this.#arranged && this.fit());
    this.observer.observe(this.svg);
  }

  /** What is bound to the row under the pointer stands out. */
  #emphasis() {
    const wanted = new Set();
    if (this.#focus) {
      wanted.add(this.#focus);
      for (const arrow of this.#arranged.arrows) {
        if (arrow.from.key === this.#focus) wanted.add(arrow.to.key);
        if (arrow.to.key === this.#focus) wanted.add(arrow.from.key);
      }
    }
    const isFound = (row) => row.components.some((it) => this.#matches(it));
    const dims = this.#focus || this.#search;
    this.svg.classList.toggle("dims", Boolean(dims));
    for (const element of this.boxes.querySelectorAll(".row")) {
      const row = this.#arranged.boxes.flatMap((it) => [...it.rows.values()]).find((it) => it.key === element.dataset.id);
      element.classList.toggle("stands-out", wanted.has(element.dataset.id) || Boolean(this.#search && row && isFound(row)));
    }
    for (const element of this.arrows.children) {
      const [from, to] = element.dataset.id.split(" → ");
      element.classList.toggle("stands-out", Boolean(this.#focus) && (from === this.#focus || to === this.#focus));
    }
  }

  #matches(component) {
    return this.#search && (component.name.toLowerCase().includes(this.#search) || component.vm.toLowerCase().includes(this.#search));
  }

  #find(words) {
    this.#search = words.trim().toLowerCase();
    const found = this.#data.components.filter((it) => this.#matches(it));
    text(this.counter, this.#search ? counted(found.length, "match", "matches") : "");
    this.#emphasis();
  }

  /** Opens the group of the first match, and brings it to the middle. */
  #next() {
    const component = this.#data.components.find((it) => this.#matches(it));
    if (!component) return;
    for (let round = 0; round < 2; round += 1) {
      const row = this.#arranged.rowOf.get(component.name);
      if (row.box.grouped) this.#open.add(row.box.group);
      else if (row.opens) this.#open.add(row.opens);
      else break;
      this.#fitted = false;
      this.show(this.#data);
    }
    const row = this.#arranged.rowOf.get(component.name);
    const frame = this.svg.getBoundingClientRect();
    const scale = Math.max(this.#view.scale, 0.8);
    this.#view = {
      scale,
      x: frame.width / 2 - (row.box.x + row.dx + row.width / 2) * scale,
      y: frame.height / 2 - (row.box.y + row.dy + row.height / 2) * scale,
    };
    this.#fitted = false;
    this.#look();
    this.#find(this.input.value);
  }

  #toggle(key) {
    if (this.#open.has(key)) this.#open.delete(key);
    else this.#open.add(key);
    announce(this.#open.has(key) ? `${key} opened` : `${key} collapsed`);
    this.#fitted = true;
    this.show(this.#data);
  }

  #collapseAll() {
    this.#open.clear();
    this.#fitted = true;
    this.show(this.#data);
  }

  #draw() {
    const { boxes, arrows } = this.#arranged;
    patch(this.boxes, boxes, (box) => box.key, (box) => this.#makeBox(box), (element, box) => this.#updateBox(element, box));
    const bundles = arrows.filter((it) => it.bindings.length).map((arrow) => ({ ...arrow, ...bundle(arrow, this.#components) }));
    patch(this.arrows, bundles, (it) => it.key, () => s("g", { class: "arrow" }, s("path", {}), s("title", {})), (element, it) => {
      const [path, title] = element.children;
      path.setAttribute("d", curve(it));
      path.setAttribute("class", `${it.need} ${it.state}`);
      path.setAttribute("marker-end", `url(#head-${it.need}-${it.state})`);
      const breadth = { strong: 1.7, weak: 1.15, value: 1.15 }[it.need] + Math.min(Math.log2(it.bindings.length), 5) * 0.35;
      path.setAttribute("stroke-width", breadth.toFixed(2));
      text(title, it.words);
    });
    if (this.#focus || this.#search) this.#emphasis();
  }

  #makeBox(box) {
    const name = h("span");
    const head = box.canCollapse
      ? s("g", { class: "box-head can-open", tabindex: 0, role: "button" })
      : this.links ? s("a", { class: "box-head", href: pathOf.machine(box.key) }) : s("g", { class: "box-head" });
    if (box.canCollapse) {
      head.addEventListener("click", () => this.#toggle(box.group));
      head.addEventListener("keydown", (event) => (event.key === "Enter" || event.key === " ") && (event.preventDefault(), this.#toggle(box.group)));
    }
    head.append(s("rect", { class: "hit", height: 30 }), s("text", { class: "box-name", x: 12, y: 21 }), s("text", { class: "box-note", y: 21 }));
    name.remove();
    return s("g", { class: "box" }, s("rect", { class: "frame", rx: 9 }), head, s("g", { class: "rows" }));
  }

  #updateBox(element, box) {
    const [frame, head, rows] = element.children;
    element.style.transform = `translate(${box.x}px, ${box.y}px)`;
    const health = worst(box.vms);
    element.setAttribute("class", `box health-${health}${box.grouped ? " grouped" : ""}${box.vms.some((it) => it.leaving) ? " leaving" : ""}`);
    frame.setAttribute("width", box.width);
    frame.setAttribute("height", box.height);
    const [hit, name, note] = head.children;
    hit.setAttribute("width", box.width);
    const drained = box.vms.filter((it) => it.drained).length;
    text(name, box.grouped ? `${box.group} ×${box.vms.length}` : short(box.key));
    const ill = box.vms.filter((it) => it.health !== "well");
    const words = ill.length ? (box.grouped ? `${ill.length} ${HEALTH[health]}` : HEALTH[health]) : drained ? "drained" : box.canCollapse ? (box.grouped ? "open" : "collapse") : "";
    text(note, words);
    note.setAttribute("x", box.width - 12);
    head.setAttribute("aria-label", `${box.grouped ? `${box.vms.length} machines ${box.group}` : `Machine ${short(box.key)}`}${words ? `, ${words}` : ""}`);
    if (box.canCollapse) head.setAttribute("aria-expanded", String(!box.grouped));
    patch(rows, [...box.rows.values()], (row) => row.key, (row) => this.#makeRow(row), (it, row) => updateRow(it, row));
  }

  #makeRow(row) {
    const rect = s("rect", { class: "cell", rx: 6 });
    const label = s("text", { class: "label", y: 17 });
    let element;
    if (row.together) {
      element = s("g", { class: "row together" }, rect, label, s("g", { class: "strip" }), s("text", { class: "tally", y: 17 }));
      if (row.opens) {
        element.setAttribute("tabindex", 0);
        element.setAttribute("role", "button");
        element.addEventListener("click", () => this.#toggle(row.opens));
        element.addEventListener("keydown", (event) => event.key === "Enter" && this.#toggle(row.opens));
      } else {
        element.addEventListener("click", () => this.#toggle(row.box.group));
      }
    } else {
      element = this.links ? s("a", { class: "row", href: pathOf.component(row.key) }) : s("g", { class: "row" });
      element.append(rect, label, s("g", { class: "sign" }), s("text", { class: "word", y: 17 }), s("title", {}));
    }
    return element;
  }
}

function worst(vms) {
  return ["lost", "suspected", "awaited", "well"].find((health) => vms.some((it) => it.health === health)) ?? "well";
}

function updateRow(element, row) {
  element.style.transform = `translate(${row.dx}px, ${row.dy}px)`;
  const [rect, label] = element.children;
  rect.setAttribute("width", row.width);
  rect.setAttribute("height", row.height);
  if (row.together) {
    updateTogether(element, row, label);
    return;
  }
  const component = row.components[0];
  if (!component) return;
  const [, , sign, word, title] = element.children;
  element.setAttribute("class", `row state-${component.state}${component.leaving ? " leaving" : ""}${component.ghost ? " ghost" : ""}`);
  label.setAttribute("x", 28);
  text(label, fitted(short(row.key), row.width - 36 - (component.state === "started" ? 0 : 58)));
  if (sign.dataset.state !== component.state) {
    sign.dataset.state = component.state;
    sign.replaceChildren(mark(component.state));
    sign.setAttribute("transform", "translate(9 6.5)");
  }
  const note = component.state === "started" ? "" : STATES[component.state]?.word ?? component.state;
  text(word, note);
  word.setAttribute("x", row.width - 8);
  const waits = component.waits_for?.length ? `\n${component.waits_for.join("\n")}` : "";
  text(title, `${component.name}: ${STATES[component.state]?.word}${waits}`);
  element.setAttribute("aria-label", `${component.name} on ${component.vm}, ${STATES[component.state]?.word}`);
}

/** Many components as one row: a strip with a part for each state, and how many are started. */
function updateTogether(element, row, label) {
  const strip = element.children[2];
  const tally = element.children[3];
  const counts = new Map();
  for (const component of row.components) counts.set(component.state, (counts.get(component.state) ?? 0) + 1);
  const states = Object.keys(STATES).filter((it) => counts.has(it));
  label.setAttribute("x", 10);
  text(label, fitted(`${row.group} ×${row.components.length}`, row.width - 84));
  const key = states.map((it) => `${it}${counts.get(it)}`).join();
  const started = counts.get("started") ?? 0;
  text(tally, started === row.components.length ? "all" : `${started}/${row.components.length}`);
  tally.setAttribute("x", row.width - 8);
  element.setAttribute("class", `row together state-${states[0]}`);
  element.setAttribute("aria-label", `${row.components.length} components ${row.group}: ${states.map((it) => `${counts.get(it)} ${STATES[it].word}`).join(", ")}`);
  if (strip.dataset.states === key && strip.dataset.width === String(row.width)) return;
  strip.dataset.states = key;
  strip.dataset.width = String(row.width);
  const whole = row.width - 12;
  let x = 6;
  strip.replaceChildren(...states.map((it) => {
    const width = (whole * counts.get(it)) / row.components.length;
    const part = s("rect", { class: `part state-${it}`, x, y: row.height - 4, width: Math.max(width - 1, 1), height: 3, rx: 1.5 });
    x += width;
    return part;
  }));
}

function fitted(words, room) {
  const letters = Math.max(3, Math.floor(room / 7));
  return words.length <= letters ? words : `${words.slice(0, Math.ceil(letters / 2) - 1)}…${words.slice(words.length - Math.floor(letters / 2))}`;
}

/** How an arrow that stands for one or more bindings looks, and what it says. */
function bundle(arrow, components) {
  const states = arrow.bindings.map((it) => bindingState(it, components));
  const state = ["recalled", "waiting", "offered", "held"].find((it) => states.includes(it));
  const need = ["strong", "value", "weak"].find((it) => arrow.bindings.some((binding) => binding.need.startsWith(it)));
  const lines = arrow.bindings.slice(0, 8).map((it, place) => `${it.binding}: ${it.need}, ${BINDING_WORDS[states[place]]}`);
  if (arrow.bindings.length > 8) lines.push(`and ${arrow.bindings.length - 8} more`);
  return { state, need, words: lines.join("\n") };
}

/** One arrow head for each need and state: a full one for strong, an open one for weak, a diamond for value. */
function arrowHeads() {
  const heads = [];
  for (const state of ["held", "recalled", "offered", "waiting"]) {
    for (const [need, path] of [["strong", "M1 1 L9 5 L1 9 z"], ["weak", "M2 1 L8 5 L2 9"], ["value", "M1 5 L5 1.5 L9 5 L5 8.5 z"]]) {
      heads.push(s("marker", { id: `head-${need}-${state}`, viewBox: "0 0 10 10", refX: 3, refY: 5, markerWidth: 9, markerHeight: 9, markerUnits: "userSpaceOnUse", orient: "auto" },
        s("path", { class: `head ${need} ${state}`, d: path })));
    }
  }
  return s("defs", {}, heads);
}

function legend() {
  const state = (it) => h("span", {}, icon(it), STATES[it].word);
  const line = (need, binding, words) => h("span", {},
    s("svg", { class: "legend-line", viewBox: "0 0 34 10", width: 34, height: 10, "aria-hidden": "true" },
      s("g", { class: "arrows" }, s("path", { class: `${need} ${binding}`, d: "M1 5H24", "stroke-width": need === "strong" ? 1.8 : 1.2, "marker-end": `url(#head-${need}-${binding})` }))), words);
  return h("figcaption", { class: "legend" },
    ["started", "starting", "stopping", "stopped", "failed", "awaited"].map(state), h("span", { class: "legend-gap" }),
    line("strong", "held", "strong"), line("weak", "held", "weak"), line("value", "held", "value"),
    h("span", { class: "legend-gap" }), line("strong", "offered", "offered"), line("strong", "recalled", "being recalled"), line("strong", "waiting", "waiting"));
}
