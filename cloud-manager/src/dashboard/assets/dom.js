// Small tools to build and patch the page. Text always becomes a text node, never markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "dataset") Object.assign(element.dataset, value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((it) => it !== undefined && it !== null && it !== false));
  return element;
}

/** An HTML element. */
export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** An SVG element. */
export function s(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** Replaces the children of an element, unless they already are the same as the text of a key says. */
export function show(element, key, make) {
  if (key !== undefined && element.dataset.key === key) return;
  if (key !== undefined) element.dataset.key = key;
  const focused = element.contains(document.activeElement) ? document.activeElement.dataset?.focus : undefined;
  element.replaceChildren(...[make()].flat(Infinity).filter((it) => it));
  if (focused) element.querySelector(`[data-focus="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
}

/** Brings keyed children up to date: those that stay are patched in place, so that focus and animation survive. */
export function patch(parent, items, key, make, update) {
  const old = new Map([...parent.children].map((it) => [it.dataset.id, it]));
  let before = null;
  for (const item of items) {
    const id = String(key(item));
    let element = old.get(id);
    if (element) old.delete(id);
    else {
      element = make(item);
      element.dataset.id = id;
    }
    update(element, item);
    const next = before ? before.nextSibling : parent.firstChild;
    if (next !== element) parent.insertBefore(element, next);
    before = element;
  }
  for (const element of old.values()) element.remove();
}

/** Sets a text only if it is another. */
export function text(element, value) {
  if (element.textContent !== value) element.textContent = value;
}

/** A short announcement for screen readers. */
export function announce(words) {
  document.getElementById("announcer").textContent = words;
}

export function link(path, ...children) {
  return h("a", { href: path }, ...children);
}
