// The numbers behind the pictures of candidates: ranks, rank correlations, conditions, places on an axis.

/** The ranks of numbers from 0; equal numbers share the mean of their ranks. */
export function ranks(values) {
  const order = values.map((_, at) => at).sort((one, other) => values[one] - values[other]);
  const found = new Array(values.length);
  for (let from = 0; from < order.length;) {
    let to = from;
    while (to < order.length && values[order[to]] === values[order[from]]) to += 1;
    for (let at = from; at < to; at += 1) found[order[at]] = (from + to - 1) / 2;
    from = to;
  }
  return found;
}

/** Spearman's rank correlation, from -1 to 1; 0 if one of the lists is constant. */
export function correlation(one, other) {
  const centred = (values) => ranks(values).map((rank) => rank - (values.length - 1) / 2);
  const [a, b] = [centred(one), centred(other)];
  const product = (x, y) => x.reduce((sum, value, at) => sum + value * y[at], 0);
  const size = Math.sqrt(product(a, a) * product(b, b));
  return size > 0 ? product(a, b) / size : 0;
}

/** The greatest correlation, without sign, that chance alone exceeds in one of twenty cases. */
export function byChance(count) {
  return count > 3 ? Math.min(1, 1.96 / Math.sqrt(count - 1)) : 1;
}

/** The value below which this share of sorted numbers lies. */
export function quantile(sorted, share) {
  const at = share * (sorted.length - 1);
  const low = Math.floor(at);
  const next = Math.min(low + 1, sorted.length - 1);
  return sorted[low] + (at - low) * (sorted[next] - sorted[low]);
}

/** A function from values to shares of an axis, from 0 to 1. The axis is logarithmic for positive values far apart. */
export function axis(values, bounds) {
  const [low, high] = bounds ?? values.reduce(([least, most], value) =>
    [Math.min(least, value), Math.max(most, value)], [Infinity, -Infinity]);
  const log = low > 0 && high / low > 1000;
  // Halves are used because the whole range may exceed the largest number.
  const by = log ? Math.log10 : (value) => value / 2;
  const span = by(high) - by(low);
  const share = (value) => Math.max(0, Math.min(1, (by(value) - by(low)) / span));
  return { low, high, log, place: (value) => (span > 0 ? share(value) : 0.5) };
}

const SIGNS = { "<": (a, b) => a < b, ">": (a, b) => a > b, "<=": (a, b) => a <= b, ">=": (a, b) => a >= b,
  "=": (a, b) => a === b };

/**
 * The conditions in a text such as "cost < 5, x[0] > 1", as a function of a candidate, with the problem of the first
 * condition that cannot be understood. `value(candidate, name)` is undefined if there is no such column.
 */
export function conditions(text, names, value) {
  const all = [];
  for (const part of text.split(",").map((one) => one.trim()).filter(Boolean)) {
    const [, name, sign, limit] = part.match(/^(.+?)\s*(<=|>=|<|>|=)\s*(.+)$/) ?? [];
    if (!name) return { problem: `“${part}” is not a condition such as ${names[0]} < 5`, holds: () => true };
    if (!names.includes(name)) return { problem: `there is no column ${name}`, holds: () => true };
    const number = Number(limit);
    if (Number.isNaN(number) && sign !== "=") return { problem: `${limit} is not a number`, holds: () => true };
    all.push((candidate) => {
      const own = value(candidate, name);
      return Number.isNaN(number) ? String(own) === limit : own !== null && SIGNS[sign](Number(own), number);
    });
  }
  return { problem: "", holds: (candidate) => all.every((one) => one(candidate)) };
}
