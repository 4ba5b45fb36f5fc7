// Flows as rows: used by the overview and by the panel of flows.

import {mark, phaseBar} from "./charts.js";
import {h} from "./dom.js";
import {clock, duration} from "./format.js";
import {live} from "./live.js";
import {address} from "./router.js";
import {empty, row, trouble} from "./table.js";
import {plain} from "./text.js";

const COLUMNS = [
  {title: "Time"}, {title: "Request"}, {title: "Status"}, {title: "Why"}, {title: "Cache"},
  {title: "Pins"}, {title: "Client"}, {title: "Took", kind: "number"}, {title: "Phases"},
];

/** What a status means, as a mark: no colour without a shape. */
export function statusMark(flow) {
  const {status} = flow;
  if (!status) return mark("bad", "none");
  if (flow.reason || status >= 500) return mark("bad", status);
  return status >= 400 ? mark("warn", status) : mark("good", status);
}

const PINS = {passed: "good", report_only: "warn", refused: "bad", unpinned: "idle"};

/** What the pins said. */
export function pinMark(flow) {
  if (flow.pin) return mark(PINS[flow.pin] ?? "idle", plain(flow.pin).replace("_", " "));
  const judged = flow.inspected ?? flow.passed;
  return judged ? mark("idle", plain(judged)) : "–";
}

/** Where a request went: `api.example.com:443/v1/pay`. */
export function targetText(flow) {
  const usual = {http: /:80$/, https: /:443$/}[flow.scheme];
  const host = usual ? String(flow.host ?? "").replace(usual, "") : flow.host ?? "";
  return plain(`${host}${flow.path ?? ""}`) || "–";
}

/** A word that narrows the list down to those that have it, too. */
function narrowing(key, word) {
  return word ? h("a", {href: address("flows", {[key]: word})}, plain(word)) : "–";
}

function flowRow(flow, query, longest) {
  const from = new URLSearchParams(query).toString();
  return row(COLUMNS, [
    clock(flow.begin),
    h("a", {class: "row", href: address("flow", {id: flow.id, from})},
      h("b", plain(flow.method || "?")), " ", targetText(flow)),
    statusMark(flow),
    narrowing("reason", flow.reason),
    flow.cache && flow.cache !== "none" ? plain(flow.cache) : "–",
    pinMark(flow),
    flow.client ? narrowing("client", flow.client.replace(/:\d+$/, "")) : "–",
    duration(flow.duration_us),
    phaseBar(flow.phases, longest),
  ]);
}

/** An empty table of flows; `flowRows` fills it. */
export function flowTable(label) {
  const body = h("tbody");
  const element = h("table", {class: "flows", "aria-label": label},
    h("thead", h("tr", COLUMNS.map((column) => h("th", {scope: "col", class: column.kind}, column.title)))),
    body);
  return {element, body, note: h("div"), rows: new Map()};
}

/** Shows these flows. Rows that are there already stay as they are, with the keyboard in them. */
export function flowRows(list, flows, query) {
  const key = JSON.stringify(query);
  if (list.key !== key) list.rows.clear();
  list.key = key;
  // The scale of the bars: most are to be seen, and one that took a minute must not flatten them.
  const durations = flows.map((flow) => flow.duration_us ?? 0).sort((one, other) => one - other);
  const longest = durations[Math.floor(durations.length * 0.9)] || 1;
  const rows = flows.map((flow) => {
    const known = list.rows.get(flow.id);
    if (known) return known;
    const made = flowRow(flow, query, longest);
    list.rows.set(flow.id, made);
    return made;
  });
  sync(list.body, rows);
  if (list.rows.size > 2 * rows.length + 100) {
    const shown = new Set(rows);
    for (const [id, one] of list.rows) if (!shown.has(one)) list.rows.delete(id);
  }
  list.element.hidden = !rows.length;
  list.note.replaceChildren(rows.length ? "" : nothing(query));
}

/** Makes these rows the content of a table's body, moving none that can stay. */
function sync(body, rows) {
  const wanted = new Set(rows);
  for (const one of [...body.children]) if (!wanted.has(one)) one.remove();
  let next = body.firstChild;
  for (const one of rows) {
    if (one === next) next = next.nextSibling;
    else body.insertBefore(one, next);
  }
}

function nothing(query) {
  if (live.flowsProblem) return trouble(live.flowsProblem, "flows");
  if (Object.keys(query).length) return empty("No flow that the gateway holds is like that.", h("a", {href: "#flows"}, "Show all"));
  return empty("No request has come in since this page was opened. Send one: the ",
    h("a", {href: "#setup"}, "setup"), " has the lines for each client.");
}
