// Asking before something happens: what will be done, to what, and what follows from it.

import { announce, h } from "./dom.js";
import { live } from "./live.js";

/**
 * Asks for confirmation, then acts and reports. `says` is a list of sentences, or a function that finds them out. The dialog
 * stays open while the manager works, and shows why it refused.
 */
export function confirm({ title, says, action, danger = false, act, input }) {
  const message = h("div", { class: "dialog-says" }, h("p", { class: "quiet" }, "Looking at what this would do…"));
  const problem = h("div", { class: "dialog-problem", role: "alert", hidden: true });
  const yes = h("button", { type: "submit", class: danger ? "danger" : "primary", disabled: true }, action);
  const no = h("button", { type: "button", onclick: () => dialog.close() }, "Do nothing");
  const form = h("form", { method: "dialog" }, h("h2", { id: "dialog-title" }, title), message, input, problem, h("div", { class: "dialog-buttons" }, no, yes));
  const dialog = h("dialog", { "aria-labelledby": "dialog-title" }, form);
  const refuse = (error) => {
    problem.hidden = false;
    problem.replaceChildren(h("strong", {}, error.message), ...(error.problems ?? []).map((it) => h("p", {}, it)));
  };
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    yes.disabled = true;
    problem.hidden = true;
    try {
      await act();
      dialog.close();
      announce(`${title}: accepted`);
      live.refresh();
    } catch (error) {
      refuse(error);
      yes.disabled = false;
    }
  });
  dialog.addEventListener("close", () => dialog.remove());
  document.getElementById("dialogs").append(dialog);
  dialog.showModal();
  no.focus();
  Promise.resolve(typeof says === "function" ? says() : says).then((lines) => {
    message.replaceChildren(...lines.map((line) => h("p", {}, line)));
    yes.disabled = false;
  }, (error) => {
    message.replaceChildren();
    refuse(error);
  });
  return dialog;
}

/** A button that only those can use whose token allows it; others are told why. */
export function actButton(context, label, act, { danger = false, primary = false, key } = {}) {
  const why = context.mayOperate ? undefined : "Your token allows to look, and this needs operate.";
  return h("button", {
    type: "button", class: danger ? "danger-quiet" : primary ? "primary" : "", disabled: !context.mayOperate, title: why, onclick: act,
    "data-focus": key, "data-act": key,
  }, label);
}
