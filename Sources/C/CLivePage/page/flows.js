// The last exchanges, as they end.

import {phaseLegend} from "./charts.js";
import {h, replace} from "./dom.js";
import {matches, parse, text} from "./filter.js";
import {flowRows, flowTable} from "./flowlist.js";
import {count, plural} from "./format.js";
import {explanationOf} from "./flow.js";
import {live, on} from "./live.js";
import {amend} from "./router.js";
import {transfersUnderWay} from "./transfers.js";

export const title = "Flows";

/** Rows that are shown at first: a browser is slow with more, and nobody reads them. */
const FIRST = 200;

export function show(root, asked) {
  let query = asked;
  let most = FIRST;
  let isPaused = false;
  /** What is shown while the list stands still. */
  let frozen;

  const field = h("input", {
    type: "search", id: "filter", value: text(query), spellcheck: "false", autocomplete: "off",
    placeholder: "host:api.example.com status:5xx or any text",
    input: () => {
      query = parse(field.value);
      amend("flows", query);
      frozen = undefined;
      update();
      explain();
    },
  });
  const pause = h("button", {type: "button", "aria-pressed": "false", click: () => toggle()}, "Pause");
  const state = h("p", {class: "note", "aria-live": "off"});
  const list = flowTable("Flows");
  const more = h("button", {type: "button", click: () => { most = Infinity; update(); }});
  const transfers = h("div");
  const meaning = h("div");
  root.append(h("h1", {class: "unseen"}, title),
    h("div", {class: "bar", role: "search"}, h("label", {for: "filter"}, "Filter"), field, pause,
      quick("failed", {failed: "true"}), quick("5xx", {status: "5xx"}), quick("tunnels", {kind: "tunnel"}), quick("all", {})),
    state, meaning, transfers, phaseLegend(),
    h("section", {class: "panel"}, h("h2", {class: "unseen"}, "Those that have ended, newest first"), list.element, list.note, more));

  function quick(word, wanted) {
    const terms = new URLSearchParams(wanted).toString();
    return h("a", {class: "quick", href: terms ? `#flows?${terms}` : "#flows"}, word);
  }

  function toggle() {
    isPaused = !isPaused;
    pause.textContent = isPaused ? "Go on" : "Pause";
    pause.setAttribute("aria-pressed", String(isPaused));
    frozen = undefined;
    update();
  }

  /** The list stands still while it is paused, and while the keyboard is in it. */
  function source() {
    if (!isPaused && !list.element.contains(document.activeElement)) {
      frozen = undefined;
      return live.flows;
    }
    frozen ??= live.flows.slice();
    return frozen;
  }

  function update() {
    const all = source();
    const found = all.filter((flow) => matches(flow, query));
    flowRows(list, found.slice(0, most), query);
    more.hidden = found.length <= most;
    more.textContent = `Show all ${count(found.length)}`;
    const {held, dropped, leftOut} = live;
    const waiting = frozen ? live.flows.filter((flow) => flow.id !== undefined && !known(frozen, flow)).length : 0;
    replace(state, [
      `${count(found.length)} of ${plural(live.flows.length, "flow")}`,
      held.capacity ? ` (the gateway holds ${count(held.capacity)} at most)` : "",
      held.gaveWay ? `; ${count(held.gaveWay)} older ones gave way` : "",
      dropped ? `; ${count(dropped)} ended too fast to be told one by one` : "",
      leftOut ? `; ${count(leftOut)} were left out, because more end than are shown` : "",
      frozen ? `; standing still, ${count(waiting)} more since` : "",
      ". ",
      live.access === "masked" ? ["Clients, users, queries and heads are masked. ",
        h("button", {type: "button", class: "link", "data-key": "unmask",
          click: () => document.dispatchEvent(new Event("pinfold-token"))}, "Enter the token")] : "",
    ]);
  }

  /** A filter by reason says what the reason means, with the first flow that has it. */
  async function explain() {
    const reason = query.reason;
    meaning.replaceChildren();
    if (!reason) return;
    const one = live.flows.find((flow) => flow.reason === reason);
    const shown = await explanationOf(reason, one?.id);
    if (query.reason === reason) replace(meaning, shown);
  }

  update();
  explain();
  const pauseByKey = () => toggle();
  document.addEventListener("pinfold-pause", pauseByKey);
  list.element.addEventListener("focusout", () => setTimeout(update, 0));
  let explained = live.flows.length > 0;
  const stops = [
    on("flows", () => {
      update();
      if (!explained && live.flows.length) {
        explained = true;
        explain();
      }
    }),
    on("transfers", () => replace(transfers, transfersUnderWay(20))),
    () => document.removeEventListener("pinfold-pause", pauseByKey),
  ];
  replace(transfers, transfersUnderWay(20));
  return () => stops.forEach((stop) => stop());
}

let cached;
let ids;
function known(flows, flow) {
  if (cached !== flows) {
    cached = flows;
    ids = new Set(flows.map((one) => one.id));
  }
  return ids.has(flow.id);
}
