// Texts from servers and clients, made safe to look at and to paste.

/** Characters that are not seen, or that turn the order of others around. */
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

/** A text with every such character written out: `\u{202e}`. */
export function plain(text) {
  return String(text ?? "").replace(UNSEEN, (one) => `\\u{${one.codePointAt(0).toString(16)}}`);
}

/** A word of a shell's command; undefined if it cannot be pasted safely. */
export function quoted(text) {
  if (String(text).search(UNSEEN) >= 0) return undefined;
  if (/^[A-Za-z0-9_./:@%+=,][A-Za-z0-9_./:@%+=,-]*$/.test(text)) return text;
  return `'${String(text).replaceAll("'", "'\\''")}'`;
}
