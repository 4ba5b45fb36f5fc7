// Asking for the token.

import {command, h, replace} from "./dom.js";

/** Asks for the token in place of a panel; `give` is called with it. */
export function showToken(root, problem, hadOne, give) {
  if (problem.kind === "not-an-operator") {
    replace(root, h("section", {class: "panel token"}, h("h1", "Not from here"),
      h("p", "This gateway has no token, and shows its state only to programs of its own machine, on "
        + "a Unix socket, or to who has a certificate."),
      h("p", "Set ", h("code", "admin.tokenFile"), " to see this page from elsewhere, or make a way "
        + "to its machine: ", command("ssh -L 9090:127.0.0.1:9090 HOST"))));
    return;
  }
  const field = h("input", {
    id: "token", type: "password", name: "token", autocomplete: "off", spellcheck: "false",
    "aria-describedby": "token-note",
  });
  const form = h("form", {
    class: "panel token",
    submit: (event) => {
      event.preventDefault();
      const given = field.value.trim();
      if (given || problem.isOffer) give(given);
    },
  }, h("h1", "Token"),
  hadOne && !problem.isOffer ? h("p", {class: "bad", role: "alert"},
    "▲ The gateway does not accept that token.") : [],
  h("p", h("label", {for: "token"}, "The token in ", h("code", "admin.tokenFile")), " ", field, " ",
    h("button", {type: "submit"}, "Open")),
  h("p", {id: "token-note", class: "note"}, "It stays in this tab, until the tab is closed. The ",
    h("a", {href: "#setup"}, "setup of clients"), " needs none."));
  replace(root, form);
  field.focus();
}
