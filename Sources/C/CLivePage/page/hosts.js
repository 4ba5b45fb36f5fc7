// Host entries, those first that are not as they usually are.

import {mark, PHASES, phaseBar, phaseLegend, spinner} from "./charts.js";
import {command, h, replace} from "./dom.js";
import {count, duration, plural, rate, relative, secondsUntil, share, span} from "./format.js";
import {now} from "./live.js";
import {poll} from "./poll.js";
import {address} from "./router.js";
import {empty, facts, section, table, trouble} from "./table.js";
import {plain} from "./text.js";
import {busyEntries} from "./transfers.js";

export const title = "Hosts";

const COLUMNS = [
  {title: "Host entry"}, {title: "Trouble"}, {title: "Requests/s", kind: "number"},
  {title: "Failed", kind: "number"}, {title: "Typical time"}, {title: "Slowest, p99"},
  {title: "Servers"}, {title: "Pins"}, {title: "Certificate", kind: "number"},
];

/** A certificate that ends within two weeks is worth a look. */
const SOON = 14 * 86_400;

export function expiry(time) {
  if (!time) return "–";
  const seconds = secondsUntil(time, now());
  if (seconds < 0) return mark("bad", `ended ${relative(time, now())}`);
  return seconds < SOON ? mark("warn", relative(time, now())) : relative(time, now());
}

/** Times of half of the exchanges, as the phases of one. A phase that most of them did not have, such as
 * DNS where connections are used again, is not typical. */
export function typical(host) {
  const phases = host.phases ?? [];
  const most = Math.max(...phases.map((one) => one.count ?? 0));
  return Object.fromEntries(phases.filter((one) => one.p50_us !== undefined && 2 * one.count >= most)
    .map((one) => [`${one.phase}_us`, one.p50_us]));
}

/** The word for a phase. */
function phaseWord(name) {
  return PHASES.find(([, phase]) => phase === name)?.[2] ?? plain(name);
}

function slowest(host) {
  const phases = (host.phases ?? []).filter((one) => one.p99_us !== undefined && one.phase !== "body");
  if (!phases.length) return "–";
  const most = phases.reduce((one, other) => other.p99_us > one.p99_us ? other : one);
  const usual = most.usual_p99_us === undefined ? "" : ` (usual ${duration(most.usual_p99_us)})`;
  return `${phaseWord(most.phase)} ${duration(most.p99_us)}${usual}`;
}

function reach(host) {
  const up = host.reachable ?? 0;
  const down = host.notReachable ?? 0;
  const all = up + down + (host.unknown ?? 0);
  if (!all) return "–";
  if (down) return mark("bad", `${up}/${all}`);
  return up ? mark("good", `${up}/${all}`) : mark("idle", `${up}/${all}`);
}

function troubles(host) {
  const words = host.trouble ?? [];
  return words.length ? mark("bad", words.map((word) => plain(word).replaceAll("_", " ")).join(", ")) : mark("good", "none");
}

function pinsets(host) {
  const names = host.pinset ?? [];
  return names.length ? names.map((name, index) => [index ? ", " : "", h("a", {href: address("pins", {pinset: name})}, plain(name))]) : "none";
}

/** Why exchanges of an entry failed, each with those that did. */
function causes(host) {
  const list = host.causes ?? [];
  return list.length ? list.map((one, index) => [index ? ", " : "",
    h("a", {href: address("flows", {entry: host.entry, reason: one.reason})}, plain(one.reason)), ` ${count(one.count)}`]) : "–";
}

/** The table of hosts; `most` rows at first. */
export function hostTable(answer, most = Infinity) {
  const hosts = answer.hosts ?? [];
  if (!hosts.length) {
    return empty("No host entry has been used. Entries of ", h("code", "hosts"), " in the configuration are listed here: ",
      command("pinfold check --config pinfold.yaml"));
  }
  const seconds = answer.seconds || 300;
  const busy = busyEntries();
  return [table("Hosts", COLUMNS, hosts.slice(0, most).map((host) => [
    [h("a", {class: "row", href: address("hosts", {entry: host.entry}), "data-key": `host ${host.entry}`}, plain(host.entry)),
      busy.has(host.entry) ? [" ", spinner("a transfer is under way")] : []],
    troubles(host), rate(host.requests / seconds), share(host.failures, host.requests),
    phaseBar(typical(host)), slowest(host), reach(host), pinsets(host), expiry(host.certificateExpires),
  ])), hosts.length > most ? h("p", h("a", {href: "#hosts"}, `All ${count(hosts.length)} entries`)) : []];
}

/** One entry. */
function one(host, seconds) {
  const phases = host.phases ?? [];
  return [
    h("h1", plain(host.entry)), h("p", troubles(host)),
    h("div", {class: "columns"},
      section("Where time goes", `the last ${span(seconds)}, beside what is usual`,
        phases.length ? [phaseBar(typical(host)), table("Phases", [
          {title: "Phase"}, {title: "Count", kind: "number"}, {title: "p50", kind: "number"},
          {title: "p99", kind: "number"}, {title: "Usual p99", kind: "number"},
        ], phases.map((phase) => [
          h("span", {class: `word phase-${plain(phase.phase)}`}, phaseWord(phase.phase)), count(phase.count),
          duration(phase.p50_us), duration(phase.p99_us), duration(phase.usual_p99_us),
        ]))] : empty("No exchange of this entry has waited for anything yet.")),
      section("In figures", undefined, facts([
        ["Requests/s", rate(host.requests / seconds)], ["Failed", `${share(host.failures, host.requests)} (${plural(host.failures ?? 0, "request")})`],
        ["Because of", causes(host)],
        ["Tunnels", count(host.tunnels)], ["Since the start", `${plural(host.total?.requests ?? 0, "request")}, ${count(host.total?.failures ?? 0)} failed`],
        ["Connections", `${count(host.open)} open, ${count(host.idle)} of them idle`],
        ["Waiting for one", count(host.waiting)], ["Servers", reach(host)],
        ["Pinsets", pinsets(host)], ["Certificate", expiry(host.certificateExpires)], ["Chain", expiry(host.chainExpires)],
      ]))),
    h("p", h("a", {class: "row", href: address("flows", {entry: host.entry})}, "Its flows"), " · ",
      h("a", {class: "row", href: address("flows", {entry: host.entry, failed: "true"})}, "Its failures")),
  ];
}

export function show(root, query) {
  const content = h("div", empty("Asking the gateway…"));
  if (!query.entry) root.append(h("h1", {class: "unseen"}, title), phaseLegend());
  else root.append(h("p", h("a", {class: "row", href: "#hosts"}, "← Hosts")), phaseLegend());
  root.append(content);
  return poll("/api/v1/hosts", (answer) => {
    if (!query.entry) {
      replace(content, section("Hosts", `trouble first; the last ${span(answer.seconds || 300)}`, hostTable(answer)));
      return;
    }
    const host = (answer.hosts ?? []).find((each) => each.entry === query.entry);
    replace(content, host ? one(host, answer.seconds || 300) : empty(`There is no host entry ${plain(query.entry)}.`));
  }, (problem) => replace(content, trouble(problem, "hosts")));
}
