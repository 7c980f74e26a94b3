/**
 * Patterns of JSONPath's match() and search(): I-Regexp (RFC 9485). json-p3's own check refuses an apostrophe and every
 * character above U+FFFF, and `!match(…)` would pass by that.
 */

const CATEGORY = "\\\\[pP]\\{(?:L[lmotu]?|M[cen]?|N[dlo]?|P[cdefios]?|Z[lps]?|S[ckmo]?|C[cfno]?)\\}";
const ESCAPED = "\\\\[()*+\\-.?[\\\\\\]^nrt{|}]";
/** A character that stands for itself, outside of brackets and inside. */
const PLAIN = "[^()*+.?[\\\\\\]{|}\\p{Cs}]";
const IN_CLASS = `(?:[^\\-[\\\\\\]\\p{Cs}]|${ESCAPED})`;
const CLASS_MEMBER = `(?:${IN_CLASS}(?:-${IN_CLASS})?|${CATEGORY})`;

const TOKEN = new RegExp(
  [
    "(?<open>\\()",
    "(?<close>\\))",
    "(?<or>\\|)",
    "(?<quantifier>[*+?]|\\{\\d+(?:,\\d*)?\\})",
    `(?<category>${CATEGORY})`,
    `\\[(?<negated>\\^?)(?<members>(?:-|${CLASS_MEMBER})${CLASS_MEMBER}*-?)\\]`,
    `(?<character>\\.|${ESCAPED}|${PLAIN})`,
  ].join("|"),
  "uy",
);
const MEMBER = new RegExp(`${CATEGORY}|${IN_CLASS}|-`, "gu");

const CONTROLS: Readonly<Record<string, string>> = { n: "\\n", r: "\\r", t: "\\t" };
const ASSERTED: Readonly<Record<string, string>> = { ".": "[^\\n\\r]", "^": "\\A", $: "\\z" };

/** The pattern in RE2's syntax; null where it is not an I-Regexp. */
export function translateIRegexp(source: string): string | null {
  const token = new RegExp(TOKEN);
  let output = "";
  let depth = 0;
  let mayRepeat = false;
  for (let match = token.exec(source); match?.groups; match = token.exec(source)) {
    const { open, close, or, quantifier, category, members, negated, character } = match.groups;
    if (open) depth += 1;
    if (close && --depth < 0) return null;
    if (quantifier && !mayRepeat) return null;
    mayRepeat = !(open || or || quantifier);
    if (members !== undefined) output += `[${negated}${members.replace(MEMBER, inClass)}]`;
    else if (character) output += ASSERTED[character] ?? literal(character);
    else output += open ? "(?:" : (close ?? or ?? category ?? plainCount(quantifier ?? ""));
    if (token.lastIndex === source.length) break;
  }
  const ended = token.lastIndex === source.length;
  return ended && depth === 0 ? output : null;
}

/** A member of a class. A `-` alone is that of a range, or stands first or last. */
const inClass = (member: string): string =>
  /^\\[pP]/.test(member) || member === "-" ? member : literal(member);

function literal(character: string): string {
  const plain = character.length > 1 && character.startsWith("\\") ? character.slice(1) : character;
  if (plain !== character && CONTROLS[plain]) return CONTROLS[plain];
  return `\\x{${(plain.codePointAt(0) ?? 0).toString(16)}}`;
}

/** A count such as `{01,2}` as RE2 reads it, without zeros in front. */
export const plainCount = (quantifier: string): string =>
  quantifier.replace(/\d+/g, (digits) => digits.replace(/^0+(?=\d)/, ""));
