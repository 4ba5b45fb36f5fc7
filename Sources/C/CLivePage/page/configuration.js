// The configuration in force: which, since when, and what was wrong with the last one.

import {mark} from "./charts.js";
import {command, h, replace} from "./dom.js";
import {moment, plural, relative} from "./format.js";
import {now} from "./live.js";
import {poll} from "./poll.js";
import {empty, facts, section, table, trouble} from "./table.js";
import {plain, quoted} from "./text.js";

export const title = "Configuration";

function finding(one) {
  return h("li", h("code", plain(`${one.file ?? ""}${one.line ? `:${one.line}` : ""}`)), " ",
    one.key ? [h("b", plain(one.key)), ": "] : "", plain(one.problem ?? one.text),
    one.expected ? ` (expected: ${plain(one.expected)})` : "");
}

function reload(last) {
  if (!last) return empty("The file has not been read again since the start.");
  const when = `${moment(last.time)}, ${relative(last.time, now())}`;
  if (last.result === "applied") return h("p", mark("good", "applied"), ` ${when}`);
  return [h("p", mark("bad", "refused"), ` ${when}: what was in force before stays`), h("ul", {class: "findings"}, (last.errors ?? []).map(finding))];
}

function commands(file) {
  const name = file && quoted(file);
  const option = name ? ` --config ${name}` : "";
  return h("ul", {class: "commands"}, [`pinfold check${option}`, `pinfold reload${option}`, `pinfold explain${option} https://example.com/`]
    .map((line) => h("li", command(line))));
}

function listeners(list) {
  return table("Listeners", [{title: "Name"}, {title: "Kind"}, {title: "Address"}, {title: "TLS"}, {title: "State"}],
    list.map((one) => [plain(one.name), plain(one.kind), h("code", plain(one.address)), one.tls ? "yes" : "no",
      one.accepting ? mark("good", "accepting") : mark("bad", "not accepting")]));
}

export function show(root) {
  const content = h("div", empty("Asking the gateway…"));
  root.append(h("h1", {class: "unseen"}, title), content);

  return poll("/api/v1/status", (status) => {
    const {configuration} = status;
    const warnings = configuration.warnings ?? [];
    replace(content,
      h("div", {class: "columns even"},
        section("In force", undefined, facts([
          ["File", configuration.file ? h("code", plain(configuration.file)) : "none: the defaults"], ["Number", String(configuration.generation)],
          ["Loaded", `${moment(configuration.loaded)}, ${relative(configuration.loaded, now())}`],
          ["Has", `${plural(configuration.hosts, "host entry", "host entries")}, ${plural(configuration.pinsets, "pinset")}`],
          ["Program", `${plain(status.version)}, ${plain(status.revision)}, process ${status.pid}`],
        ]), commands(configuration.file)),
        section("Last reload", undefined, reload(status.lastReload),
          configuration.unusableFiles?.length ? [h("p", {class: "bad"}, "▲ Files that have changed and cannot be used:"),
            h("ul", configuration.unusableFiles.map((file) => h("li", h("code", plain(file)))))] : [])),
      section("Warnings", plural(warnings.length, "warning"), warnings.length ? h("ul", {class: "findings"}, warnings.map(finding)) : empty("There are none.")),
      section("Listeners", undefined, listeners(status.listeners ?? [])));
  }, (problem) => replace(content, trouble(problem, "the configuration")));
}
