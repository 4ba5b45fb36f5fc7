// The first panel: is all well, and if not, why?

import {mark} from "./charts.js";
import {h, replace} from "./dom.js";
import {fleetCard} from "./fleet.js";
import {hostTable} from "./hosts.js";
import {flowTable, flowRows} from "./flowlist.js";
import {unverified} from "./pins.js";
import {transfersUnderWay} from "./transfers.js";
import {live, on} from "./live.js";
import {poll} from "./poll.js";
import {address} from "./router.js";
import {empty, section, trouble} from "./table.js";
import {plain} from "./text.js";

export const title = "Overview";

const HOSTS = 12;
const FLOWS = 12;

/** Where there is more about something that needs attention. */
const PLACES = {
  certificate: "pins", pinset: "pins", reachability: "reachability", limit: "workers",
  configuration: "configuration", disk: "cache", "shared-cache": "cache", host: "hosts",
};

function placeOf(one) {
  if (one.pinset) return address("pins", {pinset: one.pinset});
  if (one.host && one.kind !== "reachability") return address("hosts", {entry: one.host});
  return PLACES[one.kind] ? address(PLACES[one.kind]) : undefined;
}

/** What the gateway thinks should be looked at, worst first. */
function attention(list) {
  if (!list.length) {
    return h("p", {class: "well"}, mark("good", "Nothing needs attention: "),
      "no certificate or pinset ends soon, no server is unreachable, no limit is near, the configuration is in force.");
  }
  return h("ul", {class: "attention"}, list.map((one) => {
    const kind = one.level === "critical" ? "bad" : "warn";
    const text = [h("strong", {class: `mark ${kind}`}, kind === "bad" ? "▲ critical" : "◆ warning"), " ",
      one.host ? [h("span", {class: "subject"}, plain(one.host)), ": "] : [], plain(one.text)];
    const link = placeOf(one);
    return h("li", link ? h("a", {class: "row", href: link, "data-key": `attention ${one.text}`}, text) : text);
  }));
}

export function show(root) {
  const parts = Object.fromEntries(["attention", "fleet", "hosts", "unverified", "transfers", "flows"]
    .map((name) => [name, h("div")]));
  const attentionBox = section("Needs attention", undefined, parts.attention);
  const flows = flowTable("Latest flows");
  root.append(h("h1", {class: "unseen"}, title), attentionBox,
    parts.fleet,
    h("div", {class: "columns"},
      section("Hosts", "trouble first", parts.hosts),
      section("Passes unverified", "tunnels that nothing judged", parts.unverified)),
    parts.transfers,
    section("Flows", h("a", {href: "#flows"}, "all, with a filter"), parts.flows));
  parts.flows.append(flows.element, flows.note);

  const showAttention = () => {
    if (live.overview) replace(parts.attention, attention(live.overview.attention ?? []));
    else if (live.overviewProblem) replace(parts.attention, trouble(live.overviewProblem, "what needs attention"));
    else replace(parts.attention, empty("Asking the gateway…"));
  };
  let stopFleet;
  /** Only where there is a fleet: what there is not is not asked for. */
  const showFleet = () => {
    if (!live.overview?.fleet || stopFleet) return;
    const content = h("div", empty("Asking the engine…"));
    replace(parts.fleet, section("Fleet", `this gateway is ${plain(live.overview.fleet)}`, content));
    stopFleet = poll("/api/v1/fleet", (answer) => replace(content, fleetCard(answer)),
      (problem) => replace(content, trouble(problem, "the fleet")));
  };
  const showFlows = () => flowRows(flows, live.flows.slice(0, FLOWS), {});
  const showTransfers = () => replace(parts.transfers, transfersUnderWay(5));
  showAttention();
  showFleet();
  showFlows();
  showTransfers();
  const stops = [
    on("overview", showAttention), on("overview", showFleet), on("flows", showFlows), on("transfers", showTransfers),
    poll("/api/v1/hosts", (answer) => replace(parts.hosts, hostTable(answer, HOSTS)),
      (problem) => replace(parts.hosts, trouble(problem, "hosts"))),
    poll("/api/v1/pins", (answer) => replace(parts.unverified, unverified(answer, HOSTS)),
      (problem) => replace(parts.unverified, trouble(problem, "pins")), 15),
  ];
  return () => {
    stopFleet?.();
    stops.forEach((stop) => stop());
  };
}
