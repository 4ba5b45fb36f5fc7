// The threads that serve clients, and limits beside what they limit.

import {mark, meter, sparkline} from "./charts.js";
import {h, replace} from "./dom.js";
import {count, duration} from "./format.js";
import {live, on} from "./live.js";
import {empty, section, table, trouble} from "./table.js";

export const title = "Workers";

/** A turn beyond this is felt by every client of the worker. */
const LONG_TURN = 100_000;

function workers(list) {
  if (!list.length) return empty("No sample yet: one is taken every five seconds.");
  return table("Workers", [
    {title: "Worker"}, {title: "Busy"}, {title: "Share", kind: "number"}, {title: "Longest turn", kind: "number"}, {title: "State"},
  ], list.map((one) => [
    String(one.index), meter(one.busyPercent ?? 0, 100, "busy"), one.busyPercent === undefined ? "–" : `${one.busyPercent} %`, duration(one.longestTurn_us),
    (one.busyPercent ?? 0) > 80 ? mark("warn", "nearly saturated") : one.longestTurn_us > LONG_TURN ? mark("warn", "a long turn: its clients waited") : mark("good", "has room"),
  ]));
}

function limits(load) {
  const rows = [
    ["Connections of clients", load.connections, load.connectionsLimit],
    ["Connections to servers", load.upstreamConnections, load.upstreamConnectionsLimit],
    ["Requests that wait for a connection", load.waiting, undefined],
    ["Requests under way", load.requests, undefined], ["Tunnels", load.tunnels, undefined],
  ];
  return table("Limits", [{title: "What"}, {title: "Now", kind: "number"}, {title: "Limit", kind: "number"}, {title: "Used"}],
    rows.map(([name, now, limit]) => [name, count(now), limit ? count(limit) : "–", limit ? meter(now, limit, name) : "–"]));
}

export function show(root) {
  const content = h("div");
  root.append(h("h1", {class: "unseen"}, title), content);
  const update = () => {
    const {overview, overviewProblem, samples} = live;
    if (!overview) {
      replace(content, overviewProblem ? trouble(overviewProblem, "workers") : empty("Asking the gateway…"));
      return;
    }
    replace(content, h("div", {class: "columns even"},
      section("Workers", ["all together ", sparkline(samples.map((one) => one.busyPercent), (number) => `${number} %`)], workers(overview.workers ?? [])),
      section("Limits", undefined, limits(overview.load ?? {}))));
  };
  update();
  return on("overview", update);
}
