// Panels whose data has no events of its own ask for it every few seconds, while they are shown.

import {live, on} from "./live.js";
import {Problem, read} from "./session.js";

const SECONDS = 5;

/** Reads a resource now, again every few seconds while the gateway answers, and at once after the
 * connection was lost. Returns what stops it. */
export function poll(path, onValue, onProblem, seconds = SECONDS) {
  const abort = new AbortController();
  let timer;
  const ask = async () => {
    clearTimeout(timer);
    try {
      onValue(await read(path, {}, abort.signal));
    } catch (problem) {
      if (abort.signal.aborted) return;
      if (!(problem instanceof Problem)) throw problem;
      onProblem(problem);
      if (problem.isAbsent) return;
    }
    if (!document.hidden && !abort.signal.aborted) timer = setTimeout(ask, seconds * 1000);
  };
  const visible = () => { if (!document.hidden) ask(); };
  document.addEventListener("visibilitychange", visible);
  const off = [
    on("connection", () => { if (live.connection.isOpen) ask(); }),
    on("configuration", ask),
  ];
  ask();
  return () => {
    abort.abort();
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", visible);
    off.forEach((stop) => stop());
  };
}
