// When what was done in a change: one bar for each operation, the critical path marked, waiting with its reason, and what the
// plan predicted beside it.

import { h, s, text } from "./dom.js";
import { applicationOf, lasting, short } from "./format.js";

const ROW = 28;
const TOP = 30;
/** More rows than these are shown only if they are asked for. */
const ROWS_MAX = 40;

/** The largest of 1, 2, 5, 10, … that makes at most so many parts. */
function step(whole, parts) {
  for (let power = 1; ; power *= 10) for (const digit of [1, 2, 5]) if (whole / (digit * power) <= parts) return digit * power;
}

/** Who an operation waited for, as far as bindings tell: a start for its providers, a stop for its clients. */
function waitedFor(operation, operations, bindings) {
  const isStart = operation.operation === "start";
  const partners = new Set(isStart
    ? bindings.filter((it) => it.client === operation.component && !it.need.startsWith("weak")).map((it) => it.provider)
    : bindings.filter((it) => it.provider === operation.component).map((it) => it.client));
  const verb = isStart ? "start" : "stop";
  const ended = operations.filter((it) => partners.has(it.component) && it.operation === verb && it.to_ms !== undefined && it.to_ms <= operation.from_ms + 5);
  return ended.sort((one, other) => other.to_ms - one.to_ms)[0];
}

export class Timeline {
  #all = false;
  #data;
  #cursor;

