// The gateways that share a cache: who is there, and whether all enforce the same.

import {mark} from "./charts.js";
import {command, h} from "./dom.js";
import {count, moment, plural, relative, share, span} from "./format.js";
import {now} from "./live.js";
import {table} from "./table.js";
import {plain} from "./text.js";

const HOSTS = 5;
const PINS = 5;

/** The beginning of a hash: enough to compare by eye. */
const short = (hash) => plain(String(hash ?? "").slice(0, 12));

function state(gateway) {
  if (gateway.away) return mark("bad", "away");
  if (gateway.problem) return mark("warn", plain(gateway.problem));
  return gateway.purged ? mark("good", "here") : mark("warn", "purges to do");
}

function policy(one) {
  if (!one) return "–";
  const text = one.serial === undefined ? "none" : [`${one.serial} `, h("code", short(one.hash))];
  if (one.offered?.refusal) return [mark("bad", `refuses ${one.offered.serial}`), " ", text];
  return one.alarms?.length ? [mark("bad", plain(one.alarms.join(", "))), " ", text] : text;
}

function hits(cache) {
  if (!cache?.lookups) return "–";
  return ["memoryHits", "diskHits", "sharedHits"].map((level) => share(cache[level], cache.lookups)).join(" / ");
}

function gateways(list) {
  return table("Gateways", [
    {title: "Gateway"}, {title: "State"}, {title: "Seen", kind: "number"}, {title: "Up", kind: "number"},
    {title: "Policy"}, {title: "Hits: memory / disk / shared", kind: "number"}, {title: "Unreachable", kind: "number"},
  ], list.map((gateway) => [
    plain(gateway.name), state(gateway), `${span(gateway.age_ms / 1000)} ago`,
    gateway.started ? span((now() - Date.parse(gateway.started)) / 1000) : "–",
    policy(gateway.policy), hits(gateway.cache),
    gateway.hosts ? count(gateway.hosts.notReachable) : "–",
  ]));
}

/** Host entries in which somebody sees something wrong, and who. */
function troubles(list) {
  const found = list.map((host) => [host, host.gateways.filter((one) => one.notReachable || one.trouble?.length)])
    .filter(([, seen]) => seen.length);
  if (!found.length) return [];
  return h("ul", {class: "attention"}, found.slice(0, HOSTS).map(([host, seen]) => h("li",
    mark("warn", plain(host.entry)), " ",
    seen.map((one) => `${plain(one.gateway)}: ${one.notReachable ? `${one.notReachable} not reachable` : plain(one.trouble.join(", "))}`).join("; "))));
}

function pins(list) {
  if (!list.length) return [];
  return h("ul", {class: "attention"}, list.slice(0, PINS).map((pin) => h("li",
    mark("warn", plain(pin.pinset)), " ", h("code", plain(pin.pin)),
    pin.hasMatched ? ` no gateway has seen since ${moment(pin.since)}, ${relative(pin.since, now())}`
      : ` no gateway has ever seen, since ${moment(pin.since)}`)));
}

function agreement(answer) {
  if (!answer.current) return mark("bad", "the engine does not answer; this is from before");
  if (!answer.agree) {
    return mark("bad", `${plural(answer.policies.length, "different policy", "different policies")}: `
      + answer.policies.map((one) => `${one.serial ?? "none"} on ${one.gateways.map((name) => plain(name)).join(", ")}`).join("; "));
  }
  return mark("good", answer.policies[0]?.serial === undefined ? "no policy on any" : `all have policy ${answer.policies[0].serial}`);
}

/** The fleet, as /api/v1/fleet tells it. */
export function fleetCard(answer) {
  return [h("p", agreement(answer), " ", command("pinfold fleet status")), gateways(answer.gateways ?? []),
    troubles(answer.hosts ?? []), pins(answer.unseenPins ?? [])];
}
