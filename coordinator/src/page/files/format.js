// Numbers and times as people read them.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

/** A count. */
export function count(value) {
  return whole.format(value);
}

/** "1 worker", "3 workers". */
export function counted(value, noun) {
  return `${count(value)} ${noun}${value === 1 ? "" : "s"}`;
}

/** A measured number with this many significant digits. */
export function number(value, digits = 4) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e9) return minus(count(value));
  if (size !== 0 && (size < 1e-4 || size >= 1e9)) return minus(value.toExponential(digits - 1).replace(/\.?0+e/, "e"));
  return minus(new Intl.NumberFormat("en", { maximumSignificantDigits: digits }).format(value));
}

function minus(text) {
  return text.replaceAll("-", "−").replace("e+", "e");
}

/** A share in percent; 100 only if nothing is left. */
export function percent(done, total) {
  if (!total) return "0 %";
  const value = (100 * done) / total;
  return `${done < total ? Math.min(99, Math.floor(value)) : 100} %`;
}

/** A time in two units at most. */
export function duration(seconds) {
  const minutes = Math.ceil(seconds / 60);
  const hours = Math.floor(minutes / 60);
  if (seconds < 60) return `${Math.round(seconds)} s`;
  if (seconds < 3600) return `${minutes} min`;
  if (seconds < 86400) return `${hours} h ${minutes - 60 * hours} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** "12 a second", "3.4 a minute". */
export function rate(perSecond) {
  if (!perSecond) return "–";
  if (perSecond >= 10) return `${count(Math.round(perSecond))} a second`;
  if (perSecond >= 1) return `${perSecond.toFixed(1)} a second`;
  return `${(60 * perSecond).toFixed(1)} a minute`;
}

/** The time of day of a moment in seconds since 1970, with the date if it is not today. */
export function clock(at) {
  const moment = new Date(1000 * at);
  const time = moment.toTimeString().slice(0, 8);
  const sameDay = moment.toDateString() === new Date().toDateString();
  return sameDay ? time : `${moment.toISOString().slice(0, 10)} ${time}`;
}

/** The day, unless it is today, and the time in hours and minutes. */
export function moment(at) {
  return clock(at).replace(/:\d\d$/, "");
}
