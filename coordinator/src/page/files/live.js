// The coordinator's state: runs, workers, news. There is no stream while nobody sees the page.

import { feed } from "./feed.js";

const HIDDEN_MAX_MS = 20_000;
/** How often a hidden page reports that it is open: a finished run stays until nobody has its page open. */
const HERE_MS = 60_000;
const NEWS_MAX = 64;
/** How long a run may be without workers before the page says so. */
const STARVES_MS = 3000;

/** The present state. `link` is "connecting", "live", "lost", "resting" or "out"; `who` is the viewer with rights. */
export const state = {
  runs: new Map(), workers: new Map(), news: [], aside: [], link: "connecting", known: false, build: "", skew: 0,
  who: { id: null, role: null, may: [] },
};

const listeners = new Set();
/** Since when runs that need workers have had none, by this browser's clock. */
const starved = new Map();

/** Calls `listener` after each change. Returns a function that ends that. */
export function listen(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Seconds since 1970 by the coordinator's clock. */
export function now() {
  return Date.now() / 1000 + state.skew;
}

/** Whether a run has ended. */
export function isOver(run) {
  return ["finished", "in doubt", "cancelled"].includes(run.state);
}

/** All runs by name, unfinished ones first. */
export function runs() {
  return [...state.runs.values()].sort((a, b) => isOver(a) - isOver(b) || (a.name < b.name ? -1 : 1));
}

/** Whether a run needs workers and has had none for a while: in its first seconds they are still on their way. */
export function starves(run) {
  return Date.now() - (starved.get(run.name) ?? Infinity) > STARVES_MS;
}

/** A command for this coordinator. With logins the page has its own port, which commands do not use. */
export function command(program) {
  return `${program} --coordinator ${state.who.id ? "HOST:PORT" : location.host}`;
}

/** The command that starts a worker. If people log in, it needs a token. */
export function workerCommand() {
  return command("evoxo-worker") + (state.who.id ? " --join TOKEN" : "");
}

function tell() {
  for (const listener of listeners) listener();
}

function take(message) {
  if (state.build && state.build !== message.build) return location.reload();
  state.build = message.build;
  state.skew = message.at - Date.now() / 1000;
  if (message.whole) {
    state.runs.clear();
    state.workers.clear();
    state.news = [];
  }
  for (const run of message.runs) {
    state.runs.set(run.name, run);
    if (run.state !== "running" || run.workers > 0) starved.delete(run.name);
    else if (!starved.has(run.name)) {
      starved.set(run.name, Date.now());
      setTimeout(tell, STARVES_MS + 1);
    }
  }
  for (const name of message.gone_runs) state.runs.delete(name);
  for (const name of starved.keys()) if (!state.runs.has(name)) starved.delete(name);
  for (const worker of message.workers) state.workers.set(worker.session, worker);
  for (const session of message.gone_workers) state.workers.delete(session);
  state.aside = message.aside ?? state.aside;
  state.news.push(...message.news);
  state.news.splice(0, state.news.length - NEWS_MAX);
  [state.link, state.known] = ["live", true];
  tell();
}

/** The whole state, as a message. */
function whole() {
  if (!state.known) return null;
  return { whole: true, build: state.build, at: now(), runs: [...state.runs.values()], gone_runs: [],
    workers: [...state.workers.values()], gone_workers: [], news: state.news, aside: state.aside };
}

function lost() {
  state.link = "lost";
  tell();
}

/** Starts listening. */
export function start() {
  const { begin, end } = feed({ take, lost, whole, look: () => get("/api/session") });
  let [timer, hidden] = [null, null];
  const here = () => get("/api/hidden").catch(() => null);
  begin();
  document.addEventListener("visibilitychange", () => {
    clearTimeout(timer);
    clearInterval(hidden);
    if (!document.hidden) return begin();
    timer = setTimeout(() => {
      here();
      hidden = setInterval(here, HERE_MS);
      end();
      state.link = "resting";
    }, HIDDEN_MAX_MS);
  });
  addEventListener("pagehide", end);
  addEventListener("pageshow", begin);
}

/** Reads JSON; an error is a sentence. When a session has ended, the login is shown. */
export async function get(path, options) {
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw new Error("the coordinator does not answer");
  }
  const body = await response.json().catch(() => ({}));
  if (response.ok) return body;
  if (response.status === 401 && state.who.id) location.reload();
  const sentence = body.error ?? `the coordinator answers ${response.status}`;
  throw Object.assign(new Error(sentence), { status: response.status });
}

/** Whether the viewer may do this: "pause", "resume", "cancel", "delete", "note" or "drain". */
export function may(verb) {
  return state.who.may.includes(verb);
}

/** Logs out. */
export async function leave() {
  await get("/api/logout", { method: "POST" });
  state.who.id = null;
}

/** Gives an order: "runs/NAME/pause", "workers/SESSION/drain". */
export function order(what) {
  return get(`/api/${what}`, { method: "POST" });
}
