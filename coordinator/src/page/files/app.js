// The frame of the page: which view is shown, and whether its data is live.

import { championView } from "./champion.js";
import { compareView } from "./compare.js";
import { h, show, text } from "./dom.js";
import { get, leave, listen, start, state } from "./live.js";
import { given, isGiven, loginView } from "./login.js";
import { playView } from "./play.js";
import { runsView } from "./runs.js";
import { runView } from "./run.js";
import { wallView } from "./wall.js";
import { workersView } from "./workers.js";

const LINKS = {
  connecting: "connecting",
  live: "live",
  lost: "connection lost, trying again",
  resting: "resting",
  out: "not logged in",
};

const main = document.getElementById("main");
const link = document.getElementById("link");
const who = document.getElementById("who");
const AGAIN_MS = 2000;
let view = null;

/** The parts of a path. A badly encoded path gives parts that lead nowhere. */
function partsOf(path) {
  try {
    return path.split("/").map(decodeURIComponent);
  } catch {
    return ["", "%"];
  }
}

/** The view of an address, and its entry in the menu. */
function viewOf(address) {
  const [path, query = ""] = address.split("?");
  const [, page, name, part, arm, replica] = partsOf(path);
  if (page === "runs" && part === "champions") return ["runs", championView(name, arm, replica)];
  if (page === "runs" && part === "with" && arm) return ["runs", compareView(name, arm)];
  if (page === "runs" && name) return ["runs", runView(name)];
  if (page === "play") return ["play", playView(path, query)];
  if (page === "wall") return ["play", wallView(path)];
  if (page === "workers") return ["workers", workersView()];
  if (!page) return ["runs", runsView()];
  const heading = h("h1", { tabindex: "-1" }, "There is nothing here");
  const node = h("div", { class: "inside" }, heading, h("p", null, h("a", { href: "#/" }, "All runs")));
  return ["", { title: "Nothing", node, update() {}, end() {} }];
}

function navigate(first) {
  // The link is within the view, such as the one that skips the menu.
  if (location.hash && !location.hash.startsWith("#/")) return;
  view?.end();
  let page;
  [page, view] = viewOf(location.hash.slice(1));
  for (const entry of document.querySelectorAll("nav a")) {
    if (entry.dataset.page === page) entry.setAttribute("aria-current", "page");
    else entry.removeAttribute("aria-current");
  }
  main.replaceChildren(view.node);
  document.title = `${view.title} · evoxo`;
  view.update();
  if (!first) {
    scrollTo(0, 0);
    main.querySelector("h1")?.focus();
  }
}

function update() {
  link.className = `link ${state.link}`;
  text(link.lastElementChild, LINKS[state.link]);
  text(document.getElementById("build"), state.build && `evoxo ${state.build}`);
  view?.update();
}

document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});

/** Shows the login form. */
function login(token) {
  state.link = "out";
  update();
  main.replaceChildren(loginView(token, begin));
}

/** Starts as soon as the viewer is known. Some coordinators need no login. */
async function begin(token = given()) {
  try {
    state.who = await get("/api/session");
    // Somebody who brings another token wants to log in with that one.
    if (token && state.who.id) {
      await leave();
      return login(token);
    }
  } catch (error) {
    if (error.status === 401) return login(token);
    state.link = "lost";
    setTimeout(begin, AGAIN_MS, token);
    return update();
  }
  const { id, role } = state.who;
  show(who, Boolean(id));
  text(who.firstElementChild, `${role} ${id}`);
  listen(update);
  start();
  navigate(true);
  // Relative times change even if nothing else does.
  setInterval(update, 5000);
}

who.lastElementChild.addEventListener("click", () => leave().finally(() => location.reload()));
addEventListener("hashchange", () => {
  // A login link in a tab that shows the page already: reload and log in with its token.
  if (isGiven()) location.reload();
  else if (view) navigate(false);
});
begin();
