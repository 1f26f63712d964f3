// Where things are in the picture of an application. Pure: the same configuration gives the same places, whatever the
// states are, so the picture stands still while states change.
//
// Machines are boxes; what is alike is one box while it is collapsed. Columns follow strong imports: clients stand left of
// their providers. Inside a column, boxes stand near those that they are bound to.

import { byName, groupOf, short } from "./format.js";

/** Beyond so many components, groups are collapsed at first. */
export const COLLAPSE_AT = 60;
/** Beyond so many rows, the rows of one box stand in several columns. */
const ROWS_MAX = 12;
/** Beyond so many components of one group in one box, the group is one row. */
const SAME_MAX = 6;

const ROW = 30;
const HEAD = 34;
const PAD = 10;
const COLUMN_GAP = 96;
const BOX_GAP = 22;
const LETTER = 7.1;

/** `web` of `shop/web[3]`, `rack` of `rack-17`. */
function alike(name) {
  return short(name).replace(/\[\d+\]$/, "").replace(/[-_.]?\d+$/, "") || short(name);
}

/**
 * What is drawn: boxes with rows, and arrows between rows; `open` holds the keys of boxes that are not collapsed.
 * On a narrow screen all boxes stand in one column. */
export function arrange({ vms, components, bindings }, open, narrow = false) {
  const many = components.length > COLLAPSE_AT;
  const boxes = new Map();
  const boxOfVm = new Map();
  const sizes = new Map();
  for (const vm of vms) sizes.set(alike(vm.name), (sizes.get(alike(vm.name)) ?? 0) + 1);
  for (const vm of [...vms].sort(byName)) {
    const group = alike(vm.name);
    const grouped = many && sizes.get(group) > 1 && !open.has(group);
    const key = grouped ? `group ${group}` : vm.name;
    if (!boxes.has(key)) boxes.set(key, { key, group, grouped, canCollapse: many && sizes.get(group) > 1, vms: [], rows: new Map() });
    boxes.get(key).vms.push(vm);
    boxOfVm.set(vm.name, boxes.get(key));
  }
  const rowOf = new Map();
  const perGroup = new Map();
  const inBox = (component) => `${boxOfVm.get(component.vm)?.key}|${groupOf(component.name)}`;
  for (const component of components) perGroup.set(inBox(component), (perGroup.get(inBox(component)) ?? 0) + 1);
  for (const component of [...components].sort(byName)) {
    let box = boxOfVm.get(component.vm);
    if (!box) {
      box = { key: component.vm, group: component.vm, grouped: false, vms: [], rows: new Map() };
      boxes.set(component.vm, box);
      boxOfVm.set(component.vm, box);
    }
    const inner = inBox(component);
    const together = box.grouped || (perGroup.get(inner) > SAME_MAX && !open.has(inner));
    const key = together ? inner : component.name;
    if (!box.rows.has(key)) {
      box.rows.set(key, { key, box, group: groupOf(component.name), together, opens: together && !box.grouped ? inner : undefined, components: [] });
    }
    box.rows.get(key).components.push(component);
    rowOf.set(component.name, box.rows.get(key));
  }
  const arrows = new Map();
  for (const binding of bindings) {
    const [from, to] = [rowOf.get(binding.client), rowOf.get(binding.provider)];
    if (!from || !to) continue;
    const key = `${from.key} → ${to.key}`;
    if (!arrows.has(key)) arrows.set(key, { key, from, to, bindings: [] });
    arrows.get(key).bindings.push(binding);
  }
  const list = [...boxes.values()].filter((box) => box.vms.length || box.rows.size);
  place(list, [...arrows.values()], narrow);
  return { boxes: list, arrows: [...arrows.values()], rowOf, ...extent(list) };
}

function isStrong(arrow) {
  return arrow.bindings.some((it) => !it.need.startsWith("weak"));
}

function place(boxes, arrows, narrow) {
  const providers = new Map(boxes.map((box) => [box, new Set()]));
  const neighbours = new Map(boxes.map((box) => [box, []]));
  for (const arrow of arrows) {
    const [client, provider] = [arrow.from.box, arrow.to.box];
    if (client === provider) continue;
    if (isStrong(arrow)) providers.get(client).add(provider);
    neighbours.get(client).push(provider);
    neighbours.get(provider).push(client);
  }
  layers(boxes, providers, neighbours);
  for (const box of boxes) measure(box, arrows);
  const columns = [];
  for (const box of boxes) (columns[box.layer] ??= []).push(box);
  const filled = columns.filter((column) => column?.length);
  order(filled, neighbours);
  if (narrow) {
    let y = 0;
    const width = Math.max(...boxes.map((box) => box.width));
    for (const box of filled.flat()) {
      spread(box, width);
      box.x = 0;
      box.y = y;
      y += box.height + BOX_GAP;
    }
    return;
  }
  let x = 0;
  const area = boxes.reduce((sum, box) => sum + (box.width + COLUMN_GAP) * (box.height + BOX_GAP), 0);
  const tallest = Math.max(420, Math.sqrt(area / 1.7));
  const tops = [];
  for (const column of filled) {
    // A long column wraps, so that the picture stays as wide as it is high.
    const parts = [[]];
    let height = 0;
    for (const box of column) {
      if (height > 0 && height + box.height > tallest) {
        parts.push([]);
        height = 0;
      }
      parts.at(-1).push(box);
      height += box.height + BOX_GAP;
    }
    for (const [number, part] of parts.entries()) {
      const width = Math.max(...part.map((box) => box.width));
      let y = 0;
      for (const box of part) {
        spread(box, width);
        box.x = x;
        box.y = y;
        y += box.height + BOX_GAP;
      }
      tops.push([part, y - BOX_GAP]);
      x += width + (number === parts.length - 1 ? COLUMN_GAP : 28);
    }
  }
  const whole = Math.max(...tops.map(([, height]) => height), 0);
  for (const [part, height] of tops) for (const box of part) box.y += (whole - height) / 2;
}

