// `/` searches, `j` and `k` move, Enter opens (it is a link that has the focus), Esc goes back.

import {go, place} from "./router.js";

const ROWS = "#main a.row, #main button.row";

/** The link of the row before or after the one that has the focus. */
function move(step) {
  const rows = [...document.querySelectorAll(ROWS)].filter((row) => row.offsetParent !== null);
  if (!rows.length) return;
  const here = document.activeElement?.closest?.("tr, li, .card");
  const index = rows.findIndex((row) => row === document.activeElement || here?.contains(row));
  const next = index < 0 ? (step > 0 ? 0 : rows.length - 1) : index + step;
  const row = rows[Math.min(Math.max(next, 0), rows.length - 1)];
  row.focus();
  row.scrollIntoView({block: "nearest"});
}

function search() {
  const field = document.querySelector("#main input[type=search]");
  if (field) {
    field.focus();
    field.select();
    return;
  }
  go("flows");
  setTimeout(() => document.querySelector("#main input[type=search]")?.focus(), 50);
}

/** Where Esc leads: from one thing to the list that it is in, from a list to the overview. */
function back() {
  const {panel, query} = place();
  if (panel === "flow") go("flows", query.from ? Object.fromEntries(new URLSearchParams(query.from)) : {});
  else if (Object.keys(query).length) go(panel);
  else if (panel !== "overview") go("overview");
}

/** Listens to the keyboard; `pause` is what `p` does. */
export function listen(pause) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const isTyping = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
    if (event.key === "Escape") {
      if (isTyping) event.target.blur();
      else back();
      return;
    }
    if (isTyping) return;
    const action = {
      "/": search, j: () => move(1), k: () => move(-1), p: pause,
    }[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });
}
