// What the page knows: filled by the stream of events, read by the panels. Bounded: five minutes of
// samples and as many flows as the gateway holds.

import {Problem, read} from "./session.js";
import {keepStream} from "./stream.js";

const SAMPLES = 60;
const FLOWS = 1000;

export const live = {
  /** The answer of /api/v1/overview, kept up by events; undefined before the first. */
  overview: undefined,
  /** Why there is none. */
  overviewProblem: undefined,
  samples: [],
  /** Newest first. */
  flows: [],
  flowsProblem: undefined,
  /** What the gateway holds: `held`, `capacity`, `gaveWay`, `isWatched`. */
  held: {},
  /** How many flows this page was too slow for. */
  dropped: 0,
  /** `masked` or `full`. */
  access: undefined,
  transfers: undefined,
  /** Transfers as they were before, for rates. */
  transfersBefore: undefined,
  connection: {isOpen: false, since: undefined, problem: undefined, retryAt: undefined},
  /** Milliseconds by which the gateway's clock is ahead of this machine's. */
  clockOffset: 0,
};

/** The time at the gateway, in milliseconds. */
export function now() {
  return Date.now() + live.clockOffset;
}

const listeners = new Map();

/** Calls `action` after changes of a kind: flows, overview, transfers, connection, configuration. */
export function on(kind, action) {
  if (!listeners.has(kind)) listeners.set(kind, new Set());
  listeners.get(kind).add(action);
  return () => listeners.get(kind).delete(action);
}

const changed = new Set();
let isScheduled = false;

/** Tells of changes at most four times a second: thousands of flows are one change. */
function tell(kind) {
  changed.add(kind);
  if (isScheduled) return;
  isScheduled = true;
  setTimeout(() => {
    isScheduled = false;
    const kinds = [...changed];
    changed.clear();
    for (const one of kinds) listeners.get(one)?.forEach((action) => action());
  }, 250);
}

let stream;
/** Flows that came while the list was being asked for. */
let meanwhile;

/** Begins to follow the gateway. */
export function follow() {
  stream?.stop();
  stream = keepStream("/api/v1/events", {onEvent: take, onState: connectionIs});
}

/** Stops: a token is needed. */
export function unfollow() {
  stream?.stop();
  stream = undefined;
  live.overview = undefined;
  live.samples = [];
  live.flows = [];
  live.transfers = undefined;
}

export function retryNow() { stream?.retry(); }

function connectionIs(state) {
  const wasOpen = live.connection.isOpen;
  live.connection = {
    ...state, since: state.isOpen === wasOpen ? live.connection.since : Date.now(),
  };
  if (state.isOpen) refresh();
  else if (state.problem?.isAbsent) absent(state.problem);
  tell("connection");
}

/** A gateway without events: what there is, is asked for. */
function absent(problem) {
  live.flowsProblem = problem;
  refresh();
}

/** Everything anew: at the beginning, after a connection was lost, and when events were dropped. */
export async function refresh() {
  await Promise.all([refreshOverview(), refreshFlows()]);
}

async function refreshOverview() {
  try {
    const overview = await read("/api/v1/overview");
    live.overview = overview;
    live.overviewProblem = undefined;
    live.samples = (overview.samples ?? []).slice(-SAMPLES);
    if (overview.now) live.clockOffset = Date.parse(overview.now) - Date.now();
  } catch (problem) {
    if (problem instanceof Problem) live.overviewProblem = problem;
  }
  tell("overview");
}

/** How often the list was asked for: only the latest answer counts. */
let asked = 0;

async function refreshFlows() {
  asked += 1;
  const mine = asked;
  meanwhile = [];
  try {
    const answer = await read("/api/v1/flows", {limit: FLOWS});
    if (mine !== asked) return;
    const {flows, ...held} = answer;
    const known = new Set(flows.map((flow) => flow.id));
    live.flows = [...meanwhile.filter((flow) => !known.has(flow.id)).reverse(), ...flows]
      .slice(0, FLOWS);
    live.held = held;
    live.access = answer.access ?? live.access;
    live.flowsProblem = undefined;
  } catch (problem) {
    if (mine !== asked) return;
    if (problem instanceof Problem) live.flowsProblem = problem;
  }
  meanwhile = undefined;
  tell("flows");
}

/** The configuration, the limits and what needs attention change without an event of their own. */
setInterval(() => { if (live.connection.isOpen) refreshOverview(); }, 30_000);

/** An event of the stream. */
function take(name, value) {
  switch (name) {
  case "hello":
    live.access = value.access;
    break;
  case "flow":
    meanwhile?.push(value);
    live.flows.unshift(value);
    if (live.flows.length > FLOWS) {
      live.held.gaveWay = (live.held.gaveWay ?? 0) + live.flows.length - FLOWS;
      live.flows.length = FLOWS;
    }
    tell("flows");
    break;
  case "overview":
    if (value.sample && value.sample.time !== live.samples.at(-1)?.time) {
      live.samples = [...live.samples, value.sample].slice(-SAMPLES);
    }
    // Before the whole there is nothing that this could be a part of.
    if (live.overview) live.overview = {...live.overview, ...value};
    tell("overview");
    break;
  case "activity":
    if (live.overview) {
      live.overview = {...live.overview, activity: {...live.overview.activity, ...value}};
    }
    tell("overview");
    break;
  case "transfers":
    live.transfersBefore = live.transfers;
    live.transfers = value;
    tell("transfers");
    break;
  case "configuration":
    refreshOverview();
    tell("configuration");
    break;
  case "dropped":
    live.dropped += value.count ?? 0;
    refreshFlows();
    break;
  default:
    // `bye` is followed by the end of the stream; what is not known yet is left alone.
  }
}

/** Bytes a second of a transfer since the answer before, in a direction. */
export function speed(transfer, member) {
  const before = live.transfersBefore;
  const list = [...(before?.transfers ?? []), ...(before?.open ?? [])];
  const last = list.find((one) => one.id !== undefined && one.id === transfer.id);
  const seconds = (Date.parse(live.transfers?.time) - Date.parse(before?.time)) / 1000;
  if (!last || !(seconds > 0)) return undefined;
  return Math.max(0, transfer[member] - last[member]) / seconds;
}
