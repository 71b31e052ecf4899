// Creates elements, and changes only what differs, so that focus, selection and scrolling stay.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** An HTML element. Attributes that start with "on" are listeners. */
export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** An SVG element. */
export function s(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** Sets a text if it differs. */
export function text(node, value) {
  const wanted = String(value);
  if (node.textContent !== wanted) node.textContent = wanted;
}

/** Sets an attribute if it differs; null removes it. */
export function attribute(node, name, value) {
  if (value === null || value === false) {
    if (node.hasAttribute(name)) node.removeAttribute(name);
  } else if (node.getAttribute(name) !== String(value)) {
    node.setAttribute(name, value);
  }
}

/** Shows or hides an element. */
export function show(node, shown) {
  if (node.hidden === shown) node.hidden = !shown;
}

/** Gives a node one child per item. Old children are kept and updated. `make` returns {node, update}. */
export function keyed(parent, items, keyOf, make) {
  const old = parent.evoxoChildren ?? new Map();
  const now = new Map();
  // Removals come first: a moved node loses the focus, and a removal should not force others to move.
  const wanted = new Set(items.map(keyOf));
  for (const [key, child] of old) if (!wanted.has(key)) child.node.remove();
  let place = parent.firstElementChild;
  for (const item of items) {
    const key = keyOf(item);
    const child = old.get(key) ?? make(item);
    now.set(key, child);
    child.update(item);
    if (child.node === place) place = place.nextElementSibling;
    else parent.insertBefore(child.node, place);
  }
  parent.evoxoChildren = now;
}

/** A table row with the cells of `columns`, which are texts or elements. `dress(node, item)` may add to it. */
function row(columns, dress) {
  const cells = columns.map((column, index) =>
    index === 0 ? h("th", { scope: "row", class: column.class }) : h("td", { class: column.class }));
  const node = h("tr", null, ...cells);
  return {
    node,
    update(item) {
      dress?.(node, item);
      columns.forEach((column, index) => {
        const value = column.value(item);
        if (value instanceof Node) {
          if (cells[index].firstChild !== value) cells[index].replaceChildren(value);
        } else text(cells[index], value);
      });
    },
  };
}

/**
 * A table. Columns have `name`, `value(item)`, and optionally `class`, `title` and `sort(item)`, which puts a button
 * for sorting into the head. Returns {node, update(items)}.
 */
export function table(caption, columns, keyOf, sorted = null, dress = null) {
  let order = sorted;
  let latest = [];
  const heads = columns.map((column, index) => {
    const sort = () => {
      order = { column: index, down: order?.column === index ? !order.down : Boolean(column.down) };
      update(latest);
    };
    const button = () => h("button", { type: "button", class: "sort", onclick: sort }, column.name);
    // This puts plain heads at the same height as those with buttons.
    const plain = () => columns.some((other) => other.sort) ? h("span", { class: "sort" }, column.name) : column.name;
    const inside = column.sort ? button() : plain();
    return h("th", { scope: "col", class: column.class, title: column.title }, inside);
  });
  const body = h("tbody");
  const node = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h("table", null, h("caption", { class: "unseen" }, caption), h("thead", null, h("tr", null, ...heads)), body));
  function update(items) {
    latest = items;
    heads.forEach((head, index) => {
      if (!columns[index].sort) return;
      const direction = order?.column !== index ? "none" : order.down ? "descending" : "ascending";
      attribute(head, "aria-sort", direction);
    });
    let shown = items;
    if (order) {
      const by = columns[order.column].sort;
      const compare = (a, b) => (by(a) < by(b) ? -1 : by(a) > by(b) ? 1 : 0);
      shown = [...items].sort((a, b) => (order.down ? compare(b, a) : compare(a, b)));
    }
    keyed(body, shown, keyOf, () => row(columns, dress));
  }
  return { node, update };
}
