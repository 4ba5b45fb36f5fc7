// Server-sent events, read from the body of a fetch: an EventSource cannot send Authorization.

import {openStream} from "./session.js";

/** Longest time without a byte: the gateway writes a comment every 15 seconds. */
const SILENCE = 40_000;
/** Longest event that is taken: a page that cannot keep up must not grow without end. */
const LONGEST = 1 << 20;
const FIRST_PAUSE = 1000;
const LONGEST_PAUSE = 10_000;

/** Splits text into events: a parser with `push(text)`, which calls `emit(name, data)`. */
export function eventParser(emit) {
  let rest = "";
  let name = "";
  let data = [];
  const take = (line) => {
    if (line === "") {
      if (data.length) emit(name || "message", data.join("\n"));
      name = "";
      data = [];
      return;
    }
    const colon = line.indexOf(":");
    if (colon === 0) return;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") name = value;
    if (field === "data") data.push(value);
  };
  return {
    push(text) {
      const lines = (rest + text).split(/\r\n|\n|\r(?!$)/);
      rest = lines.pop();
      if (rest.length > LONGEST) throw new Error("an event is too long");
      lines.forEach(take);
    },
  };
}

/**
 * Keeps one stream open until it is stopped.
 *
 * - `onEvent(name, value)`: an event, its JSON read.
 * - `onState({isOpen, problem, retryAt})`: the stream is open, or has ended and is tried again at
 *   `retryAt` (milliseconds); `problem` is what the gateway answered, if it did. A stream that the
 *   gateway ends in order, as it does with each new configuration, is opened again at once and not
 *   said to have ended.
 *
 * Returns `{stop(), retry()}`.
 */
export function keepStream(path, {onEvent, onState}) {
  let pause = FIRST_PAUSE;
  /** When it was last opened again at once: streams that only begin and end are no reason to hurry. */
  let hurried = -Infinity;
  let timer;
  /** The attempt that counts: what an earlier one still brings is left alone. None once stopped. */
  let current;

  const begin = () => {
    clearTimeout(timer);
    current?.abort();
    current = new AbortController();
    run(current);
  };

  const later = (problem) => {
    // A little apart, so that many pages do not come back to a restarted gateway at once.
    const wait = pause * (0.8 + 0.4 * Math.random());
    pause = Math.min(2 * pause, LONGEST_PAUSE);
    onState({isOpen: false, problem, retryAt: Date.now() + wait});
    timer = setTimeout(begin, wait);
  };

  async function run(mine) {
    const isCurrent = () => mine === current;
    let watchdog;
    const heard = () => {
      clearTimeout(watchdog);
      watchdog = setTimeout(() => mine.abort(), SILENCE);
    };
    let problem;
    let isOrderly = false;
    try {
      heard();
      const response = await openStream(path, mine.signal);
      if (!isCurrent()) return;
      pause = FIRST_PAUSE;
      onState({isOpen: true});
      const parser = eventParser((name, data) => {
        if (!isCurrent()) return;
        onEvent(name, JSON.parse(data));
      });
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const {value, done} = await reader.read();
        if (done) break;
        heard();
        parser.push(value);
      }
      isOrderly = Date.now() - hurried >= FIRST_PAUSE;
    } catch (error) {
      if (error.status !== undefined) problem = error;
    } finally {
      clearTimeout(watchdog);
      mine.abort();
    }
    if (!isCurrent()) return;
    if (!isOrderly) {
      later(problem);
      return;
    }
    hurried = Date.now();
    begin();
  }

  begin();
  return {
    stop() {
      clearTimeout(timer);
      current?.abort();
      current = undefined;
    },
    retry() {
      pause = FIRST_PAUSE;
      begin();
    },
  };
}
