// The configuration in force: which, since when, what its files say by now, and what was wrong with
// the last one that was refused.

import {mark} from "./charts.js";
import {command, copyButton, h, replace} from "./dom.js";
import {moment, plural, relative} from "./format.js";
import {now} from "./live.js";
import {poll} from "./poll.js";
import {empty, facts, section, table, trouble} from "./table.js";
import {plain, quoted} from "./text.js";

export const title = "Configuration";

const when = (time) => `${moment(time)}, ${relative(time, now())}`;

function place(one) {
  const line = one.line ? `:${one.line}${one.column ? `:${one.column}` : ""}` : "";
  return plain(`${one.file ?? one.option ?? ""}${line}`);
}

function finding(one) {
  return h("li", place(one) ? [h("code", place(one)), " "] : [],
    one.key ? [h("b", plain(one.key)), ": "] : "", plain(one.problem ?? one.text),
    one.expected ? ` (expected: ${plain(one.expected)})` : "");
}

const findings = (list) => h("ul", {class: "findings"}, list.map(finding));

function option(file) {
  const name = file && quoted(file);
  return name ? ` --config ${name}` : "";
}

/** What a reload would do now. */
function files(answer) {
  const found = answer.files;
  if (!found) return empty("There is no file: the built-in defaults are in force.");
  const looked = h("p", {class: "note"}, `looked at ${relative(found.looked, now())}`);
  const check = h("p", command(`pinfold check${option(found.path)}`));
  switch (found.state) {
    case "unchanged":
      return [h("p", mark("good", "unchanged"), " The file says what is in force."), looked];
    case "changed":
      return [
        h("p", mark("warn", "changed"), " The check passes. A reload would put it in force; what differs: ",
          found.changed.map((one, index) => [index ? ", " : "", h("b", plain(one))]), "."),
        found.warnings.length ? [h("p", "It would be warned of:"), findings(found.warnings)] : [],
        h("p", command(`pinfold reload${option(found.path)}`)), looked,
      ];
    case "refused":
      return [
        h("p", mark("bad", "would be refused"), ` The file has changed, and has ${plural(found.errors.length, "error")}.`),
        findings(found.errors), check, looked,
      ];
    default:
      return [h("p", mark("bad", "unreadable"), ` ${plain(found.path)} ${plain(found.problem ?? "")}`), check, looked];
  }
}

function reloads({lastReload: last, lastRefused: refused}) {
  if (!last) return empty("The file has not been read again since the start.");
  const outcome = last.result === "applied" ? h("p", mark("good", "applied"), ` ${when(last.time)}`)
    : h("p", mark("bad", "refused"), ` ${when(last.time)}: what was in force before stays`);
  if (!refused) return [outcome, h("p", {class: "note"}, "None was refused since the start.")];
  return [outcome, last.result === "applied" ? h("p", `The last error was ${when(refused.time)}:`) : [],
    findings(refused.errors)];
}

const policyStates = {inForce: ["good", "in force"], expired: ["bad", "expired"], missing: ["bad", "missing"]};

/** The policy from elsewhere, and what is wrong with it. */
function policy(one) {
  const [kind, word] = policyStates[one.state] ?? ["bad", plain(one.state)];
  const refused = one.lastRefused;
  return section("Policy", undefined, [
    h("p", mark(kind, word), one.serial === undefined ? "" : ` serial ${one.serial}`),
    one.alarms.length ? h("ul", {class: "findings"}, one.alarms.map((alarm) => h("li", plain(alarm.text)))) : [],
    facts([
      ["From", one.url ? h("code", plain(one.url)) : "the fleet's engine"], ["Expires", one.expires && when(one.expires)],
      ["Confirmed", one.confirmed ? when(one.confirmed) : "not since the start"],
      ["Hash", one.hash && h("code", plain(one.hash.slice(0, 12)))],
      ["Has", one.serial !== undefined && `${plural(one.hosts, "host entry", "host entries")}, ${plural(one.pinsets, "pinset")}, ${plural(one.rules, "rule")}`],
    ]),
    refused ? h("p", {class: "note"}, `Last refused ${when(refused.time)}: ${plain(refused.text)}`) : [],
  ]);
}

