// One exchange: what it asked for, what came of it, where its time went, and why.

import {chain} from "./chain.js";
import {PHASES, phaseBar} from "./charts.js";
import {command, h, replace} from "./dom.js";
import {pinMark, statusMark, targetText} from "./flowlist.js";
import {bytes, duration, moment, share, clock} from "./format.js";
import {Problem, read} from "./session.js";
import {address} from "./router.js";
import {empty, facts, section, table, trouble} from "./table.js";
import {plain, quoted} from "./text.js";

export const title = "Flow";

const path = (id) => `/api/v1/flows/${encodeURIComponent(id ?? "")}`;

export function show(root, query) {
  const abort = new AbortController();
  const content = h("div", empty("Asking the gateway…"));
  const back = h("a", {class: "row", href: query.from ? `#flows?${query.from}` : "#flows"}, "← Flows");
  root.append(h("p", back), content);
  read(path(query.id), {}, abort.signal).then(
    (answer) => replace(content, one(answer)),
    (problem) => {
      if (!(problem instanceof Problem)) return;
      replace(content, problem.kind === "not-held"
        ? empty(`The gateway no longer holds flow ${plain(query.id)}: newer ones have taken its place. The access log has it: `,
          command(`grep ${quoted(query.id) ?? "ID"} access.log`))
        : trouble(problem, "this flow"));
    });
  return () => abort.abort();
}

/** A link to all flows that share something. */
function like(key, value) {
  return value ? h("a", {href: address("flows", {[key]: value})}, plain(value)) : undefined;
}

function one(answer) {
  const {flow} = answer;
  return [
    h("h1", {class: "flow"}, h("b", plain(flow.method || "?")), " ", targetText(flow), " ", statusMark(flow)),
    answer.explanation ? explanation(answer.explanation) : [],
    h("div", {class: "columns even"},
      section("Where its time went", duration(flow.duration_us), times(flow)),
      section("What it was", undefined, what(flow))),
    chain(answer.serverChain, flow.host),
    heads(answer),
    section("Ask again", undefined, again(flow)),
  ];
}

/** Why an exchange was refused, and what to do about it. */
function explanation(why) {
  const token = quoted(why.token);
  return h("section", {class: "panel why"}, h("h2", "Why: ", h("code", plain(why.token))),
    h("p", plain(why.meaning)),
    why.detail ? h("p", h("b", "Here: "), plain(why.detail)) : [],
    why.remedy ? h("p", h("b", "What to do: "), plain(why.remedy)) : [],
    token ? h("p", command(`pinfold reasons ${token}`)) : []);
}

/** The explanation of a reason, by an exchange that has it. */
export async function explanationOf(reason, id) {
  if (id !== undefined) {
    try {
      const answer = await read(path(id));
      if (answer.explanation) return explanation({...answer.explanation, detail: undefined});
    } catch {
      // The command says it as well.
    }
  }
  const token = quoted(reason);
  return h("p", {class: "panel why"}, "What ", h("code", plain(reason)), " means: ",
    token ? command(`pinfold reasons ${token}`) : "pinfold reasons");
}

function times(flow) {
  const happened = PHASES.filter(([member]) => flow.phases?.[member] !== undefined);
  if (!happened.length) return h("p", "It was answered at once, without waiting for anything.");
  return [phaseBar(flow.phases), table("Phases", [
    {title: "Phase"}, {title: "Time", kind: "number"}, {title: "Share", kind: "number"},
  ], happened.map(([member, name, word]) => [
    h("span", {class: `word phase-${name}`}, word), duration(flow.phases[member]),
    share(flow.phases[member], flow.duration_us),
  ]))];
}

function what(flow) {
  return facts([
    ["Began", `${moment(flow.begin)}:${clock(flow.begin).slice(-2)}`], ["Number", h("code", plain(flow.id))],
    ["Kind", [plain(flow.kind).replace("_", " "), flow.isIntercepted ? ", intercepted" : ""]], ["Relayed because", flow.passed && plain(flow.passed)],
    ["Inspected", flow.inspected && plain(flow.inspected)], ["Host entry", like("entry", flow.entry)], ["Host", like("host", flow.host?.replace(/:\d+$/, ""))],
    ["Listener", plain(flow.listener)], ["Client", like("client", flow.client?.replace(/:\d+$/, ""))],
    ["User", like("user", flow.user)], ["Certificate", flow.clientSubject && plain(flow.clientSubject)],
    ["Rule", like("rule", flow.rule)], ["Reported by", flow.reported && plain(flow.reported)],
    ["Spoken", [plain(flow.version ?? "–"), flow.clientTLS ? `, ${plain(flow.clientTLS)}` : ""]],
    ["Server", flow.upstream && plain(flow.upstream)], ["By parent", flow.parent && plain(flow.parent)],
    ["Server spoke", [flow.upstreamVersion, flow.upstreamTLS].filter(Boolean).map(plain).join(", ")],
    ["Connection", flow.reused === undefined ? undefined : flow.reused ? "was there already" : "made for this"],
    ["In tunnel to", flow.inTunnel && plain(flow.inTunnel)], ["Pins", pinMark(flow)],
    ["Cache", flow.cache && plain(flow.cache)], ["Forwarded because", flow.forwarded && plain(flow.forwarded)],
    ["Not stored because", flow.notStored && plain(flow.notStored)], ["Changed", flow.changed && plain(flow.changed)],
    ["Meant for", flow.original && plain(flow.original)],
    ["Bytes", `${bytes(flow.requestBytes ?? 0)} from the client, ${bytes(flow.responseBytes ?? 0)} to it`],
  ]);
}

/** A head, as text. */
function head(name, first, fields, isCut) {
  return section(name, undefined, h("pre", {tabindex: "0", role: "group", "aria-label": name}, plain(first), "\n",
    fields.map((field) => [h("b", plain(field.name)), ": ",
      field.isMasked ? h("i", `${plain(field.value)} (masked)`) : plain(field.value), "\n"]),
    isCut ? "… more was not kept\n" : ""));
}

function heads(answer) {
  if (answer.access === "masked") {
    return h("p", {class: "empty"}, "Both heads are shown to who has the token, as are the certificates of the server. ",
      h("button", {type: "button", class: "link", click: () => document.dispatchEvent(new Event("pinfold-token"))},
        "Enter the token"));
  }
  if (!answer.requestFields && !answer.responseFields) {
    return empty("Heads are kept while somebody watches, and for failures. This one ended before.");
  }
  return h("div", {class: "columns even"},
    answer.requestFields ? head("Request", answer.requestLine, answer.requestFields, answer.requestIsCut) : [],
    answer.responseFields ? head("Response", answer.statusLine, answer.responseFields, answer.responseIsCut) : []);
}

function again(flow) {
  const isTunnel = flow.scheme === undefined;
  const scheme = flow.scheme ?? (isTunnel ? "https" : "http");
  const path = isTunnel ? "/" : String(flow.path ?? "/").replace(/\?.*$/s, "");
  const url = quoted(`${scheme}://${flow.host}${path}`);
  if (!flow.host || url === undefined) return empty("Its URL cannot be put into a command safely.");
  return h("ul", {class: "commands"}, h("li", command(`pinfold explain --connect ${url}`)),
    h("li", command(`pinfold pin ${quoted(flow.host)}`)),
    h("li", command(`pinfold get --timing ${url}`)));
}
