/** In its place stands the character for one that cannot be shown. */
const REPLACEMENT = "\ufffd";

/** What a stranger said, as every engine can keep it: PostgreSQL keeps no U+0000 in a text. */
export const storableText = (text: string): string => text.replaceAll("\u0000", REPLACEMENT);

export const isStorable = (text: string): boolean => !text.includes("\u0000");
