// A confirmation before an action that cannot be undone.

import { h } from "./dom.js";

/** A dialog. `open` shows it, and `sure` is called if the user agrees. */
export function question({ id, title, body, keep, agree }, sure) {
  const heading = h("h2", { id }, title);
  const node = h("dialog", { "aria-labelledby": id }, heading, h("p", null, body),
    h("form", { method: "dialog", class: "buttons" },
      h("button", { type: "button", onclick: () => node.close("") }, keep),
      h("button", { type: "button", class: "danger", onclick: () => node.close("yes") }, agree)));
  node.addEventListener("close", () => node.returnValue === "yes" && sure());
  const open = (about = title) => {
    heading.textContent = about;
    node.returnValue = "";
    node.showModal();
  };
  return { node, open };
}
