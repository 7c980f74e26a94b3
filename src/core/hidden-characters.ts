/**
 * Characters that a person does not see, and that change what stands around them: control characters (C0, DEL, C1), marks of
 * direction, and characters without width. The joiners U+200C and U+200D are not among them, since some languages are written
 * with them. As ranges for a class of a regular expression.
 */
export const HIDDEN_CHARACTERS =
  "\\u0000-\\u001f\\u007f-\\u009f\\u200b\\u200e\\u200f\\u202a-\\u202e\\u2060\\u2066-\\u2069\\ufeff";

/** The pattern of text that people read: none of its characters is hidden (docs/idempotency, "Text"). */
export const PLAIN_TEXT_PATTERN = `^[^${HIDDEN_CHARACTERS}]*$`;

/** What a refusal says of such text, after the other things that the text must be. */
export const NOTHING_HIDDEN = "without control or invisible characters";

const HIDDEN = new RegExp(`[${HIDDEN_CHARACTERS}]`);

export const hasHiddenCharacters = (text: string): boolean => HIDDEN.test(text);

/** Besides the hidden characters: a mark of direction, and separators of lines and paragraphs, that texts may contain. */
const NOT_PRINTED = `${HIDDEN_CHARACTERS}\\u061c\\u2028\\u2029`;
const NOT_IN_LINE = new RegExp(`[${NOT_PRINTED}]`, "g");
const NOT_IN_LINES = new RegExp(`(?!\\n)[${NOT_PRINTED}]`, "g");

const escaped = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;

/**
 * Text that others wrote, safe to print within a line of a terminal: `\u001b` in place of an escape character, which could
 * colour, move or hide what stands around it.
 */
export const printable = (text: string): string => text.replace(NOT_IN_LINE, escaped);

/**
 * Lines that are about to be printed: as `printable`, and line breaks stay. JSON keeps its values, since a hidden character is
 * only in its strings, where the escaped form means the same.
 */
export const printableLines = (text: string): string => text.replace(NOT_IN_LINES, escaped);
