// The token and requests to the API. The token is in the session's storage, which ends with the tab,
// and travels in Authorization alone: never in a URL, never in a cookie.

const KEY = "pinfold-token";

export function token() {
  return sessionStorage.getItem(KEY) ?? "";
}

export function setToken(text) {
  if (text) sessionStorage.setItem(KEY, text);
  else sessionStorage.removeItem(KEY);
}

/** An answer of the API other than success; `status` 0 if there was none. */
export class Problem extends Error {
  constructor(status, kind, detail) {
    super(detail);
    this.status = status;
    this.kind = kind;
  }

  /** Whether this gateway has no such resource. */
  get isAbsent() { return this.status === 404 && this.kind === "not-found"; }

  /** Whether the gateway could not be asked at all. */
  get isUnreachable() { return this.status === 0; }
}

/** What is to be done when a token is needed, or another one. */
let refused = () => {};
export function onRefusal(action) { refused = action; }

function headers(accept) {
  const fields = {Accept: accept};
  if (token()) fields.Authorization = `Bearer ${token()}`;
  return fields;
}

async function ask(path, options) {
  const sent = token();
  let response;
  try {
    response = await fetch(path, {
      ...options, cache: "no-store", credentials: "omit", redirect: "error",
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, "unreachable", "the gateway does not answer");
  }
  if (response.ok) return response;
  const problem = await problemOf(response);
  // An answer to what was asked before the token was entered says nothing about the token.
  if (sent === token() && (problem.status === 401 || problem.kind === "not-an-operator")) {
    refused(problem);
  }
  throw problem;
}

async function problemOf(response) {
  let body = {};
  try {
    body = await response.json();
  } catch {
    // Not the API's own answer: the status says what there is to say.
  }
  const kind = String(body.type ?? "").replace("urn:pinfold:problem:", "");
  return new Problem(response.status, kind, body.detail ?? `the answer was ${response.status}`);
}

/** Reads a resource: `read("/api/v1/flows", {limit: 100})`. */
export async function read(path, query = {}, signal = undefined) {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== "") parameters.append(name, value);
  }
  const text = parameters.toString();
  const response = await ask(text ? `${path}?${text}` : path, {
    headers: headers("application/json"), signal,
  });
  return contentOf(response);
}

async function contentOf(response) {
  try {
    return await response.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, "unreachable", "the answer ended before it was whole");
  }
}

/** The one request of this page that changes something. */
export async function send(path, content) {
  const response = await ask(path, {
    method: "POST", body: JSON.stringify(content),
    headers: {...headers("application/json"), "Content-Type": "application/json"},
  });
  return contentOf(response);
}

/** Opens a stream of server-sent events. */
export function openStream(path, signal) {
  return ask(path, {headers: headers("text/event-stream"), signal});
}
