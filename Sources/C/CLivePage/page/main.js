// The beginning: who is asking, which panel is shown, and whether the gateway still answers.

import {announce, h, replace} from "./dom.js";
import {serviceMark, showFigures} from "./figures.js";
import {clock, relative, span} from "./format.js";
import {listen} from "./keyboard.js";
import {follow, live, now, on, retryNow, unfollow} from "./live.js";
import {place} from "./router.js";
import {onRefusal, setToken, token} from "./session.js";
import {empty} from "./table.js";
import {showToken} from "./token.js";
import * as overview from "./overview.js";
import * as flows from "./flows.js";
import * as flow from "./flow.js";
import * as hosts from "./hosts.js";
import * as pins from "./pins.js";
import * as reachability from "./reachability.js";
import * as cache from "./cache.js";
import * as workers from "./workers.js";
import * as configuration from "./configuration.js";
import * as setup from "./setup.js";

const PANELS = {
  overview, flows, hosts, pins, reachability, cache, workers, configuration, setup, flow,
};
/** Panels that are reached from another one. */
const WITHIN = {flow: "flows"};

const main = document.getElementById("main");
const figures = document.getElementById("figures");
const connection = document.getElementById("connection");
let leave = () => {};
/** Why the page waits for a token; undefined while it does not. */
let refusal;

function showNavigation(current) {
  const panels = document.getElementById("panels");
  replace(panels, Object.entries(PANELS)
    .filter(([name]) => !WITHIN[name])
    .map(([name, panel]) => [h("a", {
      href: `#${name}`, "aria-current": name === current ? "page" : undefined,
      "data-key": `panel ${name}`,
    }, panel.title), " "]));
  // Where there is no room for all of them, the current one is to be seen.
  const chosen = panels.querySelector("[aria-current]");
  if (chosen) panels.scrollLeft = chosen.offsetLeft - panels.offsetLeft - (panels.clientWidth - chosen.offsetWidth) / 2;
}

/** Shows the panel that the address names. */
function showPanel() {
  const {panel, query} = place();
  showNavigation(WITHIN[panel] ?? panel);
  document.body.dataset.panel = panel;
  leave();
  leave = () => {};
  // The setup of clients is for everybody.
  if (refusal && panel !== "setup") {
    askForToken();
    return;
  }
  const shown = PANELS[panel];
  document.title = shown ? `${shown.title} – Pinfold` : "Pinfold";
  main.replaceChildren();
  if (!shown) {
    main.append(empty(`There is no panel ${panel}.`));
    return;
  }
  leave = shown.show(main, query) ?? (() => {});
}

function showHead() {
  const {overview: known} = live;
  document.getElementById("identity").textContent = known
    ? [known.version, known.name, `up ${span((now() - Date.parse(known.started)) / 1000)}`]
      .filter(Boolean).join(" · ") : "";
  const loaded = known?.loaded
    ? h("a", {href: "#configuration", "data-key": "generation"},
      `configuration ${known.generation} · ${relative(known.loaded, now())}`) : [];
  replace(document.getElementById("service"),
    known ? [serviceMark(live.connection.isOpen ? known.readiness : undefined), " ", loaded] : []);
}

let ticking;

/** Says that the gateway does not answer, until it does. */
function showConnection() {
  clearInterval(ticking);
  const {isOpen, problem, retryAt, since} = live.connection;
  document.body.classList.toggle("lost", !isOpen && !refusal && !problem?.isAbsent);
  if (isOpen || refusal || retryAt === undefined || problem?.isAbsent) {
    if (!connection.hidden && isOpen) announce("Connected again.");
    connection.hidden = true;
    replace(connection);
    showHead();
    return;
  }
  const left = h("span");
  const count = () => {
    left.textContent = `${Math.max(0, Math.ceil((retryAt - Date.now()) / 1000))} s`;
  };
  const why = problem && !problem.isUnreachable ? problem.message : "the gateway does not answer";
  replace(connection, h("strong", "▲ Connection lost"),
    since ? ` at ${clock(since)}` : "", `: ${why}. What is shown is from before. Next attempt in `,
    h("span", {"aria-hidden": "true"}, left), ". ",
    h("button", {type: "button", click: retryNow, "data-key": "retry"}, "Try now"));
  count();
  ticking = setInterval(count, 500);
  connection.hidden = false;
  showHead();
}

/** A token is needed, or the gateway does not take the one that there is. */
function close(problem) {
  if (refusal) return;
  refusal = problem;
  unfollow();
  figures.hidden = true;
  showConnection();
  if (place().panel !== "setup") showPanel();
}

function askForToken() {
  showToken(main, refusal, token() !== "", (given) => {
    setToken(given);
    refusal = undefined;
    main.replaceChildren();
    begin();
  });
}

function begin() {
  follow();
  showPanel();
}

onRefusal(close);
on("overview", () => { showFigures(figures); showHead(); });
on("connection", showConnection);
// Somebody asks to be asked, although the gateway shows something without a token.
document.addEventListener("pinfold-token",
  () => close({status: 401, kind: "unauthorized", isOffer: true}));
window.addEventListener("hashchange", () => {
  showPanel();
  main.focus({preventScroll: true});
  scrollTo(0, 0);
});
setInterval(showHead, 10_000);
listen(() => document.dispatchEvent(new Event("pinfold-pause")));
begin();
