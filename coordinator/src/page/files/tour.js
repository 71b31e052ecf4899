// The tour at the first start: three sentences, and one thing to do, which is highlighted. Closing it is for good.

import { h, show, text } from "./dom.js";

const KEY = "evoxo-tour";

/** Whether this browser has closed the tour. A browser that keeps nothing sees it again after each reload. */
function closed() {
  try {
    return localStorage.getItem(KEY) === "closed";
  } catch {
    return false;
  }
}

/** The tour. `target()` returns the element to highlight; it is a link if there is a run. */
export function tour(target) {
  const next = h("strong");
  let [over, marked] = [closed(), null];
  const mark = (element) => {
    if (element === marked) return;
    marked?.classList.remove("pointed");
    element?.classList.add("pointed");
    marked = element;
  };
  const close = () => {
    over = true;
    mark(null);
    show(node, false);
    try {
      localStorage.setItem(KEY, "closed");
    } catch {
      // The tour then stays closed until the next reload.
    }
  };
  const node = h("section", { class: "card tour", "aria-label": "Tour", hidden: true },
    h("p", null, "A run computes an experiment on all connected workers, and its results are the same on any of them. ",
      "Its page begins with the verdict, and then shows curves, tables and champions. ",
      "Champions of games can be played under Play. ", next),
    h("button", { type: "button", onclick: close }, "Close the tour"));
  return {
    node,
    update(known) {
      show(node, known && !over);
      if (over || !known) return;
      const element = target();
      mark(element);
      text(next, element?.tagName === "A" ? `Start here: open ${element.textContent}.`
        : "Start here: type the lines below.");
    },
  };
}
