// Which flows are shown: `host:api.example.com status:5xx reason:tls-no-pin-matches some text`. The
// same words are the query of the page's address, and of the API.

export const KEYS = [
  "host", "entry", "method", "status", "reason", "cache", "pin", "kind", "failed", "client", "user",
  "rule", "listener",
];

/** The query of a text; what is no `key:value` is `q`. */
export function parse(text) {
  const query = {};
  const words = [];
  for (const word of text.trim().split(/\s+/)) {
    const [, key, value] = /^([a-z]+):(.+)$/.exec(word) ?? [];
    if (KEYS.includes(key)) query[key] = value;
    else if (word) words.push(word);
  }
  if (words.length) query.q = words.join(" ");
  return query;
}

/** The text of a query. */
export function text(query) {
  const terms = KEYS.filter((key) => query[key]).map((key) => `${key}:${query[key]}`);
  return [...terms, query.q ?? ""].join(" ").trim();
}

/** The host of `host:port`. */
export function hostOf(authority) {
  return String(authority ?? "").replace(/:\d+$/, "").toLowerCase();
}

function matchesHost(flow, wanted) {
  const pattern = wanted.toLowerCase();
  const host = hostOf(flow.host);
  if (pattern.startsWith("*.")) return host.endsWith(pattern.slice(1));
  return host === pattern || String(flow.host ?? "").toLowerCase() === pattern
    || hostOf(flow.inTunnel) === pattern;
}

function matchesStatus(flow, wanted) {
  const status = String(flow.status ?? 0);
  return /^[1-5]xx$/i.test(wanted) ? status[0] === wanted[0] : status === wanted;
}

const TESTS = {
  host: matchesHost,
  status: matchesStatus,
  method: (flow, wanted) => flow.method?.toUpperCase() === wanted.toUpperCase(),
  failed: (flow, wanted) => (flow.reason !== undefined) === (wanted === "true"),
  client: (flow, wanted) => flow.client === wanted || flow.client?.startsWith(`${wanted}:`)
    || flow.client?.startsWith(`[${wanted}]:`),
  q: (flow, wanted) => {
    const seen = [flow.method, flow.host, flow.path, flow.reason, flow.id, flow.client, flow.user]
      .join(" ").toLowerCase();
    return wanted.toLowerCase().split(/\s+/).every((word) => seen.includes(word));
  },
};

/** Whether a flow is one of those that a query names. */
export function matches(flow, query) {
  return Object.entries(query).every(([key, wanted]) => {
    if (!wanted) return true;
    const test = TESTS[key];
    return test ? test(flow, wanted) : String(flow[key] ?? "") === wanted;
  });
}
