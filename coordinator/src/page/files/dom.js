// Elements: created, and updated only if something has changed, so that focus, selection and scrolling are kept.

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

/** An HTML element. Attributes that begin with "on" are listeners. */
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

/** Makes the children of a node match the items. Old children are kept and updated. `make` returns {node, update}. */
export function keyed(parent, items, keyOf, make) {
  const old = parent.evoxoChildren ?? new Map();
  const now = new Map();
  // Remove old nodes first: a moved node loses the focus, and this way no node is moved just because another one goes.
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

/** A row of a table, with texts or elements as cells, as `columns` define. */
function row(columns) {
  const cells = columns.map((column, index) =>
    index === 0 ? h("th", { scope: "row", class: column.class }) : h("td", { class: column.class }));
  const node = h("tr", null, ...cells);
  return {
    node,
    update(item) {
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
 * A table. Columns have `name`, `value(item)`, and maybe `class`, `title` and `sort(item)`: then a button in the head
 * sorts by it. Returns {node, update(items)}.
 */
export function table(caption, columns, keyOf, sorted = null) {
  let order = sorted;
  let latest = [];
  const heads = columns.map((column, index) => {
    const sort = () => {
      order = { column: index, down: order?.column === index ? !order.down : Boolean(column.down) };
      update(latest);
    };
    const button = () => h("button", { type: "button", class: "sort", onclick: sort }, column.name);
    // Next to sortable heads, the others have the same height.
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
    keyed(body, shown, keyOf, () => row(columns));
  }
  return { node, update };
}
