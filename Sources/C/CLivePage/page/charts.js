// Pictures, drawn by hand in SVG. Each has a text beside it or a label: none is for the eye alone.

import {h, svg} from "./dom.js";
import {duration} from "./format.js";

const WIDTH = 72;
const HEIGHT = 16;

/** The last five minutes of a number, oldest first; what is not known leaves a gap. `show` makes a
 * number into text, for the label. */
export function sparkline(numbers, show) {
  const known = numbers.filter(Number.isFinite);
  const ground = svg("line", {x1: 0, x2: WIDTH, y1: HEIGHT - 0.5, y2: HEIGHT - 0.5});
  if (known.length < 2) return svg("svg", {class: "spark", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, "aria-hidden": "true"}, ground);
  const most = Math.max(...known) || 1;
  // Sixty samples are five minutes: fewer begin further right.
  const step = WIDTH / 59;
  const left = WIDTH - step * (numbers.length - 1);
  const runs = [];
  let run = [];
  numbers.forEach((number, index) => {
    if (Number.isFinite(number)) {
      run.push(`${(left + index * step).toFixed(1)},${(HEIGHT - 1 - (HEIGHT - 2) * number / most).toFixed(1)}`);
    } else if (run.length) {
      runs.push(run);
      run = [];
    }
  });
  if (run.length) runs.push(run);
  const label = `last five minutes: ${show(Math.min(...known))} to ${show(Math.max(...known))}`;
  return svg("svg", {
    class: "spark", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": label,
  }, svg("title", {}, label), ground, runs.map((points) => svg("polyline", {points: points.join(" ")})));
}

/** The phases of an exchange, in their order, with the words of the access log. */
export const PHASES = [
  ["queue_us", "queue", "queue"], ["dns_us", "dns", "DNS"], ["connect_us", "connect", "connect"],
  ["tls_us", "tls", "TLS"], ["first_byte_us", "first_byte", "first byte"],
  ["body_us", "body", "body"],
];

/** What the phases of a flow say, in words. */
export function phaseText(phases) {
  const parts = PHASES.filter(([member]) => phases?.[member] !== undefined)
    .map(([member, , word]) => `${word} ${duration(phases[member])}`);
  return parts.length ? parts.join(", ") : "no phase: answered from memory or at once";
}

/** The phases as one bar of six parts; `longest` is the duration that fills it. */
export function phaseBar(phases, longest) {
  const text = phaseText(phases);
  const times = PHASES.map(([member]) => phases?.[member] ?? 0);
  const sum = times.reduce((one, other) => one + other, 0);
  const scale = 100 / Math.max(longest ?? sum, sum, 1);
  let x = 0;
  const parts = times.map((time, index) => {
    // What took place is seen, however short it was.
    const width = time > 0 ? Math.max(time * scale, 1) : 0;
    const part = svg("rect", {
      class: `phase-${PHASES[index][1]}`, x: x.toFixed(2), y: 0, width: width.toFixed(2), height: 10,
    });
    x += width;
    return part;
  });
  return svg("svg", {
    class: "phases", viewBox: `0 0 ${Math.max(100, x).toFixed(2)} 10`, preserveAspectRatio: "none",
    role: "img", "aria-label": text,
  }, svg("title", {}, text), parts);
}

/** What the colours of a bar stand for. */
export function phaseLegend() {
  return h("ul", {class: "legend", "aria-label": "Phases"}, PHASES.map(([, name, word]) => h("li",
    svg("svg", {class: "swatch", viewBox: "0 0 10 10", "aria-hidden": "true"},
      svg("rect", {class: `phase-${name}`, width: 10, height: 10})), word)));
}

const MARKS = {good: "●", bad: "▲", warn: "◆", idle: "○"};

/** A state: a shape, a word and a colour. */
export function mark(kind, ...words) {
  return h("span", {class: `mark ${kind}`}, h("span", {"aria-hidden": "true"}, MARKS[kind], " "),
    words);
}

/** A bar of how much of something is used up. */
export function meter(part, of, label, isDone = false) {
  const percent = of > 0 ? Math.min(100, 100 * part / of) : 0;
  return svg("svg", {
    class: `meter${percent > 90 && !isDone ? " full" : ""}`, viewBox: "0 0 100 6", preserveAspectRatio: "none",
    role: "img", "aria-label": `${label}: ${Math.round(percent)} %`,
  }, svg("rect", {class: "whole", width: 100, height: 6}),
  svg("rect", {class: "part", width: percent.toFixed(1), height: 6}));
}

/** Something is going on. */
export function spinner(label) {
  return h("span", {class: "spinner", role: "img", "aria-label": label});
}
