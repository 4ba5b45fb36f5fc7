// Where one is: `#flows?host=a&reason=b`. All that can be selected has such an address.

/** The place that an address names: `{panel, query}`. */
export function place(hash = location.hash) {
  const [panel, text = ""] = hash.replace(/^#/, "").split(/\?(.*)/s);
  return {panel: panel || "overview", query: Object.fromEntries(new URLSearchParams(text))};
}

/** The address of a place. */
export function address(panel, query = {}) {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== "") parameters.append(name, value);
  }
  const text = parameters.toString();
  return text ? `#${panel}?${text}` : `#${panel}`;
}

export function go(panel, query = {}) {
  location.hash = address(panel, query);
}

/** Changes the address without a new entry in the browser's history: while one types. */
export function amend(panel, query) {
  history.replaceState(null, "", address(panel, query));
}
