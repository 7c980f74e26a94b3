/**
 * Characters that a terminal does not show as themselves: controls (C0, DEL, C1), line and paragraph separators, and
 * those that change the direction of the text or have no width.
 */
const NOT_SHOWN = /[\p{Cc}\u200b\u200e\u200f\u2028-\u202e\u2060\u2066-\u2069\ufeff]/gu;

/**
 * Text that others wrote, safe to print on a terminal: `\u001b` in place of an escape character, which could colour,
 * move or hide what stands around it.
 */
export const printable = (text: string): string =>
  text.replace(NOT_SHOWN, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