function inForce(answer, status) {
  const file = answer.files?.path;
  return [facts([
    ["File", file ? h("code", plain(file)) : "none: the defaults"], ["Number", String(answer.generation)],
    ["Loaded", when(answer.loaded)],
    ["Has", status && `${plural(status.configuration.hosts, "host entry", "host entries")}, ${plural(status.configuration.pinsets, "pinset")}`],
    ["Fingerprint", h("code", {title: answer.fingerprint}, plain(answer.fingerprint.slice(0, 16)))],
    ["Program", status && `${plain(status.version)}, ${plain(status.revision)}, process ${status.pid}`],
  ]), answer.needRestart?.length ? h("p", mark("warn", "needs a restart"), " In force only after a restart: ",
    answer.needRestart.map((one, index) => [index ? ", " : "", h("b", plain(one))]), ".") : [],
  h("ul", {class: "commands"}, h("li", command(`pinfold explain${option(file)} https://example.com/`)))];
}

/** The text, which stays as it is while one reads it. */
function text(answer) {
  if (answer.text === undefined) {
    return [h("h2", "As text"), empty("The text is shown to who has the token, a certificate, or comes by the Unix socket:",
      command(`pinfold check${option(answer.files?.path)}`))];
  }
  const shown = h("pre", {tabindex: "0", "aria-label": "The configuration in force"}, shownLines(answer.text));
  return [h("h2", "As text ", h("small", "with every default; secrets are ***")),
    h("div", {class: "lines"}, shown, copyButton(answer.text, shown, "the configuration")),
    answer.textIsCut ? h("p", {class: "note"}, "There is more than is shown here: ", command(`pinfold check${option(answer.files?.path)}`)) : []];
}

/** The same line by line: lines end as they do. */
const shownLines = (lines) => lines.split("\n").map(plain).join("\n");

function listeners(list) {
  return table("Listeners", [{title: "Name"}, {title: "Kind"}, {title: "Address"}, {title: "TLS"}, {title: "State"}],
    list.map((one) => [plain(one.name), plain(one.kind), h("code", plain(one.address)), one.tls ? "yes" : "no",
      one.accepting ? mark("good", "accepting") : mark("bad", "not accepting")]));
}

function rest(status) {
  const {configuration} = status;
  const warnings = configuration.warnings ?? [];
  const unusable = configuration.unusableFiles ?? [];
  return [
    unusable.length ? section("Files that have changed and cannot be used", "their old content stays in use",
      h("ul", {class: "findings"}, unusable.map((file) => h("li", mark("bad", "unusable"), " ", h("code", plain(file)))))) : [],
    section("Warnings", plural(warnings.length, "warning"), warnings.length ? findings(warnings) : empty("There are none.")),
    section("Listeners", undefined, listeners(status.listeners ?? [])),
  ];
}

export function show(root) {
  const first = h("div", empty("Asking the gateway…"));
  const others = h("div");
  const lines = h("section", {class: "panel", hidden: true});
  root.append(h("h1", {class: "unseen"}, title), first, others, lines);
  let answer;
  let status;
  let shown;

  function draw() {
    if (!answer) return;
    replace(first, h("div", {class: "columns even"},
      section("In force", undefined, inForce(answer, status)),
      section("What the file says by now", undefined, files(answer)),
      section("Last reload", undefined, reloads(answer)),
      answer.policy ? policy(answer.policy) : []));
    const version = `${answer.access} ${answer.generation} ${answer.fingerprint}`;
    if (shown === version) return;
    shown = version;
    lines.hidden = false;
    replace(lines, text(answer));
  }

  const stops = [
    poll("/api/v1/configuration", (value) => { answer = value; draw(); },
      (problem) => replace(first, trouble(problem, "the configuration"))),
    poll("/api/v1/status", (value) => { status = value; replace(others, rest(status)); draw(); },
      (problem) => replace(others, trouble(problem, "the state"))),
  ];
  return () => stops.forEach((stop) => stop());
}
