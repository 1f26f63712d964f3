// The messages of a change as a sequence chart: one lifeline for the manager and each machine, time goes down. It grows as
// messages arrive; acknowledgements that say nothing are left out by the manager.

import { h, patch, s, text } from "./dom.js";
import { lasting, short } from "./format.js";

const ARROW = 23;
const MARK = 18;
const GAP = 7;
/** More rows than these are shown only if they are asked for. */
const ROWS_MAX = 250;
/** Messages that only ask whether all that was sent has arrived. */
const NOISE = new Set(["roll call"]);
const SORTS = [["order", "order"], ["report", "report"], ["bind", "where a provider is"], ["lend", "lent"], ["recall", "recalled"], ["home", "returned"]];

export class Chart {
  #all = false;
  #story;
  #tops = [];

  constructor() {
    this.head = s("svg", { class: "chart-head", height: 54 });
    this.back = s("g", {});
    this.rows = s("g", {});
    this.cursor = s("path", { class: "chart-cursor" });
    this.svg = s("svg", { class: "chart", role: "img" }, heads(), this.back, this.rows, this.cursor);
    this.scroller = h("div", { class: "chart-scroll", tabindex: 0, role: "region", "aria-label": "Sequence chart" }, this.head, this.svg);
    this.more = h("button", { type: "button", class: "plain", hidden: true, onclick: () => { this.#all = true; this.show(this.#story); } });
    this.element = h("div", {}, this.scroller, this.more,
      h("p", { class: "legend flat" }, SORTS.map(([sort, word]) => h("span", {}, h("i", { class: `key-line ${sort}` }), word))));
  }

  show(story) {
    this.#story = story;
    // Machines that took no part are left out.
    const used = new Set([0, ...story.rows.map((it) => it.lifeline), ...story.messages.flatMap((it) => [it.from, it.to])]);
    const places = new Map([...used].sort((one, other) => one - other).map((it, place) => [it, place]));
    const lifelines = story.lifelines.filter((_, place) => used.has(place));
    const phone = window.innerWidth < 640;
    const lane = phone ? 150 : lifelines.length <= 4 ? 250 : lifelines.length <= 8 ? 190 : 160;
    const left = phone ? 96 : 128;
    const x = (lifeline) => left + places.get(lifeline) * lane;
    const at = (place) => left + place * lane;
    const width = left + (lifelines.length - 1) * lane + 170;
    const arrivals = new Map();
    for (const message of story.messages) if (message.arrived !== undefined && !NOISE.has(message.text)) arrivals.set(message.arrived, message);
    let y = 10;
    const told = story.rows.map((row, number) => ({ row, number, message: arrivals.get(number) })).filter((it) => it.message || it.row.marks.length);
    const hidden = this.#all ? 0 : Math.max(0, told.length - ROWS_MAX);
    const rows = told.slice(0, told.length - hidden).map(({ row, number, message }) => {
      const item = { number, row, message, y };
      y += Math.max((message ? ARROW : 0) + row.marks.length * MARK, MARK) + GAP;
      return item;
    });
    this.#tops = rows;
    const height = y + 12;
    for (const svg of [this.head, this.svg]) {
      svg.setAttribute("width", width);
      svg.setAttribute("viewBox", `0 0 ${width} ${svg === this.head ? 54 : height}`);
    }
    this.svg.setAttribute("height", height);
    this.svg.setAttribute("aria-label", `${story.messages.length} messages between ${lifelines.map((it) => it.name).join(", ")}`);
    patch(this.head, lifelines.map((it, place) => ({ ...it, place })), (it) => it.name, () => s("g", {}, s("rect", { class: "head-box", y: 6, height: 26, rx: 8 }), s("text", { class: "head-name", y: 24 }), s("text", { class: "head-parts", y: 47 })), (element, it) => {
      const [box, name, parts] = element.children;
      const words = short(it.name);
      const breadth = Math.max(72, words.length * 8 + 26);
      box.setAttribute("x", at(it.place) - breadth / 2);
      box.setAttribute("width", breadth);
      name.setAttribute("x", at(it.place));
      text(name, words);
      parts.setAttribute("x", at(it.place));
      text(parts, cut(it.components.map(short).join(" · "), Math.floor(lane / 6.2)));
    });
    patch(this.back, lifelines, (it) => it.name, () => s("path", { class: "life" }), (element, it) => {
      element.setAttribute("d", `M${at(lifelines.indexOf(it))} 0V${height}`);
    });
    const begin = story.rows[0]?.at_ms ?? 0;
    // A new lifeline moves the others.
    if (this.shape !== `${[...places]} ${lane}`) this.rows.replaceChildren();
    this.shape = `${[...places]} ${lane}`;
    patch(this.rows, rows, (it) => it.number, (it) => this.#makeRow(it, x, begin), () => {});
    this.more.hidden = !hidden;
    text(this.more, `Show ${hidden} more rows`);
  }

  #makeRow({ row, message, y, number }, x, begin) {
    const parts = [s("text", { class: "moment", x: 52, y: y + 14 }, lasting(row.at_ms - begin))];
    let top = y;
    if (message) {
      const [from, to] = [x(message.from), x(message.to)];
      const way = Math.sign(to - from) || 1;
      parts.push(s("path", { class: `letter ${message.sort}`, d: `M${from + way * 5} ${top + 16}H${to - way * 8}`, "marker-end": `url(#letter-${message.sort})` }),
        s("text", { class: "letter-words", x: (from + to) / 2, y: top + 11 }, cut(unscoped(message.text), Math.max(16, Math.floor(Math.abs(to - from) / 5.8)))),
        s("title", {}, message.text));
      top += ARROW;
    }
    for (const mark of row.marks) {
      parts.push(s("circle", { class: `dot ${mark.sort}`, cx: x(row.lifeline), cy: top + 8, r: 4.5 }), s("text", { class: "mark-words", x: x(row.lifeline) + 11, y: top + 12 }, cut(unscoped(mark.text), 34)));
      top += MARK;
    }
    return s("g", { class: "chart-row", "data-number": number }, parts);
  }

  /** What has not happened by then is dimmed. */
  at(moment, follow) {
    const last = this.#tops.findLast((it) => it.row.at_ms <= moment);
    for (const element of this.rows.children) element.classList.toggle("later", Number(element.dataset.id) > (last?.number ?? -1));
    const y = last ? last.y + 4 : 0;
    if (follow) this.scroller.scrollTo({ top: Math.max(0, y - 260), behavior: "instant" });
  }
}

/** Names without their application: a chart is about one. */
function unscoped(words) {
  return words.replace(/\b[\w-]+\/(?=[\w-]+\[)/g, "");
}

function cut(words, letters) {
  return words.length <= letters ? words : `${words.slice(0, letters - 1)}…`;
}

function heads() {
  const sorts = [...SORTS.map(([sort]) => sort), "acknowledgement"];
  return s("defs", {}, sorts.map((sort) => s("marker", { id: `letter-${sort}`, viewBox: "0 0 8 8", refX: 3, refY: 4, markerWidth: 8, markerHeight: 8, markerUnits: "userSpaceOnUse", orient: "auto" }, s("path", { class: `letter-head ${sort}`, d: "M0 0 L8 4 L0 8 z" }))));
}
