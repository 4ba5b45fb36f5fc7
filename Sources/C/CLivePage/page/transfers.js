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

/** Bytes so far, and the share where the length is known. */
function progress(one) {
  if (one.length > 0) {
    return h("span", {class: "progress"}, meter(one.responseBytes, one.length, "received", true), " ",
      `${bytes(one.responseBytes)} of ${bytes(one.length)}`);
  }
  return `${bytes(one.responseBytes ?? 0)}`;
}

function age(begin) {
  return begin ? span((now() - Date.parse(begin)) / 1000) : "–";
}

function rate(number) {
  return number === undefined ? "–" : `${bytes(number)}/s`;
}

/** The transfers and tunnels under way, `most` of each; nothing if there are none. */
export function transfersUnderWay(most) {
  const {transfers: now} = live;
  const requests = now?.transfers ?? [];
  const tunnels = now?.open ?? [];
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
  const left = (now.requests ?? 0) + (now.tunnels ?? 0) - rows.length;
  return section("Under way",
    `${plural(now.requests ?? requests.length, "request")}, ${plural(now.tunnels ?? tunnels.length, "tunnel")}${left > 0 ? `; ${count(left)} not shown` : ""}`,
    table("Under way", COLUMNS, rows));
}
