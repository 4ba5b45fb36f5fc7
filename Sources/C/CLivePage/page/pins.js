// Pinsets and what they said, what passes unverified, and everything that expires.

import {mark} from "./charts.js";
import {command, h, replace} from "./dom.js";
import {count, moment, plural, relative, secondsUntil} from "./format.js";
import {expiry} from "./hosts.js";
import {now} from "./live.js";
import {poll} from "./poll.js";
import {address} from "./router.js";
import {empty, section, table, trouble} from "./table.js";
import {plain, quoted} from "./text.js";

export const title = "Pins";

function keys(pinset) {
  const list = pinset.keys ?? [];
  if (!list.length) return empty("It has no pins.");
  return table(`Keys of ${plain(pinset.name)}`, [
    {title: "Pin"}, {title: "Matches", kind: "number"}, {title: "Last"},
  ], list.map((key) => [
    h("code", plain(key.pin)), count(key.matches),
    key.lastMatched ? relative(key.lastMatched, now()) : key.matches ? "a moment ago" : mark("idle", "never"),
  ]));
}

/** The results of evaluations; those that are failures have a mark. */
function results(pinset) {
  const words = Object.entries(pinset.results ?? {}).filter(([, number]) => number > 0);
  if (!words.length) return "no server was judged yet";
  return words.map(([word, number], index) => [index ? ", " : "",
    mark(word === "passed" ? "good" : word === "reported" ? "warn" : "bad", `${count(number)} ${plain(word).replaceAll("_", " ")}`)]);
}

function one(pinset, isSelected) {
  return h("section", {class: `panel card${isSelected ? " selected" : ""}`},
    h("h3", h("a", {class: "row", href: address("pins", {pinset: pinset.name}), "data-key": `pinset ${pinset.name}`}, plain(pinset.name))),
    h("p", pinset.isEnforced ? mark("good", "enforced") : mark("warn", "reports only"),
      pinset.expires ? [" · expires ", expiry(pinset.expires)] : " · does not expire",
      pinset.isReportedAfter ? " · then reports only" : ""),
    h("p", results(pinset)), keys(pinset),
    h("p", h("a", {href: address("flows", {pin: "refused"})}, "Flows that pins refused")));
}

/** Entries whose tunnels nothing judged, and the hosts behind them. */
export function unverified(answer, most = Infinity) {
  const entries = answer.unverified ?? [];
  const hosts = answer.unverifiedHosts ?? [];
  if (!entries.some((entry) => entry.passed) && !hosts.length) {
    return h("p", {class: "well"}, mark("good", "None: "), "every tunnel was judged, or there was none. Tunnels to hosts without pins, "
      + "and without inspection, would be counted here.");
  }
  return [
    entries.length ? table("Entries that pass unverified", [{title: "Host entry"}, {title: "Tunnels", kind: "number"}],
      entries.filter((entry) => entry.passed).slice(0, most).map((entry) => [
        h("a", {class: "row", href: address("flows", {entry: entry.entry, kind: "tunnel"}), "data-key": `unverified ${entry.entry}`}, plain(entry.entry)),
        count(entry.passed),
      ])) : [],
    hosts.length ? table("Hosts that pass unverified", [{title: "Host"}, {title: "How"}, {title: "Seen", kind: "number"}, {title: "Clients", kind: "number"}, {title: "Pin it"}],
      hosts.slice(0, most).map((host) => {
        const name = quoted(host.host);
        return [h("a", {class: "row", href: address("flows", {host: host.host.replace(/:\d+$/, "")}), "data-key": `unpinned ${host.host}`}, plain(host.host)),
          host.how === "tunnel" ? mark("warn", "tunnel") : mark("idle", plain(host.how ?? "–")), count(host.count), count(host.clients),
          name ? command(`pinfold pin ${name}`) : "–"];
      })) : [],
  ];
}

/** Servers whose keys are remembered; those that lately had a new one have a mark. */
function observed(list) {
  if (!list.length) {
    return empty("No server is observed. With ", h("code", "pins: observe"), " in a host entry, its servers' keys are remembered, and ",
      command("pinfold pin propose"), " proposes pins.");
  }
  return table("Observed servers", [{title: "Server"}, {title: "New key"}, {title: "Keys", kind: "number"}, {title: "Certificates", kind: "number"},
    {title: "Addresses", kind: "number"}, {title: "Issuer"}, {title: "Expires"}, {title: "Since"}, {title: "Propose"}],
    list.map((one) => {
      const name = quoted(one.host.replace(/:\d+$/, ""));
      return [
        h("span", {class: "row", "data-key": `observed ${one.host}`}, plain(one.host), one.isVerified ? "" : [" ", mark("warn", "reported only")]),
        one.newKey ? mark("warn", relative(one.newKey, now())) : "–", count(one.keys), count(one.certificates), count(one.addresses),
        plain(one.issuer), expiry(one.expires), relative(one.firstSeen, now()),
        name ? command(`pinfold pin propose --host ${name}`) : "–",
      ];
    }));
}

const KINDS = {
  upstream: "certificate of a server", chain: "chain of a server", listener: "own certificate, for clients",
  client: "own certificate, for servers", authority: "certificate authority for interception", pinset: "pinset",
  crl: "list of revoked certificates (nextUpdate)", logs: "list of transparency logs (70 days old)",
};

/** What is replaced every few days: trouble only if it has not been. */
const REPLACED = ["crl", "logs"];

function due(time) {
  const text = relative(time, now());
  return secondsUntil(time, now()) > 0 ? text : mark("bad", `${text}: out of date`);
}

function calendar(list) {
  if (!list.length) {
    return empty("Nothing that expires is known yet. Certificates of servers appear once they have been connected to, pinsets once they have ",
      h("code", "expires"), ".");
  }
  return table("Calendar", [{title: "When"}, {title: "Due"}, {title: "What"}, {title: "Of"}],
    list.map((one) => [moment(one.time), REPLACED.includes(one.kind) ? due(one.time) : expiry(one.time), KINDS[one.kind] ?? plain(one.kind), plain(one.name)]));
}

export function show(root, query) {
  const content = h("div", empty("Asking the gateway…"));
  root.append(h("h1", {class: "unseen"}, title), content);
  return poll("/api/v1/pins", (answer) => {
    const pinsets = answer.pinsets ?? [];
    const isChosen = (pinset) => pinset.name === query.pinset;
    const sorted = [...pinsets.filter(isChosen), ...pinsets.filter((pinset) => !isChosen(pinset))];
    replace(content,
      h("section", {class: "panel"}, h("h2", "Pinsets ", h("small", plural(pinsets.length, "pinset"))),
        sorted.length ? h("div", {class: "cards"}, sorted.map((pinset) => one(pinset, isChosen(pinset))))
          : empty("No pinset is configured. The pins of a server, ready to paste: ", command("pinfold pin example.com"))),
      h("div", {class: "columns"},
        section("Calendar", "everything that expires, soonest first", calendar(answer.calendar ?? [])),
        section("Passes unverified", "most frequent first", unverified(answer))),
      section("Observed", "servers whose keys are remembered, new keys first", observed(answer.observed ?? [])));
  }, (problem) => replace(content, trouble(problem, "pins")));
}
