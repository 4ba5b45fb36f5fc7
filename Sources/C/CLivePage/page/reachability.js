// Which servers answer, by host entry.

import {mark} from "./charts.js";
import {command, h, replace} from "./dom.js";
import {count, moment, relative} from "./format.js";
import {now} from "./live.js";
import {poll} from "./poll.js";
import {address} from "./router.js";
import {empty, section, table, trouble} from "./table.js";
import {plain, quoted} from "./text.js";

export const title = "Reachability";

function state(word) {
  if (word === "reachable" || word === "up") return mark("good", word);
  if (word === "not_reachable" || word === "down" || word === "ejected") return mark("bad", word.replace("_", " "));
  return mark("idle", plain(word));
}

/** Those that do not answer first. */
const ORDER = {not_reachable: 0, unknown: 1, reachable: 2};

function entries(list) {
  const rows = list.flatMap((entry) => (entry.servers ?? []).map((server) => ({entry, server})))
    .sort((one, other) => (ORDER[one.server.state] ?? 1) - (ORDER[other.server.state] ?? 1));
  if (!rows.length) {
    return empty("No server has been contacted. Whether one would be: ", command("pinfold explain --connect https://example.com/"));
  }
  return table("Servers", [{title: "Server"}, {title: "State"}, {title: "Host entry"}, {title: "Came up", kind: "number"}, {title: "Went down", kind: "number"}, {title: "Look"}],
    rows.map(({entry, server}) => {
      const url = quoted(`https://${server.host}/`);
      return [
        h("a", {class: "row", href: address("flows", {host: String(server.host).replace(/:\d+$/, "")}), "data-key": `server ${server.host}`}, plain(server.host)),
        state(server.state), h("a", {href: address("hosts", {entry: entry.entry})}, plain(entry.entry)),
        count(entry.transitions?.reachable), count(entry.transitions?.not_reachable),
        url ? command(`pinfold explain --connect ${url}`) : "–",
      ];
    }));
}

/** The latest changes, newest first. */
function changes(list) {
  const all = list.flatMap((entry) => (entry.changes ?? []).map((change) => ({entry, change})))
    .sort((one, other) => Date.parse(other.change.time) - Date.parse(one.change.time));
  if (!all.length) return empty("No server has gone away or come back since the start.");
  return table("Changes", [{title: "When"}, {title: "Server"}, {title: "Was"}, {title: "Is"}, {title: "Host entry"}],
    all.map(({entry, change}) => [`${moment(change.time)}, ${relative(change.time, now())}`, plain(change.host),
      state(change.from), state(change.to), plain(entry.entry)]));
}

function servers(list) {
  if (!list.length) return empty("No reverse listener has several servers.");
  return table("Servers of reverse listeners", [
    {title: "Listener"}, {title: "Server"}, {title: "State"}, {title: "Under way", kind: "number"}, {title: "Weight", kind: "number"}, {title: "Why"},
  ], list.map((server) => [
    plain(server.listener), plain(server.url), [state(server.state), server.backup ? " (backup)" : ""],
    count(server.requests), count(server.weight), server.cause ? plain(server.cause) : "–",
  ]));
}

export function show(root) {
  const content = h("div", empty("Asking the gateway…"));
  root.append(h("h1", {class: "unseen"}, title), content);
  return poll("/api/v1/reachability", (answer) => replace(content,
    section("Servers", "those that do not answer first; changes are counted by host entry", entries(answer.entries ?? [])),
    section("History", "newest first", changes(answer.entries ?? [])),
    section("Reverse listeners", undefined, servers(answer.servers ?? []))),
  (problem) => replace(content, trouble(problem, "reachability")));
}