  constructor({ onSeek }) {
    this.svg = s("svg", { class: "timeline", role: "img" });
    this.more = h("button", { type: "button", class: "plain", hidden: true, onclick: () => { this.#all = true; this.#draw(); } });
    this.words = h("p", { class: "quiet timeline-words" });
    this.element = h("div", { class: "timeline-frame" }, this.words, this.svg, this.more,
      h("p", { class: "legend flat" },
        h("span", {}, h("i", { class: "key critical" }), "on the critical path"), h("span", {}, h("i", { class: "key other" }), "other operation"),
        h("span", {}, h("i", { class: "key waits" }), "waiting"), h("span", {}, h("i", { class: "key predicted" }), "predicted begin"),
        h("span", {}, h("i", { class: "key failed" }), "failed")));
    this.svg.addEventListener("click", (event) => {
      const { begin, end, left, width } = this.scale;
      const x = event.clientX - this.svg.getBoundingClientRect().left;
      if (x > left) onSeek(begin + ((x - left) / width) * (end - begin));
    });
    this.observer = new ResizeObserver(() => this.#data && this.#draw());
    this.observer.observe(this.element);
  }

  /** `begin` and `end` in milliseconds; operations without an end go on until `end`. */
  show(data) {
    this.#data = data;
    this.#draw();
  }

  at(moment) {
    if (!this.scale || !this.#cursor) return;
    const { begin, end, left, width } = this.scale;
    const x = left + ((moment - begin) / Math.max(1, end - begin)) * width;
    this.#cursor.setAttribute("transform", `translate(${Math.min(left + width, Math.max(left, x)).toFixed(1)} 0)`);
  }

  #draw() {
    const { operations, begin, end: last, forecast, bindings } = this.#data;
    const room = this.element.clientWidth;
    if (!room) return;
    const left = Math.min(190, Math.max(96, room * 0.22));
    const predicted = forecast?.seconds === undefined ? undefined : begin + forecast.seconds * 1000;
    // A prediction that was far off must not squeeze what really happened.
    const far = begin + (last - begin) * (this.#data.running ? 8 : 2.5);
    const end = Math.max(last, Math.min(predicted ?? 0, far), begin + 1) + Math.max(last - begin, 1) * 0.02;
    const width = room - left - 14;
    this.scale = { begin, end, left, width };
    const x = (moment) => left + ((moment - begin) / (end - begin)) * width;
    const rows = new Map();
    for (const operation of operations) {
      if (!rows.has(operation.component)) rows.set(operation.component, []);
      rows.get(operation.component).push(operation);
    }
    const one = new Set([...rows.keys()].map((it) => applicationOf(it))).size === 1;
    let names = [...rows.keys()];
    const hidden = this.#all ? 0 : Math.max(0, names.length - ROWS_MAX);
    if (hidden) {
      const isCritical = (name) => rows.get(name).some((it) => it.critical || it.failed);
      names = [...names].sort((a, b) => isCritical(b) - isCritical(a)).slice(0, ROWS_MAX).sort((a, b) => [...rows.keys()].indexOf(a) - [...rows.keys()].indexOf(b));
    }
    this.more.hidden = !hidden;
    text(this.more, `Show ${hidden} more components`);
    const height = TOP + names.length * ROW + 10;
    this.svg.setAttribute("viewBox", `0 0 ${room} ${height}`);
    this.svg.setAttribute("height", height);
    this.svg.setAttribute("aria-label", `Operations over ${lasting(last - begin)}: ${operations.slice(0, 40).map((it) => `${it.operation} ${it.component}`).join(", ")}`);
    const parts = [];
    const tick = step(end - begin, Math.max(2, Math.floor(width / 90)));
    for (let moment = 0; moment <= end - begin; moment += tick) {
      const at = x(begin + moment);
      parts.push(s("path", { class: "tick", d: `M${at} ${TOP - 8}V${height - 6}` }), s("text", { class: "tick-word", x: at, y: 16 }, lasting(moment)));
    }
    const moments = new Map();
    for (const moment of forecast?.moments ?? []) {
      for (const verb of ["stop", "start"]) for (const name of moment[verb]) {
        if (!moments.has(name)) moments.set(name, []);
        moments.get(name).push({ verb, at: begin + moment.at * 1000 });
      }
    }
    const isPhone = room < 520;
    for (const [place, name] of names.entries()) {
      const y = TOP + place * ROW;
      parts.push(s("a", { href: `/components/${encodeURIComponent(name)}` }, s("text", { class: "row-name", x: left - 10, y: y + 15 }, cut(one ? short(name) : name, isPhone ? 12 : 26))));
      let before = begin;
      for (const [number, operation] of rows.get(name).entries()) {
        const next = rows.get(name)[number + 1];
        const from = x(operation.from_ms);
        const to = x(operation.to_ms ?? last);
        if (from - x(before) > 6) {
          const partner = waitedFor(operation, operations, bindings);
          const reason = partner ? `waits for ${short(partner.component)}` : "waits";
          parts.push(s("g", { class: "waiting" }, s("path", { d: `M${x(before)} ${y + 10}H${from}` }), s("title", {}, reason),
            partner && from - x(before) > reason.length * 6.4 + 12 ? s("text", { x: (from + x(before)) / 2, y: y + 13.5 }, reason) : undefined));
        }
        const running = operation.to_ms === undefined;
        const long = `${operation.operation} ${lasting((operation.to_ms ?? last) - operation.from_ms)}`;
        const inside = to - from > long.length * 6.6 + 10;
        parts.push(s("g", { class: `bar ${operation.critical ? "critical" : "other"} ${operation.operation}${operation.failed ? " failed" : ""}${running ? " running" : ""}` },
          s("rect", { x: from, y, width: Math.max(to - from, 3), height: 20, rx: 4 }),
          inside ? s("text", { class: "inside", x: from + 7, y: y + 14 }, long) : !isPhone && to + operation.operation.length * 7 + 16 < (next ? x(next.from_ms) : room - 20) ? s("text", { class: "beside", x: to + 6, y: y + 14 }, operation.failed ? `${operation.operation} failed` : operation.operation) : undefined,
          s("title", {}, `${operation.operation} ${name}: ${lasting((operation.to_ms ?? last) - operation.from_ms)}${operation.critical ? ", on the critical path" : ""}${operation.failed ? ", failed" : ""}`)));
        before = operation.to_ms ?? last;
      }
      for (const { verb, at } of moments.get(name) ?? moments.get(short(name)) ?? []) {
        if (at > end) continue;
        parts.push(s("path", { class: "predicted", d: `M${x(at)} ${y - 1}l4 -5h-8z` }, s("title", {}, `predicted to begin its ${verb} at ${lasting(at - begin)}`)));
      }
    }
    if (predicted !== undefined && predicted <= end) parts.push(s("path", { class: "predicted-end", d: `M${x(predicted)} ${TOP - 10}V${height - 6}` }, s("title", {}, `predicted end: ${lasting(predicted - begin)}`)));
    this.#cursor = s("g", { class: "cursor" }, s("path", { d: `M0 20V${height - 4}` }));
    this.svg.replaceChildren(...parts, this.#cursor);
    this.at(this.#data.at ?? last);
    const took = `${this.#data.running ? "so far" : "took"} ${lasting(last - begin)}`;
    text(this.words, forecast?.seconds === undefined ? took : `${took} · predicted ${lasting(forecast.seconds * 1000)}${forecast.critical_path?.length ? ` along ${forecast.critical_path.join(" → ")}` : ""}${forecast.known === false ? " (some lengths were assumed)" : ""}`);
  }
}

function cut(words, letters) {
  return words.length <= letters ? words : `${words.slice(0, letters - 1)}…`;
}
