// The tasks of a run that workers have now: which worker has which task, and since when.

import { h, show, table, text } from "./dom.js";
import { count, counted, duration } from "./format.js";
import { get, state } from "./live.js";

/** The time between two requests. */
const ASK_MS = 2000;
/** A task that takes more than this many times as long as expected, and a second, is named. */
const LATE = 2;

/** A short time. */
function short(ms) {
  return ms < 1000 ? `${count(ms)} ms` : duration(ms / 1000);
}

/** What is special about a batch of tasks, as `evoxo tasks` says it. */
function remarks(batch) {
  const times = (number) => (number === 1 ? "once" : `${count(number)} times`);
  const late = !batch.queued && batch.expected_ms !== null && batch.age_ms > LATE * batch.expected_ms + 1000;
  return [
    batch.queued && "waits for a free slot",
    late && `expected to take ${short(batch.expected_ms)}`,
    batch.copy === 0 && "no longer needed",
    batch.copies > 1 && batch.copy > 0 && `copy ${batch.copy} of ${batch.copies}`,
    batch.failures > 0 && `failed ${times(batch.failures)} before`,
    batch.losses > 0 && `lost with its worker ${times(batch.losses)} before`,
    batch.more > 0 && `${count(batch.more)} more behind it`,
  ].filter(Boolean).join(", ");
}

const COLUMNS = [
  { name: "For", class: "number", value: (batch) => duration(batch.age_ms / 1000) },
  { name: "Worker", value: (batch) => batch.worker || "the coordinator itself" },
  { name: "Host", value: (batch) => batch.host || batch.address },
  { name: "Arm", value: (batch) => batch.arm },
  { name: "Replica", class: "number", value: (batch) => (batch.round === null ? "" : count(batch.replica)) },
  { name: "Round", class: "number", value: (batch) => (batch.round === null ? "" : count(batch.round + 1)) },
  { name: "Task", value: (batch) => `${batch.work} ${batch.task.slice(0, 8)}` },
  { name: "Remarks", value: remarks },
];

/** The section about a run's tasks. */
export function tasksOf(name) {
  const list = table("Tasks that are computed now", COLUMNS,
    (batch) => `${batch.session} ${batch.task} ${batch.queued}`);
  const more = h("p", { class: "soft" });
  const node = h("section", { class: "card", "aria-labelledby": "tasks", hidden: true },
    h("h2", { id: "tasks" }, "Computed now"),
    h("p", { class: "soft" }, "What each slot has, the longest without a result first."), list.node, more);
  let [timer, over] = [null, false];
  const isBusy = () => state.runs.get(name)?.state === "running" && state.runs.get(name).tasks_assigned > 0;
  async function ask() {
    try {
      const { batches, left_out } = isBusy() && !document.hidden ? await get(`/api/runs/${name}/tasks`)
        : { batches: [], left_out: 0 };
      if (over) return;
      list.update(batches);
      show(node, batches.length > 0);
      show(more, left_out > 0);
      text(more, `And ${counted(left_out, "line")} more: evoxo tasks ${name}`);
    } catch {
      // The next request may succeed.
    }
    if (!over) timer = setTimeout(ask, ASK_MS);
  }
  ask();
  return {
    node,
    end() {
      over = true;
      clearTimeout(timer);
    },
  };
}
