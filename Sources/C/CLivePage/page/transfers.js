// What is under way: how far it is, how fast, and for which host.

import {meter, spinner} from "./charts.js";
import {h} from "./dom.js";
import {bytes, count, plural, span} from "./format.js";
import {live, now, speed} from "./live.js";
import {section, table} from "./table.js";
import {plain} from "./text.js";

const COLUMNS = [
  {title: "Transfer"}, {title: "State"}, {title: "Progress"}, {title: "Rate", kind: "number"},
  {title: "For", kind: "number"}, {title: "Client"},
];

/** Bytes so far; where the length is known, the share and how long the rest will take. */
function progress(one) {
  if (one.length > 0) {
    const left = (one.length - one.responseBytes) / speed(one, "responseBytes");
    return h("span", {class: "progress"}, meter(one.responseBytes, one.length, "received", true), " ",
      `${bytes(one.responseBytes)} of ${bytes(one.length)}`,
      Number.isFinite(left) ? `, ${span(left)} left` : "");
  }
  return `${bytes(one.responseBytes ?? 0)}`;
}

function age(begin) {
  return begin ? span((now() - Date.parse(begin)) / 1000) : "–";
}

function rate(number) {
  return number === undefined ? "–" : `${bytes(number)}/s`;
}

/** The host entries for which something is under way. */
export function busyEntries() {
  return new Set((live.transfers?.transfers ?? []).map((one) => one.entry));
}

/** The transfers and tunnels under way, `most` of each; nothing if there are none. */
export function transfersUnderWay(most) {
  const {transfers: found} = live;
  const requests = found?.transfers ?? [];
  const tunnels = found?.open ?? [];
  if (!requests.length && !tunnels.length) return [];
  const rows = [
    ...requests.slice(0, most).map((one) => [
      [spinner("under way"), " ", h("b", plain(one.method)), " ", plain(`${one.host ?? ""}${one.path ?? ""}`)],
      plain(one.state), progress(one), rate(speed(one, "responseBytes")), age(one.begin),
      one.client ? plain(one.client) : "–",
    ]),
    ...tunnels.slice(0, most).map((one) => [
      [h("b", "tunnel"), " ", plain(one.host ?? "")], "open",
      `${bytes(one.fromClientBytes)} out, ${bytes(one.toClientBytes)} in`,
      rate(speed(one, "toClientBytes")), age(one.begin), one.client ? plain(one.client) : "–",
    ]),
  ];
  const left = (found.requests ?? 0) + (found.tunnels ?? 0) - rows.length;
  return section("Under way",
    `${plural(found.requests ?? requests.length, "request")}, ${plural(found.tunnels ?? tunnels.length, "tunnel")}${left > 0 ? `; ${count(left)} not shown` : ""}`,
    table("Under way", COLUMNS, rows));
}
