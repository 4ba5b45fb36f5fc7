// What the page knows: filled by the stream of events, read by the panels. Bounded: five minutes of
// samples and as many flows as the gateway holds.

import {Problem, read} from "./session.js";
import {keepStream} from "./stream.js";

const SAMPLES = 60;
const FLOWS = 1000;
/** Shortest time between two readings of the whole list because flows were left out. */
const CATCHING_UP = 10_000;

export const live = {
  /** The answer of /api/v1/overview, kept up by events; undefined before the first. */
  overview: undefined,
  /** Why there is none. */
  overviewProblem: undefined,
  samples: [],
  /** Newest first. */
  flows: [],
  flowsProblem: undefined,
  /** What the gateway holds: `held`, `capacity`, `gaveWay`, and `newest`, the last of the list. */
  held: {},
  /** How many flows ended too fast to be told one by one. */
  dropped: 0,
  /** How many flows the gateway did not hold, because there were too many. */
  leftOut: 0,
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
  overviewRequest?.abort();
  overviewRequest = undefined;
  flowsRequest?.abort();
  flowsRequest = undefined;
  clearTimeout(catchingUp);
  catchingUp = undefined;
  live.overview = undefined;
  live.samples = [];
  live.flows = [];
  live.held = {};
  live.transfers = undefined;
}

export function retryNow() { stream?.retry(); }

function connectionIs(state) {
  const wasOpen = live.connection.isOpen;
  live.connection = {
    ...state, since: state.isOpen === wasOpen ? live.connection.since : Date.now(),
  };
  if (state.isOpen) {
    // Another process may answer, which counts from the beginning.
    live.held = {...live.held, newest: undefined};
    refresh();
  } else if (state.problem?.isAbsent) {
    absent(state.problem);
  }
  tell("connection");
}

/** A gateway without events: what there is, is asked for. */
function absent(problem) {
  live.flowsProblem = problem;
  refresh();
}

/** Everything anew: at the beginning, and after a connection was lost. */
export async function refresh() {
  await Promise.all([refreshOverview(), refreshFlows()]);
}

/** The requests under way: a later one takes the place of the one before, whose answer is left alone. */
let overviewRequest;
let flowsRequest;

async function refreshOverview() {
  overviewRequest?.abort();
  const mine = new AbortController();
  overviewRequest = mine;
  try {
    const overview = await read("/api/v1/overview", {}, mine.signal);
    if (mine !== overviewRequest) return;
    live.overview = overview;
    live.overviewProblem = undefined;
    live.samples = (overview.samples ?? []).slice(-SAMPLES);
    if (overview.now) live.clockOffset = Date.parse(overview.now) - Date.now();
  } catch (problem) {
    if (mine !== overviewRequest) return;
    if (problem instanceof Problem) live.overviewProblem = problem;
  }
  overviewRequest = undefined;
  tell("overview");
}

/** When the list of flows was last asked for. */
let flowsAsked = -Infinity;

async function refreshFlows() {
  flowsRequest?.abort();
  const mine = new AbortController();
  flowsRequest = mine;
  flowsAsked = Date.now();
  meanwhile = [];
  try {
    const answer = await read("/api/v1/flows", {limit: FLOWS}, mine.signal);
    if (mine !== flowsRequest) return;
    const {flows, ...held} = answer;
    live.held = held;
    live.flows = [...meanwhile.filter((flow) => !isListed(flow)).reverse(), ...flows].slice(0, FLOWS);
    live.access = answer.access ?? live.access;
    live.flowsProblem = undefined;
  } catch (problem) {
    if (mine !== flowsRequest) return;
    if (problem instanceof Problem) live.flowsProblem = problem;
  }
  flowsRequest = undefined;
  meanwhile = undefined;
  tell("flows");
}

/** Whether the list that was read last has a flow already: the stream may tell of it after that. */
function isListed(flow) {
  return flow.sequence <= live.held.newest;
}

/** The timer of the next reading of the list; undefined if there is to be none. */
let catchingUp;

/** Reads the list because flows were left out. While that goes on, thousands a second end: reading
 * them all each time would cost the gateway more than they do. */
function catchUp() {
  if (catchingUp !== undefined) return;
  const last = flowsRequest ? Date.now() : flowsAsked;
  catchingUp = setTimeout(() => {
    catchingUp = undefined;
    // A connection that was lost is followed by a refresh, and a late answer is waited for.
    if (!live.connection.isOpen) return;
    if (flowsRequest) catchUp();
    else refreshFlows();
  }, Math.max(0, last + CATCHING_UP - Date.now()));
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
    if (isListed(value)) break;
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
    catchUp();
    tell("flows");
    break;
  case "leftOut":
    live.leftOut += value.count ?? 0;
    tell("flows");
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
