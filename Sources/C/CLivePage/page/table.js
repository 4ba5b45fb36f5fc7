// Tables: rows of cells under headings, which become cards where the page is narrow.

import {h} from "./dom.js";

/**
 * A table.
 *
 * - `columns`: `{title, kind?}`; `kind` "number" is aligned to the right.
 * - `rows`: each an array of cells (text, an element, or an array of them).
 */
export function table(label, columns, rows) {
  return h("table", {"aria-label": label},
    h("thead", h("tr", columns.map((column) => h("th", {
      scope: "col", class: column.kind,
    }, column.title)))),
    h("tbody", rows.map((cells) => row(columns, cells))));
}

/** One row of such a table. */
export function row(columns, cells) {
  return h("tr", cells.map((cell, index) => h("td", {
    class: [columns[index].kind, cell === "–" && "none"].filter(Boolean).join(" ") || undefined,
    "data-label": columns[index].title,
  }, cell)));
}

/** A part of a page under a heading. */
export function section(title, note, ...content) {
  return h("section", {class: "panel"},
    h("h2", title, note === undefined ? [] : h("small", " ", note)), content);
}

/** Nothing is there: what would be, and how. */
export function empty(text, ...more) {
  return h("p", {class: "empty"}, text, more.length ? [" ", more] : []);
}

/** A resource that could not be read. */
export function trouble(problem, what) {
  if (problem.isAbsent) return empty(`This gateway does not tell about ${what}: its program is older than this page.`);
  if (problem.isUnreachable) return empty(`The gateway does not answer; ${what} will be shown once it does.`);
  return h("p", {class: "empty bad"}, `${what}: ${problem.message} (${problem.status})`);
}

/** Names and values. */
export function facts(pairs) {
  return h("dl", {class: "facts"}, pairs
    .filter(([, value]) => value !== undefined && value !== null && value !== "" && value !== false)
    .map(([name, value]) => h("div", h("dt", name), h("dd", value))));
}
