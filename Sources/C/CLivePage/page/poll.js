// Panels whose data has no events of its own ask for it every few seconds, while they are shown.

import {live, on} from "./live.js";
import {Problem, read} from "./session.js";

const SECONDS = 5;

/** Reads a resource now, again every few seconds while the gateway answers, and at once after the
 * connection was lost; what was shown before that stays. Returns what stops it. */
export function poll(path, onValue, onProblem, seconds = SECONDS) {
  let timer;
  /** The question that counts: a later one takes its place. None once stopped. */
  let current;
  let isShown = false;
  const ask = async () => {
    clearTimeout(timer);
    current?.abort();
    const mine = new AbortController();
    current = mine;
    try {
      const value = await read(path, {}, mine.signal);
      if (mine !== current) return;
      isShown = true;
      onValue(value);
    } catch (problem) {
      if (mine !== current) return;
      if (!(problem instanceof Problem)) throw problem;
      if (!(problem.isUnreachable && isShown)) onProblem(problem);
      if (problem.isAbsent) return;
    }
    if (!document.hidden) timer = setTimeout(ask, seconds * 1000);
  };
  const visible = () => { if (!document.hidden) ask(); };
  document.addEventListener("visibilitychange", visible);
  const off = [
    on("connection", () => { if (live.connection.isOpen) ask(); }),
    on("configuration", ask),
  ];
  ask();
  return () => {
    clearTimeout(timer);
    current?.abort();
    current = undefined;
    document.removeEventListener("visibilitychange", visible);
    off.forEach((stop) => stop());
  };
}
