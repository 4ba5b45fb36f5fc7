// The cache: how much it answers and holds, what is stored for a URL, and purging that.

import {mark, meter, sparkline} from "./charts.js";
import {announce, command, h, replace} from "./dom.js";
import {bytes, count, plural, share, span} from "./format.js";
import {live, on} from "./live.js";
import {poll} from "./poll.js";
import {go} from "./router.js";
import {Problem, read, send} from "./session.js";
import {empty, facts, section, table, trouble} from "./table.js";
import {plain, quoted} from "./text.js";

export const title = "Cache";

function ratio() {
  const known = live.samples;
  if (!known.length) return empty("No sample yet: one is taken every five seconds.");
  const sum = (member) => known.reduce((total, sample) => total + (sample[member] ?? 0), 0);
  return h("p", {class: "large"}, share(sum("hits"), sum("lookups")), " ",
    sparkline(known.map((one) => one.lookups > 0 ? 100 * one.hits / one.lookups : undefined), (number) => `${Math.round(number)} %`),
    " ", h("small", `${plural(sum("hits"), "answer")} from the cache, of ${plural(sum("lookups"), "request")} that it could have answered, in five minutes`));
}

const STATES = {on: "good", off: "idle", opening: "warn", failed: "bad", "handed-over": "idle"};

function tier(name, one) {
  return h("div", h("h3", name, " ", mark(STATES[one.state] ?? "idle", plain(one.state))),
    one.limitBytes ? [meter(one.bytes, one.limitBytes, `${name} in use`),
      h("p", `${bytes(one.bytes)} of ${bytes(one.limitBytes)}, ${plural(one.entries, "response")}`, one.path ? [" in ", h("code", plain(one.path))] : "")] : []);
}

function stats(one) {
  return facts([
    ["Evicted from memory", count(one.memoryEvictions)], ["Evicted from disk", count(one.diskEvictions)],
    ["Waiting for the disk", bytes(one.queuedBytes)], ["Files", bytes(one.diskFileBytes)],
    ["Purged", `${count(one.purgedMemoryEntries)} from memory, ${count(one.purgedDiskEntries)} from disk`],
    ["Purges", one.purges ? `${count(one.purges.urls)} of URLs, ${count(one.purges.hosts)} of hosts, ${count(one.purges.tags)} of tags, ${count(one.purges.failed)} failed` : undefined],
  ]);
}

const ANSWERS = {used: "good", "used-stale": "warn", confirmed: "warn", "not-used": "bad"};

function variants(answer) {
  if (!answer.variants.length) return empty(`Nothing is stored for ${plain(answer.url)}.`);
  return table("Stored", [
    {title: "Answer"}, {title: "Would be"}, {title: "Size", kind: "number"}, {title: "Age", kind: "number"}, {title: "Fresh for", kind: "number"},
    {title: "By"}, {title: "Tier"}, {title: "Varies by"}, {title: "Tags"}, {title: "Trust"},
  ], answer.variants.map((one) => [
    `${plain(one.method)} ${one.status}`, [mark(ANSWERS[one.answer] ?? "idle", plain(one.answer)), one.reason ? ` (${plain(one.reason)})` : ""],
    bytes(one.bytes), span(one.age), one.freshFor ? span(one.freshFor) : `stale for ${span(one.staleFor)}`, plain(one.lifetimeFrom),
    plain(one.tier), one.vary.map(plain).join(", ") || "–", one.tags.map(plain).join(", ") || "–", one.trust ? plain(one.trust) : "–",
  ]));
}

/** Looking up and purging one URL. */
function lookup(query) {
  const result = h("div");
  const field = h("input", {type: "search", id: "url", value: query.url, spellcheck: "false", autocomplete: "off", placeholder: "https://example.com/logo.png"});
  const form = h("form", {class: "bar", submit: (event) => {
    event.preventDefault();
    if (field.value.trim()) go("cache", {url: field.value.trim()});
  }}, h("label", {for: "url"}, "URL"), field, h("button", {type: "submit"}, "Look up"));

  async function look() {
    try {
      const answer = await read("/api/v1/cache/entry", {url: query.url});
      replace(result, variants(answer), answer.variants.length ? h("p", purge()) : [], commands());
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      replace(result, trouble(problem, "the URL"));
    }
  }

  function commands() {
    const url = quoted(query.url);
    return url ? h("ul", {class: "commands"}, h("li", command(`pinfold cache show ${url}`)), h("li", command(`pinfold cache purge ${url}`))) : [];
  }

  /** The one thing on this page that changes something: it asks once more. */
  function purge() {
    const button = h("button", {type: "button", class: "danger", click: () => {
      if (!button.dataset.sure) {
        button.dataset.sure = "yes";
        button.textContent = "Purge it: sure?";
        return;
      }
      button.disabled = true;
      carryOut();
    }}, "Purge this URL");
    return button;
  }

  async function carryOut() {
    try {
      const done = await send("/api/v1/cache/purge", {urls: [query.url]});
      const text = `Purged: ${plural(done.memoryEntries, "response")} in memory, ${count(done.diskEntries)} on disk${done.complete ? "" : " until now; nobody gets the rest any more"}.`;
      await look();
      result.prepend(h("p", mark("good", text)));
      announce(text);
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      result.prepend(h("p", {class: "bad", role: "alert"}, `▲ Not purged: ${problem.message}`));
    }
  }

  if (query.url) look();
  return [form, result];
}

export function show(root, query) {
  const hits = h("div");
  const tiers = h("div", empty("Asking the gateway…"));
  const figures = h("div");
  root.append(h("h1", {class: "unseen"}, title),
    h("div", {class: "columns even"}, section("Hits", undefined, hits), section("What it holds", undefined, tiers), section("Since the start", undefined, figures)),
    section("One URL", undefined, lookup(query)),
    section("Commands", undefined, h("ul", {class: "commands"}, ["pinfold cache ls", "pinfold cache stats --hosts", "pinfold cache warm URL"].map((line) => h("li", command(line))))));
  replace(hits, ratio());
  const stops = [
    on("overview", () => replace(hits, ratio())),
    poll("/api/v1/status", (status) => replace(tiers, tier("Memory", status.cache.memory), tier("Disk", status.cache.disk)),
      (problem) => replace(tiers, trouble(problem, "the cache"))),
    poll("/api/v1/cache/stats", (answer) => replace(figures, stats(answer)), (problem) => replace(figures, trouble(problem, "its figures"))),
  ];
  return () => stops.forEach((stop) => stop());
}
