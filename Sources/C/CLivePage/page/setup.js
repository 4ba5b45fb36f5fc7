// How to set up each kind of client: the lines of /setup.

import {copyButton, h, replace} from "./dom.js";
import {Problem, read} from "./session.js";
import {empty, section, trouble} from "./table.js";

export const title = "Setup";

function one(part) {
  // Lines that belong together are copied together.
  const blocks = part.lines.join("\n").split("\n\n");
  return section(part.title, undefined, part.note ? h("p", part.note) : [],
    blocks.map((block) => {
      const lines = h("pre", {tabindex: "0", role: "group", "aria-label": part.title}, block);
      return h("div", {class: "lines"}, lines, copyButton(block, lines));
    }));
}

export function show(root, query) {
  const content = h("div", empty("Asking the gateway…"));
  root.append(h("h1", {class: "unseen"}, title), content);
  const abort = new AbortController();
  read("/setup", {}, abort.signal).then((guide) => {
    const list = h("div", {class: "cards setup"});
    const field = h("input", {
      type: "search", id: "client", value: query.client, placeholder: "curl, Java, Android …", spellcheck: "false", autocomplete: "off",
      input: () => choose(),
    });
    const choose = () => {
      const wanted = field.value.trim().toLowerCase();
      const found = guide.sections.filter((part) => `${part.title} ${part.lines.join(" ")}`.toLowerCase().includes(wanted));
      replace(list, found.length ? found.map(one) : empty("No client is like that."));
    };
    replace(content, h("p", guide.introduction), h("p", h("a", {href: "/proxy.pac", download: true}, "proxy.pac"),
      guide.certificate ? [" · ", h("a", {href: "/ca.pem", download: true}, "ca.pem"), " · ", h("a", {href: "/ca.der", download: true}, "ca.der")] : "",
      " · ", h("a", {href: "/setup"}, "this as a plain page")),
    h("div", {class: "bar", role: "search"}, h("label", {for: "client"}, "Client"), field), list);
    choose();
  }, (problem) => {
    if (problem instanceof Problem) replace(content, problem.kind ? trouble(problem, "setup") : empty(
      "There is no forward proxy to set up. One is a listener with ", h("code", "kind: forward"), "."));
  });
  return () => abort.abort();
}
