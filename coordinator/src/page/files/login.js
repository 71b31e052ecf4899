// Logging in, if the coordinator requires it: a token is exchanged once for a session, which is a cookie that scripts
// cannot read.

import { h, show, text } from "./dom.js";
import { get } from "./live.js";

const GIVEN = "#token=";

/** Whether the address ends with a token. */
export function isGiven() {
  return location.hash.startsWith(GIVEN);
}

/** The token at the end of the address, if there is one. It is removed from the address. */
export function given() {
  if (!isGiven()) return "";
  const token = location.hash.slice(GIVEN.length);
  history.replaceState(null, "", "/");
  return token;
}

/** The form. `done` is called after a login. A given token is tried at once. */
export function loginView(token, done) {
  const input = h("input", { type: "password", id: "token", autocomplete: "off", spellcheck: "false", required: true });
  const failed = h("p", { class: "warning", role: "alert", hidden: true });
  const button = h("button", null, "Log in");
  async function enter(shown) {
    button.disabled = true;
    show(failed, false);
    try {
      await get("/api/login", { method: "POST", headers: { Authorization: `Bearer ${shown.trim()}` } });
      done("");
    } catch (error) {
      text(failed, `The login failed: ${error.message}.`);
      show(failed, true);
    }
    button.disabled = false;
  }
  const form = h("form", { class: "search", onsubmit: (event) => {
    event.preventDefault();
    enter(input.value);
    input.value = "";
  } }, h("label", { for: "token" }, "Token"), input, button);
  if (token) enter(token);
  return h("div", { class: "inside" },
    h("h1", { tabindex: "-1" }, "Log in"),
    h("p", { class: "lead" }, "This coordinator shows its runs only to people with a token."),
    h("section", { class: "card", "aria-label": "Login" }, form, failed,
      h("p", { class: "soft" }, "An operator creates a token with ",
        h("code", null, "evoxo token create --role viewer"), " (or operator). Each login uses it once.")));
}
