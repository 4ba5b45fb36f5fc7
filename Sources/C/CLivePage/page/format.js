// Numbers and times as people read them. Everything here returns text.

const whole = new Intl.NumberFormat("en", {maximumFractionDigits: 0});
const short = new Intl.NumberFormat("en", {maximumSignificantDigits: 3});

/** 1,204; nothing known is a dash. */
export function count(number) {
  return Number.isFinite(number) ? whole.format(number) : "–";
}

/** Events per second: 0.2, 31, 1,204. */
export function rate(number) {
  if (!Number.isFinite(number)) return "–";
  if (number > 0 && number < 0.1) return number < 0.01 ? "<0.01" : number.toFixed(2);
  return number >= 100 ? whole.format(number) : short.format(number);
}

/** A share as percent: 0 %, 0.4 %, 61 %. */
export function share(part, of) {
  if (!Number.isFinite(part) || !of) return "–";
  const percent = 100 * part / of;
  if (percent === 0) return "0 %";
  if (percent < 0.1) return "<0.1 %";
  return `${percent < 10 ? percent.toFixed(1) : Math.round(percent)} %`;
}

/** Bytes in binary units: 512 B, 5.2 MiB. */
export function bytes(number) {
  if (!Number.isFinite(number)) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (number >= 1024 && unit < units.length - 1) {
    number /= 1024;
    unit += 1;
  }
  return `${unit === 0 || number >= 100 ? Math.round(number) : number.toFixed(1)} ${units[unit]}`;
}

/** Microseconds: 90 µs, 4.2 ms, 84 ms, 2.4 s, 3 min. */
export function duration(microseconds) {
  if (!Number.isFinite(microseconds)) return "–";
  if (microseconds < 1000) return `${Math.round(microseconds)} µs`;
  const milliseconds = microseconds / 1000;
  if (milliseconds < 1000) {
    return `${milliseconds < 10 ? milliseconds.toFixed(1) : Math.round(milliseconds)} ms`;
  }
  const seconds = milliseconds / 1000;
  return seconds < 60 ? `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s` : span(seconds);
}

/** Seconds in the one unit that says it: 12 s, 3 min, 2 h, 61 d, 72 y. */
export function span(seconds) {
  const size = Math.abs(seconds);
  if (size < 60) return `${Math.round(seconds)} s`;
  if (size < 3600) return `${Math.round(seconds / 60)} min`;
  if (size < 48 * 3600) return `${Math.round(seconds / 3600)} h`;
  if (size < 730 * 86400) return `${Math.round(seconds / 86400)} d`;
  return `${Math.round(seconds / (365.25 * 86400))} y`;
}

/** How far a time of the gateway (RFC 3339) is from `now` (milliseconds), in seconds; later is more. */
export function secondsUntil(time, now) {
  return (Date.parse(time) - now) / 1000;
}

/** "in 6 d", "2 h ago". */
export function relative(time, now) {
  const seconds = secondsUntil(time, now);
  if (!Number.isFinite(seconds)) return "–";
  return seconds >= 0 ? `in ${span(seconds)}` : `${span(-seconds)} ago`;
}

const two = (number) => String(number).padStart(2, "0");

/** The time of day, in the browser's time zone: 03:14:07. */
export function clock(time) {
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return "–";
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

/** Date and time, in the browser's time zone: 2026-11-29 03:14. */
export function moment(time) {
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return "–";
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} `
    + `${two(date.getHours())}:${two(date.getMinutes())}`;
}

/** "3 hosts", "1 host". */
export function plural(number, one, several = `${one}s`) {
  return `${count(number)} ${number === 1 ? one : several}`;
}
