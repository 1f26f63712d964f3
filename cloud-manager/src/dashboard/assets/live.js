// What the manager knows, kept up to date: one snapshot, then events as they come.
//
// Events are applied at once, so that a state is on the screen within a frame. What events do not say (bindings, what waits
// for what) comes with the next snapshot, and snapshots are asked for no more often than the manager answers easily. Pages
// are told once per frame, however much happened.

import { Refused, get } from "./api.js";

/** The shortest pause between two snapshots, and its share of what one costs. */
const PAUSE_MS = 250;
const PAUSE_FACTOR = 4;
/** The pause before a broken stream is begun again, at first and at most. */
const RETRY_MS = 500;
const RETRY_MS_MAX = 5000;
/** A page that nobody sees lets go of its stream after this long: browsers allow few connections to one host. */
const HIDDEN_MS = 10000;
/** Events that are kept for pages that show them. */
const RECENT_MAX = 500;
/** The kinds of events, each of which the stream names. */
const KINDS = ["accepted", "refused", "phase-posted", "phase-done", "change-done", "cancelling", "change-cancelled",
  "component-is", "component-gone", "operation-failed", "vm-made", "vm-not-made", "vm-is", "vm-suspected", "vm-well",
  "vm-lost", "vm-destroyed"];

class Live {
  status = undefined;
  components = new Map();
  vms = new Map();
  recent = [];
  /** `connecting`, `live`, `lost` or `ended`. */
  connection = "connecting";
  lostSince = undefined;

  #after = 0;
  #source = undefined;
  #watchers = new Set();
  #eventWatchers = new Set();
  #frame = 0;
  #snapshotTimer = 0;
  #snapshotAt = 0;
  #snapshotCost = 0;
  #asking = false;
  #again = false;
  #retry = RETRY_MS;
  #retryTimer = 0;
  #hiddenTimer = 0;
  #skew = 0;

  /** The manager's clock. */
  get now() {
    return Date.now() + this.#skew;
  }

  async start() {
    document.addEventListener("visibilitychange", () => this.#visibility());
    window.addEventListener("online", () => this.#reconnect());
    // A browser may keep a page that was left, with its stream, for the way back.
    window.addEventListener("pagehide", () => this.#letGo());
    window.addEventListener("pageshow", (event) => event.persisted && this.#reconnect());
    await this.#snapshot();
    this.#open();
  }

  /** Calls back once per frame in which something is new. */
  watch(watcher) {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  /** Calls back for every event. */
  watchEvents(watcher) {
    this.#eventWatchers.add(watcher);
    return () => this.#eventWatchers.delete(watcher);
  }

  /** Something was asked for: do not wait for the pause. */
  refresh() {
    this.#scheduleSnapshot(0);
  }

  #tell() {
    if (this.#frame) return;
    const run = () => {
      this.#frame = 0;
      for (const watcher of [...this.#watchers]) watcher();
    };
    // A hidden page has no frames.
    this.#frame = document.hidden ? setTimeout(run, 200) : requestAnimationFrame(run);
  }

  #setConnection(connection) {
    if (this.connection === connection) return;
    this.connection = connection;
    this.lostSince = connection === "lost" ? Date.now() : undefined;
    this.#tell();
  }

  async #snapshot() {
    if (this.#asking) {
      this.#again = true;
      return;
    }
    this.#asking = true;
    const begun = performance.now();
    try {
      const status = await get("/v1/status");
      this.#snapshotCost = performance.now() - begun;
      this.#snapshotAt = performance.now();
      this.#skew = status.at_ms - Date.now();
      this.#take(status);
    } catch (error) {
      if (error instanceof Refused && error.status === 401) this.#setConnection("ended");
      else {
        this.#setConnection("lost");
        this.#scheduleRetry();
      }
    } finally {
      this.#asking = false;
    }
    if (this.#again) {
      this.#again = false;
      this.#scheduleSnapshot();
    }
  }

  #scheduleSnapshot(pause) {
    if (this.#asking) {
      this.#again = true;
      return;
    }
    const wanted = pause ?? Math.max(PAUSE_MS, this.#snapshotCost * PAUSE_FACTOR) - (performance.now() - this.#snapshotAt);
    if (this.#snapshotTimer && pause === undefined) return;
    clearTimeout(this.#snapshotTimer);
    this.#snapshotTimer = setTimeout(() => {
      this.#snapshotTimer = 0;
      this.#snapshot();
    }, Math.max(0, wanted));
  }

  #take(status) {
    const newer = this.recent.filter((it) => it.number > status.newest_event);
    this.status = status;
    this.#after = Math.max(this.#after, status.newest_event);
    this.components = new Map(status.components.map((it) => [it.name, it]));
    this.vms = new Map(status.vms.map((it) => [it.name, it]));
    // What came while the snapshot was on its way.
    for (const event of newer) this.#apply(event);
    this.#tell();
  }

  #open() {
    this.#source?.close();
    const source = new EventSource(`/v1/events?after=${this.#after}`);
    this.#source = source;
    source.onopen = () => {
      this.#retry = RETRY_MS;
      const healed = this.connection === "lost";
      this.#setConnection("live");
      if (healed) this.#scheduleSnapshot(0);
    };
    source.onerror = () => {
      if (this.#source !== source) return;
      source.close();
      this.#source = undefined;
      this.#setConnection("lost");
      this.#scheduleRetry();
    };
    for (const kind of KINDS) source.addEventListener(kind, (message) => this.#hear(JSON.parse(message.data)));
    source.addEventListener("gap", () => this.#scheduleSnapshot(0));
  }

  #scheduleRetry() {
    if (this.#retryTimer || this.connection === "ended") return;
    this.#retryTimer = setTimeout(() => this.#reconnect(), this.#retry);
    this.#retry = Math.min(this.#retry * 1.6, RETRY_MS_MAX);
  }

  async #reconnect() {
    clearTimeout(this.#retryTimer);
    this.#retryTimer = 0;
    if (document.hidden && this.#hiddenTimer === undefined) return;
    await this.#snapshot();
    if (this.connection === "ended" || this.#retryTimer) return;
    this.#open();
  }

  #letGo() {
    this.#source?.close();
    this.#source = undefined;
  }

  #visibility() {
    if (document.hidden) {
      this.#hiddenTimer = setTimeout(() => {
        this.#hiddenTimer = undefined;
        this.#letGo();
      }, HIDDEN_MS);
    } else {
      clearTimeout(this.#hiddenTimer);
      this.#hiddenTimer = 0;
      if (!this.#source) this.#reconnect();
      else this.#tell();
    }
  }

  #hear(event) {
    if (event.number <= this.#after && this.recent.some((it) => it.number === event.number)) return;
    this.#after = Math.max(this.#after, event.number);
    this.recent.push(event);
    if (this.recent.length > RECENT_MAX) this.recent.splice(0, this.recent.length - RECENT_MAX);
    this.#apply(event);
    for (const watcher of [...this.#eventWatchers]) watcher(event);
    this.#scheduleSnapshot();
    this.#tell();
  }

  #apply(event) {
    const component = event.component && this.components.get(event.component);
    if (event.what === "component-is" && component) {
      component.state = event.state;
      component.since_ms = event.at_ms;
      component.failed_operation = event.operation;
    } else if (event.what === "component-gone" && component) {
      component.state = "gone";
    } else if (event.vm && this.vms.has(event.vm)) {
      const health = { "vm-suspected": "suspected", "vm-well": "well", "vm-lost": "lost", "vm-made": "well" }[event.what];
      if (health) this.vms.get(event.vm).health = health;
    }
  }
}

export const live = new Live();
