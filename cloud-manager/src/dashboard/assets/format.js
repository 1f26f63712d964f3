// Times and numbers as people read them.

/** A length of time in milliseconds. */
export function lasting(ms) {
  if (ms === undefined || ms === null || Number.isNaN(ms)) return "";
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  const seconds = ms / 1000;
  if (seconds < 60) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.round(seconds % 60)} s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} days`;
}

/** How long ago, coarse enough not to flicker. */
export function ago(at, now) {
  const ms = Math.max(0, now - at);
  if (ms < 5000) return "just now";
  if (ms < 60000) return `${Math.floor(ms / 5000) * 5} s ago`;
  if (ms < 3600000) return `${Math.floor(ms / 60000)} min ago`;
  if (ms < 172800000) return `${Math.floor(ms / 3600000)} h ago`;
  return `${Math.floor(ms / 86400000)} days ago`;
}

const CLOCK = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const DAY = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" });

export const clock = (at) => CLOCK.format(new Date(at));
export const day = (at) => DAY.format(new Date(at));

/** A number and its noun. */
export function counted(number, noun, plural = `${noun}s`) {
  return `${number.toLocaleString("en")} ${number === 1 ? noun : plural}`;
}

/** The application of a scoped name; nothing for one that stands alone. */
export function applicationOf(name) {
  const slash = name.indexOf("/");
  return slash < 0 ? undefined : name.slice(0, slash);
}

/** A name without its application. */
export function short(name) {
  return name.slice(name.indexOf("/") + 1);
}

/** The group of a component: `app` of `shop/app[2]`. */
export function groupOf(name) {
  return short(name).replace(/\[\d+\]$/, "");
}

export const encode = encodeURIComponent;
export const pathOf = {
  application: (name) => `/applications/${encode(name)}`,
  component: (name) => `/components/${encode(name)}`,
  machine: (name) => `/machines/${encode(name)}`,
  change: (id) => `/changes/${id}`,
};

/** Natural order: app[2] before app[10]. */
const COLLATOR = new Intl.Collator("en", { numeric: true });
export const byName = (one, other) => COLLATOR.compare(one.name ?? one, other.name ?? other);
