// Making elements. Whatever a server sent becomes text and nothing else: strings are only ever put
// into text nodes and into attributes that cannot run anything.

const SVG = "http://www.w3.org/2000/svg";

/** Attributes that a caller may set. A link's target is checked besides. */
const ALLOWED = /^(id|class|role|href|title|type|name|value|placeholder|for|tabindex|scope|colspan|min|max|hidden|disabled|download|autocomplete|spellcheck|rows|open|viewBox|preserveAspectRatio|d|points|x|y|x1|x2|y1|y2|width|height|aria-[a-z]+|data-[a-z]+)$/;

function set(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (typeof value === "function") {
      element.addEventListener(name, value);
      continue;
    }
    if (!ALLOWED.test(name)) throw new Error(`attribute ${name} is not allowed`);
    // Only places within this page and paths of this address: never `javascript:`.
    if (name === "href" && !/^(#|\/(?!\/))/.test(value)) throw new Error("link to elsewhere");
    element.setAttribute(name, value === true ? "" : String(value));
  }
}

function fill(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/** An element of HTML: `h("a", {href: "#flows"}, "text", other, ...)`. A function as the value of an
 * attribute listens to the event of that name. Attributes may be left out. */
export function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  if (isAttributes(attributes)) set(element, attributes);
  else children.unshift(attributes);
  fill(element, children);
  return element;
}

/** The same for SVG. */
export function svg(tag, attributes, ...children) {
  const element = document.createElementNS(SVG, tag);
  set(element, attributes);
  fill(element, children);
  return element;
}

function isAttributes(value) {
  return value !== null && typeof value === "object" && !(value instanceof Node)
    && !Array.isArray(value);
}

/** Replaces the content of an element, without losing where the keyboard is: what has the same
 * `data-key` as what had the focus gets it. */
export function replace(element, ...children) {
  const focused = element.contains(document.activeElement) ? document.activeElement : null;
  const key = focused?.dataset?.key;
  element.replaceChildren();
  fill(element, children);
  if (key === undefined) return;
  for (const one of element.querySelectorAll("[data-key]")) {
    if (one.dataset.key === key) {
      one.focus({preventScroll: true});
      return;
    }
  }
}

/** Says something to people who do not see the page. */
export function announce(text) {
  document.getElementById("announcements").textContent = text;
}

/** A command to run in a terminal, with a button that copies it. */
export function command(text) {
  const code = h("code", text);
  return h("span", {class: "command"}, code, " ", copyButton(text, code));
}

/** A button that copies a text, which `shown` shows; `label` says in few words what it is. */
export function copyButton(text, shown, label = text) {
  const button = h("button", {
    type: "button", class: "copy", "aria-label": `Copy: ${label}`, "data-key": `copy ${label}`,
    click: () => copy(text, shown, button),
  }, "Copy");
  return button;
}

/** Copies a text. Where the browser does not allow that (a page without TLS from elsewhere), the text
 * is selected instead. */
async function copy(text, shown, button) {
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(shown);
    button.textContent = "Selected";
  }
  announce(button.textContent);
  setTimeout(() => { button.textContent = "Copy"; }, 2000);
}
