// The certificates of the server of one exchange: what they are, which pin matched, and what to do
// where none did.

import {mark} from "./charts.js";
import {command, h} from "./dom.js";
import {moment, relative, secondsUntil} from "./format.js";
import {now} from "./live.js";
import {empty, facts, section} from "./table.js";
import {plain, quoted} from "./text.js";

const DAY = 86400;
const WORDS = {trusted: ["good", "trusted"], reported: ["warn", "trusted, but reported"], refused: ["bad", "refused"]};

/** A time of validity, which is marked where it is the trouble. */
function end(time) {
  const left = secondsUntil(time, now());
  const text = `${moment(time)}, ${relative(time, now())}`;
  if (!(left < 14 * DAY)) return text;
  return [text, " ", left <= 0 ? mark("bad", "expired") : mark(left < 3 * DAY ? "bad" : "warn", "soon")];
}

function begin(time) {
  return secondsUntil(time, now()) > 0 ? [moment(time), " ", mark("bad", "not yet")] : moment(time);
}

function certificate(one, of) {
  if (one.pin === undefined) return h("section", {class: "panel card"}, h("h3", `Certificate ${one.position}`), empty("It cannot be read: it is not X.509 in DER."));
  const kind = one.position === 1 ? "the server's own" : one.subject === one.issuer ? "self-issued" : one.isAuthority ? "an authority's" : "no authority's";
  return h("section", {class: "panel card"},
    h("h3", `${one.position} of ${of} `, h("small", kind), one.matches.length ? [" ", mark("good", "pin matches")] : []),
    facts([
      ["Subject", plain(one.subject)], ["Issuer", plain(one.issuer)],
      ["Names", one.names.length ? one.names.map(plain).join(", ") : undefined],
      ["Valid from", begin(one.notBefore)], ["Valid until", end(one.notAfter)],
      ["Key", one.key && plain(one.key)], ["Fingerprint", h("code", plain(one.fingerprint))],
    ]),
    h("p", command(one.pin)));
}

/** What to change where pins do not match. */
function advice(found, host) {
  const own = found.certificates[0]?.pin;
  // Another key would not mend a chain that is not valid, or a pinset that has expired.
  if (!found.hasOtherPins || !found.pinset || !own) return [];
  const name = quoted(host.replace(/:443$/, ""));
  return h("div",
    h("p", h("b", "What to do: "), "if the server's key was changed on purpose, add the pin of its key to ",
      h("a", {href: `#pins?${new URLSearchParams({pinset: found.pinset})}`}, `pinset ${plain(found.pinset)}`),
      ", and remove the old one when no server has it any more. If nobody knows of a change, somebody may be in between: compare with another network first."),
    h("ul", {class: "commands"}, h("li", command(`- ${own}`)), name ? h("li", command(`pinfold pin ${name}`)) : []));
}

/** The part of a flow's page about its server's certificates. */
export function chain(found, host) {
  if (!found) return [];
  const [state, word] = WORDS[found.verdict] ?? ["idle", plain(found.verdict)];
  const matched = found.matches.map((one) => h("li", "pinset ", h("b", plain(one.pinset)), ": ",
    one.pins.map((pin, index) => [index ? ", " : "", h("code", plain(pin))])));
  return section("Certificates of the server", `as it sent them; verified ${moment(found.verified)}`,
    h("p", mark(state, word), found.problem ? ` ${plain(found.problem)}` : ""),
    matched.length ? [h("p", "Pins that match:"), h("ul", {class: "findings"}, matched)] : [],
    advice(found, host ?? ""),
    h("div", {class: "cards"}, found.certificates.map((one) => certificate(one, found.certificates.length))),
    found.isCut ? h("p", {class: "note"}, "It sent more than is held.") : []);
}
