// Pictures of curves, without a browser: any finite values are drawn, and drawing ends.

import assert from "node:assert/strict";
import { test } from "node:test";

import { python } from "./files/candidate.js";
import { axis, byChance, conditions, correlation, quantile, ranks } from "./files/gene.js";
import { axes, curves, frame } from "./files/plot.js";
import { paths } from "./files/sparks.js";

const { MAX_VALUE: MOST, MIN_VALUE: LEAST } = Number;

/** What the page's files need to be loaded. */
globalThis.location = { host: "" };

/** Elements that only store their attributes and children. */
globalThis.document = {
  createElementNS: (_, tag) => ({
    tag,
    attributes: {},
    children: [],
    setAttribute(name, value) { this.attributes[name] = String(value); },
    append(...children) { this.children.push(...children); },
  }),
};

/** The picture of a curve through these values. */
function drawn(values, log) {
  const arm = { name: "a", index: 0, x: values.map((_, at) => at), mean: values, low: values, high: values,
    count: values.map(() => 1) };
  return frame({ arms: [arm], xName: "x", yName: "y", log, whole: true, zoom: false }, 800);
}

/** The labels of the vertical axis. */
function labels(picture) {
  return axes(picture).filter((part) => part.attributes["text-anchor"] === "end").map((part) => part.children[0]);
}

/** All attributes of elements and their descendants. */
function attributes(elements) {
  return elements.flatMap((element) =>
    [...Object.values(element.attributes), ...attributes(element.children.filter((child) => child.tag))]);
}

test("ticks are round numbers", () => {
  assert.deepEqual(labels(drawn([0, 17], false)), ["0", "5", "10", "15"]);
  assert.deepEqual(labels(drawn([-1500, 12], false)), ["−1,500", "−1,000", "−500", "0"]);
  assert.deepEqual(labels(drawn([0.01, 1000], true)), ["0.01", "0.1", "1", "10", "100", "1,000"]);
  assert.deepEqual(labels(drawn([1, 20], true)), ["1", "2", "5", "10", "20"]);
});

for (const values of [[-MOST, MOST], [0, MOST], [MOST, MOST], [-MOST, -MOST], [-1e308, 1e308], [1e308, 1.1e308],
  [LEAST, 2 * LEAST], [LEAST, LEAST], [0, LEAST], [0, 20 * LEAST], [LEAST, MOST], [1e-300, 1e300],
  [1e16, 1e16 + 2], [-1e16, -1e16 - 2], [1, 1 + Number.EPSILON]]) {
  for (const log of values[0] > 0 ? [false, true] : [false]) {
    test(`${values.join(" and ")} are drawn${log ? " by powers of ten" : ""}`, () => {
      const picture = drawn(values, log);
      for (const value of values) {
        const at = picture.y(value);
        assert.ok(at >= picture.margin.top && at <= picture.base, `${value} is at ${at}`);
      }
      const ticks = labels(picture);
      assert.ok(ticks.length > 0 && ticks.length < 50, ticks.join());
      const wrong = attributes([...axes(picture), ...curves(picture)]).filter((value) => /NaN|Infinity/.test(value));
      assert.deepEqual([...wrong, ...ticks.filter((label) => /NaN|∞|Infinity/.test(label))], []);
    });
  }
}

test("small curves go from edge to edge", () => {
  for (const mean of [[0, 17], [-MOST, MOST], [-1e308, 1e308]]) {
    assert.equal(paths([{ name: "a", x: [0, 1], mean }], 1).get("a"), "M2.0 20.0L94.0 2.0");
  }
});

test("a small curve over powers of ten is logarithmic", () => {
  assert.equal(paths([{ name: "a", x: [0, 1, 2], mean: [1e-6, 1e-3, 1] }], 1).get("a"),
    "M2.0 20.0L48.0 11.0L94.0 2.0");
});

test("rank correlations", () => {
  assert.deepEqual(ranks([5, 1, 5, 3]), [2.5, 0, 2.5, 1]);
  assert.equal(correlation([1, 2, 3, 4], [10, 20, 1000, 1e9]), 1);
  assert.equal(correlation([1, 2, 3, 4], [4, 3, 2, 1]), -1);
  assert.equal(correlation([1, 2, 3], [7, 7, 7]), 0);
  // The textbook's 1 - 6 sum d^2 / (n (n^2 - 1)).
  assert.ok(Math.abs(correlation([1, 2, 3, 4, 5], [2, 1, 4, 3, 5]) - 0.8) < 1e-12);
  assert.deepEqual([byChance(3), byChance(5).toFixed(2)], [1, "0.98"]);
  assert.deepEqual([0, 0.25, 0.9].map((share) => quantile([1, 2, 3, 4, 5], share)), [1, 2, 4.6]);
});

test("axes of candidates", () => {
  const place = (values, bounds) => values.map(axis(values, bounds).place);
  assert.deepEqual(place([-5, 0, 5], null), [0, 0.5, 1]);
  assert.deepEqual(place([-5, 0, 5], [0, 10]), [0, 0, 0.5]);
  assert.deepEqual(place([1, 1000, 1e6], null).map((at) => at.toFixed(3)), ["0.000", "0.500", "1.000"]);
  assert.deepEqual(place([3, 3], null), [0.5, 0.5]);
  assert.deepEqual(place([-MOST, 0, MOST], null), [0, 0.5, 1]);
});

test("conditions choose candidates", () => {
  const all = [{ f: 1, how: "fast" }, { f: 5, how: "slow" }, { f: null, how: "slow" }];
  const kept = (text) => {
    const { problem, holds } = conditions(text, ["f", "how"], (one, name) => one[name]);
    return problem || all.filter(holds).length;
  };
  assert.deepEqual(["", "f < 5", "f<=5", "f > 1, how = slow", "how = slow", "f = 5"].map(kept), [3, 1, 2, 1, 2, 1]);
  assert.equal(kept("f"), "“f” is not a condition such as f < 5");
  assert.equal(kept("g > 1"), "there is no column g");
  assert.equal(kept("f > fast"), "fast is not a number");
});

test("a candidate as Python", () => {
  const genes = { x: [1.5, -2], how: "a \"b\"", on: [true, null] };
  assert.equal(python(genes), "{\"x\": [1.5, -2], \"how\": \"a \\\"b\\\"\", \"on\": [True, None]}");
});
