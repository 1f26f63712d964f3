// Turns the secret after the # of a link into a session, once.

import { h } from "./dom.js";
import { logIn } from "./api.js";

/** Says how to log in. */
export function howToLogIn(reason) {
  return h("section", { class: "gate" },
    h("h1", {}, "Log in"),
    reason ? h("p", { class: "gate-reason", role: "alert" }, reason) : undefined,
    h("p", {}, "On a machine with an access file for this manager, run"),
    h("pre", { class: "command" }, "holdfast dashboard"),
    h("p", { class: "quiet" }, "It opens a link that is valid once and for two minutes. The session has the rights of the token in that file."));
}

export async function enter(main) {
  const secret = location.hash.slice(1);
  history.replaceState(null, "", "/login");
  if (!secret) {
    main.replaceChildren(howToLogIn());
    return;
  }
  try {
    await logIn(secret);
    location.replace("/");
  } catch (error) {
    main.replaceChildren(howToLogIn(error.message));
  }
}
