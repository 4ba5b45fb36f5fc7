// The line of figures at the top, each with its last five minutes.

import {mark, sparkline, spinner} from "./charts.js";
import {h, replace} from "./dom.js";
import {bytes, count, duration, rate, share} from "./format.js";
import {live} from "./live.js";

/** A figure: a value, what it is, and how it was. */
function figure(name, value, series, show, link) {
  const content = [h("span", {class: "name"}, name), h("span", {class: "value"}, value),
    series ? sparkline(series, show) : []];
  return h("li", link ? h("a", {href: link, "data-key": `figure ${name}`}, content) : content);
}

/** A number of things beside the most that there may be. */
function limited(number, limit) {
  return limit ? [count(number), h("small", ` / ${count(limit)}`)] : count(number);
}

const WORDS = {
  not_active: "idle", delaying_start: "starting", active: "active", delaying_end: "ending",
};

function activity(state) {
  const word = WORDS[state.state] ?? state.state;
  return h("li", h("span", {class: "name"}, "activity"), h("span", {class: "value"},
    state.isVisible ? spinner("transfers are under way")
      : h("span", {class: "mark idle", "aria-hidden": "true"}, "○"), " ", word));
}

export function showFigures(root) {
  const {overview, samples} = live;
  root.hidden = !overview;
  if (!overview) return;
  const seconds = (sample) => (sample.milliseconds ?? 1000 * (overview.interval || 5)) / 1000;
  const last = samples.at(-1) ?? {};
  const series = (member) => samples.map((one) => one[member]);
  const perSecond = (member) => samples.map((one) => one[member] / seconds(one));
  const shares = (part, of) => samples.map((one) => one[of] > 0 ? 100 * one[part] / one[of] : undefined);
  const percent = (number) => `${number.toFixed(1)} %`;
  const load = overview.load ?? {};
  replace(root, h("ul",
    figure("requests/s", rate(last.requests / seconds(last)), perSecond("requests"), rate, "#flows"),
    figure("cache hits", share(last.hits, last.lookups), shares("hits", "lookups"), percent, "#cache"),
    figure("p99", duration(last.p99_us), series("p99_us"), duration, "#hosts"),
    figure("refused, failed", share(last.failed, last.requests), shares("failed", "requests"), percent, "#flows?failed=true"),
    figure("in flight", count(load.requests ?? last.inFlight), series("inFlight"), count, "#flows"),
    figure("clients", limited(load.connections, load.connectionsLimit)),
    figure("to servers", limited(load.upstreamConnections, load.upstreamConnectionsLimit)),
    figure("tunnels", count(load.tunnels ?? last.tunnels), series("tunnels"), count, "#flows?kind=tunnel"),
    figure("sent", `${bytes(last.sentBytes / seconds(last))}/s`, perSecond("sentBytes"), bytes),
    figure("busy", last.busyPercent === undefined ? "–" : `${last.busyPercent} %`, series("busyPercent"), (number) => `${number} %`, "#workers"),
    overview.activity ? activity(overview.activity) : []));
}

/** The gateway's name, version and state, in the head of the page. */
export function serviceMark(readiness) {
  switch (readiness) {
  case "ready": return mark("good", "serving");
  case "starting": return mark("warn", "starting");
  case "draining": return mark("warn", "shutting down");
  default: return mark("idle", "unknown");
  }
}
