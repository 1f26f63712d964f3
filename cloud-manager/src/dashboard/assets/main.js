// The frame around every page: who is logged in, the way between pages, the state of the connection.

import { announce, h, show, text } from "./dom.js";
import { logOut, session } from "./api.js";
import { counted, lasting } from "./format.js";
import { live } from "./live.js";
import { enter, howToLogIn } from "./login.js";
import { application } from "./application.js";
import { attention, problemsOf } from "./attention.js";
import { change, changes } from "./change.js";
import { component } from "./component.js";
import { machine, machines } from "./machine.js";
import { overview } from "./overview.js";
import { plan } from "./plan.js";

const main = document.getElementById("main");
const nav = document.getElementById("nav");
const PAGES = [["/", "Overview"], ["/attention", "Needs you"], ["/changes", "Changes"], ["/machines", "Machines"], ["/plan", "Plan"]];

let close = () => {};

/** From an address to a page. A page is given its element and what it needs, and returns what ends it. */
function pageOf(path) {
  const [, first = "", ...rest] = path.split("/");
  const name = rest.length ? decodeURIComponent(rest.join("/")) : undefined;
  switch (first) {
    case "": return [overview, "Overview"];
    case "attention": return [attention, "Needs you"];
    case "plan": return [plan, "Plan"];
    case "applications": return [application, name];
    case "components": return [component, name];
    case "machines": return name ? [machine, name] : [machines, "Machines"];
    case "changes": return name ? [change, `Change ${name}`] : [changes, "Changes"];
    default: return [overview, "Overview"];
  }
}

/** Shows the page of the present address. */
function open(context) {
  close();
  const path = location.pathname;
  const [page, title] = pageOf(path);
  document.title = `${title} · Holdfast`;
  const [, , ...rest] = path.split("/");
  const name = rest.length ? decodeURIComponent(rest.join("/")) : undefined;
  const element = h("div", { class: "page" });
  main.replaceChildren(element);
  const ended = page(element, { ...context, name, go: (to) => go(to, context) });
  close = () => ended?.();
  for (const item of nav.children) {
    const own = item.getAttribute("href");
    const inside = own === "/" ? path === "/" || path.startsWith("/applications") || path.startsWith("/components") : path.startsWith(own);
    if (inside) item.setAttribute("aria-current", "page");
    else item.removeAttribute("aria-current");
  }
}

function go(path, context) {
  if (path !== location.pathname + location.search) history.pushState(null, "", path);
  open(context);
  window.scrollTo(0, 0);
  main.focus({ preventScroll: true });
  announce(document.title);
}

function frame(who, context) {
  nav.replaceChildren(...PAGES.map(([path, name]) => h("a", { href: path }, h("span", {}, name), path === "/attention" ? h("b", { class: "badge", hidden: true }) : undefined)));
  const role = { read: "may look", operate: "may operate", admin: "may administer" }[who.role];
  document.getElementById("who").replaceChildren(
    h("span", { class: "who-name", title: `${who.name || "unnamed token"}: ${role}` }, role),
    h("button", { type: "button", class: "plain", onclick: async () => { await logOut(); location.assign("/login"); } }, "Log out"));
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href]");
    const path = link?.getAttribute("href");
    if (!path?.startsWith("/") || path.startsWith("/v1/") || event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    go(path, context);
  });
  window.addEventListener("popstate", () => open(context));
  live.watch(connection);
  setInterval(connection, 1000);
}

/** Says when what is shown is old. */
function connection() {
  const element = document.getElementById("connection");
  const banner = document.getElementById("banner");
  const words = { live: "live", connecting: "connecting", lost: "connection lost", ended: "session ended" }[live.connection];
  element.dataset.connection = live.connection;
  text(element, words);
  const since = live.lostSince ? Date.now() - live.lostSince : 0;
  const isLong = live.connection === "lost" && since > 1500;
  banner.hidden = !(isLong || live.connection === "ended");
  if (isLong) text(banner, `The manager does not answer (for ${lasting(Math.floor(since / 1000) * 1000)}). What you see is from before. Trying again…`);
  if (live.connection === "ended") text(banner, "The session has ended. Log in again with: holdfast dashboard");
  const count = live.status ? problemsOf(live).length : 0;
  const badge = nav.querySelector(".badge");
  if (!badge) return;
  badge.hidden = !count;
  show(badge, String(count), () => [String(count), h("span", { class: "unseen" }, ` ${counted(count, "problem")}`)]);
}

async function begin() {
  if (location.pathname === "/login") {
    await enter(main);
    return;
  }
  let who;
  try {
    who = await session();
  } catch (error) {
    main.replaceChildren(howToLogIn(error.status === 401 ? undefined : error.message));
    return;
  }
  const context = { who, mayOperate: who.role !== "read" };
  frame(who, context);
  open(context);
  await live.start();
  // Measured by a test: from here on the page is useful.
  requestAnimationFrame(() => requestAnimationFrame(() => performance.mark("useful")));
}

begin();
