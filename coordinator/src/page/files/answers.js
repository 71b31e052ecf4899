// Answers about the runs in the list: requested for one run at a time, only for visible runs, and only once for a run
// that does not advance.

/**
 * `want(run, key, draw)` requests an answer and draws it when it arrives; `key` is the state of the run that it is
 * about. `known` has the newest answers by name of run: { key, at, answer }. Runs never asked about come first, then
 * the oldest.
 */
export function answers(pauseMs, request) {
  const known = new Map();
  const wanted = new Map();
  let busy = false;
  async function ask() {
    if (busy || wanted.size === 0) return;
    busy = true;
    const at = (name) => known.get(name)?.at ?? 0;
    const name = [...wanted.keys()].sort((one, other) => at(one) - at(other))[0];
    const { run, key, draw } = wanted.get(name);
    wanted.delete(name);
    try {
      known.set(name, { key, at: Date.now(), answer: await request(run) });
      draw();
    } catch {
      // A later message about this run retries.
      known.set(name, { key: "", at: Date.now(), answer: known.get(name)?.answer });
    }
    setTimeout(() => {
      busy = false;
      ask();
    }, pauseMs);
  }
  const want = (run, key, draw) => {
    wanted.set(run.name, { run, key, draw });
    ask();
  };
  return { known, want };
}

/** A function that says whether a place is visible; `changed` is called when that changes. */
export function visible(place, changed) {
  let seen = false;
  const observer = new IntersectionObserver(([entry]) => {
    seen = entry.isIntersecting;
    changed();
  });
  observer.observe(place);
  return () => seen;
}
