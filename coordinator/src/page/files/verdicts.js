// The verdicts of finished runs in the list.

import { answers, visible } from "./answers.js";
import { get } from "./live.js";

// Not every run has a report on the page. Its row then shows its newest values.
const { known, want } = answers(50, ({ name }) =>
  get(`/api/runs/${name}/conclusion`).then(
    ({ conclusion }) => conclusion,
    () => "",
  ),
);

/** A function that returns the verdict of a run, as far as it is known. `draw` is called when it arrives. */
export function verdictOf(place, draw) {
  const seen = visible(place, draw);
  return (run) => {
    const key = `${run.config_hash} ${run.digest} ${run.state}`;
    const found = known.get(run.name);
    if (found?.key === key) return found.answer;
    // Only finished runs have a conclusion that stays.
    if (seen() && run.state !== "cancelled") want(run, key, draw);
    return "";
  };
}