/** The longest way along strong imports; where they go in a circle, one of them is left out of account. */
function layers(boxes, providers, neighbours) {
  const state = new Map();
  const depth = (box) => {
    if (state.get(box) === "done") return box.layer;
    if (state.get(box) === "open") return -1;
    state.set(box, "open");
    let layer = 0;
    // Providers stand to the right, so a box stands left of all of them: count from the right.
    for (const provider of providers.get(box)) layer = Math.max(layer, depth(provider) + 1);
    box.layer = layer;
    state.set(box, "done");
    return layer;
  };
  for (const box of boxes) depth(box);
  const last = Math.max(0, ...boxes.map((box) => box.layer));
  for (const box of boxes) box.layer = last - box.layer;
  // A box without strong imports of its own and without clients stands beside those that it is bound to at all.
  const isProvider = new Set([...providers.values()].flatMap((it) => [...it]));
  for (const box of boxes) {
    if (providers.get(box).size || isProvider.has(box)) continue;
    const around = neighbours.get(box).map((it) => it.layer);
    box.layer = around.length ? Math.max(0, Math.min(...around) - (Math.min(...around) > 0 ? 1 : 0)) : 0;
  }
}

function measure(box, arrows) {
  const rank = new Map();
  for (const arrow of arrows) {
    if (arrow.from.box === box && arrow.to.box === box && isStrong(arrow)) rank.set(arrow.to, (rank.get(arrow.to) ?? 0) + 1);
  }
  const rows = [...box.rows.values()];
  rows.sort((one, other) => (rank.get(one) ?? 0) - (rank.get(other) ?? 0) || byName(one.key, other.key));
  const columns = Math.ceil(rows.length / ROWS_MAX) || 1;
  const perColumn = Math.ceil(rows.length / columns) || 1;
  const label = (row) => (row.together ? `${row.group} ×${row.components.length}` : short(row.key)).length;
  const widest = Math.max(0, ...rows.map((row) => label(row) * LETTER + (row.together ? 92 : 98)));
  const width = Math.min(Math.max(widest, 150), 280);
  const title = (box.grouped ? `${box.group} ×${box.vms.length}` : short(box.key)).length * 7.8 + 74;
  box.width = Math.max(columns * width + (columns - 1) * 8 + PAD * 2, Math.min(title, 300));
  box.height = HEAD + Math.max(perColumn, rows.length ? 1 : 0) * ROW + (rows.length ? PAD - 4 : 0);
  box.order = rows;
  box.columns = columns;
}

/** Gives a box its width, and its rows their places. */
function spread(box, width) {
  const { order: rows, columns } = box;
  box.width = width;
  const perColumn = Math.ceil(rows.length / columns) || 1;
  const inner = (width - PAD * 2 - (columns - 1) * 8) / columns;
  for (const [number, row] of rows.entries()) {
    row.dx = PAD + Math.floor(number / perColumn) * (inner + 8);
    row.dy = HEAD + (number % perColumn) * ROW;
    row.width = inner;
    row.height = ROW - 5;
  }
}

/** Puts boxes near those that they are bound to, from left to right and back; ties are broken by name. */
function order(columns, neighbours) {
  const position = new Map();
  const number = (column) => column.forEach((box, place) => position.set(box, (place + 0.5) / column.length));
  columns.forEach(number);
  const sweep = (column) => {
    const middle = (box) => {
      const around = neighbours.get(box).filter((it) => it.layer !== box.layer);
      return around.length ? around.reduce((sum, it) => sum + position.get(it), 0) / around.length : position.get(box);
    };
    const wanted = new Map(column.map((box) => [box, middle(box)]));
    column.sort((one, other) => wanted.get(one) - wanted.get(other) || byName(one.key, other.key));
    number(column);
  };
  for (let round = 0; round < 3; round += 1) {
    columns.forEach(sweep);
    [...columns].reverse().forEach(sweep);
  }
}

function extent(boxes) {
  const width = Math.max(240, ...boxes.map((box) => box.x + box.width));
  const height = Math.max(80, ...boxes.map((box) => box.y + box.height));
  return { width, height };
}

/** The line of an arrow, from box to box at the height of its rows: across to another column, or around beside one. */
export function curve(arrow) {
  const [one, other] = [arrow.from, arrow.to];
  const at = (row) => ({ left: row.box.x, right: row.box.x + row.box.width, y: row.box.y + row.dy + row.height / 2 });
  const [from, to] = [at(one), at(other)];
  const head = 7;
  if (from.right + 8 < to.left) {
    const bend = Math.max(24, (to.left - from.right) / 2);
    return `M${from.right} ${from.y} C${from.right + bend} ${from.y} ${to.left - bend} ${to.y} ${to.left - head} ${to.y}`;
  }
  if (to.right + 8 < from.left) {
    const bend = Math.max(24, (from.left - to.right) / 2);
    return `M${from.left} ${from.y} C${from.left - bend} ${from.y} ${to.right + bend} ${to.y} ${to.right + head} ${to.y}`;
  }
  const side = Math.max(from.right, to.right);
  const bend = side + Math.min(26 + Math.abs(from.y - to.y) / 10, 60);
  return `M${from.right} ${from.y} C${bend} ${from.y} ${bend} ${to.y} ${to.right + head} ${to.y}`;
}
