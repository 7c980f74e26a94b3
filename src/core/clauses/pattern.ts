import { RE2JS } from "re2js";
import { plainCount, translateIRegexp } from "./i-regexp.ts";

/**
 * Patterns of schemas and JSONPaths, matched in linear time. JavaScript's own regular expressions backtrack, and give up
 * with `false` after half a second: `not: { pattern }` would then pass wrongly. So a pattern in ECMA-262's grammar (flag `u`,
 * as JSON Schema asks) is rewritten for RE2, with the same meaning. A pattern that RE2 cannot match is refused.
 */
export type Pattern = { test(text: string): boolean; toString(): string };

/** The message says why the pattern cannot be used. */
export class PatternProblem extends Error {}

const PATTERN_LENGTH_MAX = 4_096;

/** ECMA-262 WhiteSpace and LineTerminator; RE2's own `\s` knows only ASCII. */
const SPACES = [
  [0x09, 0x0d],
  [0x20, 0x20],
  [0xa0, 0xa0],
  [0x1680, 0x1680],
  [0x2000, 0x200a],
  [0x2028, 0x2029],
  [0x202f, 0x202f],
  [0x205f, 0x205f],
  [0x3000, 0x3000],
  [0xfeff, 0xfeff],
] as const;

const CODE_POINT_MAX = 0x10ffff;
const point = (code: number): string => `\\x{${code.toString(16)}}`;
const range = (low: number, high: number): string => `${point(low)}-${point(high)}`;

const SPACE_RANGES = SPACES.map(([low, high]) => range(low, high)).join("");
const NOT_SPACE_RANGES = SPACES.map(([, high], index) =>
  range(high + 1, (SPACES[index + 1]?.[0] ?? CODE_POINT_MAX + 1) - 1),
).join("");
const BEFORE_SPACES = range(0, SPACES[0][0] - 1);
const ANY = `[${range(0, CODE_POINT_MAX)}]`;
const NONE = `[^${range(0, CODE_POINT_MAX)}]`;

/** Escapes that name a set of characters. Outside of a class they need brackets. */
const SETS: Readonly<Record<string, string>> = {
  d: "0-9",
  D: `${range(0, 0x2f)}${range(0x3a, CODE_POINT_MAX)}`,
  w: "0-9A-Z_a-z",
  W: `${range(0, 0x2f)}${range(0x3a, 0x40)}${range(0x5b, 0x5e)}${point(0x60)}${range(0x7b, CODE_POINT_MAX)}`,
  s: SPACE_RANGES,
  S: `${BEFORE_SPACES}${NOT_SPACE_RANGES}`,
};
const CONTROLS: Readonly<Record<string, number>> = { t: 9, n: 10, v: 11, f: 12, r: 13, "0": 0 };

const DOT = `[^\\n\\r${range(0x2028, 0x2029)}]`;

const CATEGORIES: Readonly<Record<string, string>> = {
  Letter: "L",
  Uppercase_Letter: "Lu",
  Lowercase_Letter: "Ll",
  Titlecase_Letter: "Lt",
  Modifier_Letter: "Lm",
  Other_Letter: "Lo",
  Mark: "M",
  Number: "N",
  Decimal_Number: "Nd",
  Punctuation: "P",
  Symbol: "S",
  Separator: "Z",
  Space_Separator: "Zs",
  Other: "C",
  Control: "Cc",
};

/** Compiles a schema's pattern. Throws `PatternProblem` where it is malformed, or needs what linear time cannot give. */
export function compilePattern(source: string): Pattern {
  refuseLength(source);
  try {
    new RegExp(source, "u");
  } catch {
    throw new PatternProblem(`not a regular expression: ${source.slice(0, 100)}`);
  }
  return compileTranslated(source, new Translation(source).run());
}

/**
 * Compiles a pattern of JSONPath's `match`, which compares the whole text, or `search`. Null where it is not an I-Regexp. Throws
 * `PatternProblem` where it needs what linear time cannot give.
 */
export function compileIRegexp(source: string, name: "match" | "search"): Pattern | null {
  refuseLength(source);
  const translated = translateIRegexp(source);
  if (translated === null) return null;
  return compileTranslated(source, name === "match" ? `\\A(?:${translated})\\z` : translated);
}

function refuseLength(source: string): void {
  if (source.length > PATTERN_LENGTH_MAX)
    throw new PatternProblem(`a pattern of more than ${PATTERN_LENGTH_MAX} characters`);
}

function compileTranslated(source: string, translated: string): Pattern {
  try {
    const engine = RE2JS.compile(translated);
    // Ajv takes this text for the pattern's identity.
    return { test: (text) => engine.test(text), toString: () => source };
  } catch (error) {
    throw new PatternProblem(`a pattern that is too large or not supported (${(error as Error).message})`);
  }
}

/** Rewrites a pattern whose grammar the engine has already checked. */
class Translation {
  private at = 0;
  private readonly characters: readonly string[];

  constructor(source: string) {
    this.characters = [...source];
  }

  run(): string {
    let output = "";
    while (this.at < this.characters.length) output += this.atom();
    return output;
  }

  private take(): string {
    return this.characters[this.at++] ?? "";
  }

  private ahead(text: string): boolean {
    return this.characters.slice(this.at, this.at + text.length).join("") === text;
  }

  private takeUntil(end: string): string {
    let text = "";
    for (let next = this.take(); next !== end && next !== ""; next = this.take()) text += next;
    return text;
  }

  private atom(): string {
    const character = this.take();
    switch (character) {
      case "^":
        return "\\A";
      case "$":
        return "\\z";
      case ".":
        return DOT;
      case "(":
        return this.group();
      case "[":
        return this.characterClass();
      case "\\":
        return this.escape();
      case "{":
        return plainCount(`{${this.takeUntil("}")}}`);
      case ")":
      case "|":
      case "*":
      case "+":
      case "?":
        return character;
      default:
        return literal(character);
    }
  }

  /** Every group is written without a capture, since only the fact of a match is used. */
  private group(): string {
    if (!this.ahead("?")) return "(?:";
    if (this.ahead("?:")) {
      this.at += 2;
      return "(?:";
    }
    if (this.ahead("?=") || this.ahead("?!") || this.ahead("?<=") || this.ahead("?<!"))
      throw new PatternProblem("look-arounds are not supported");
    if (!this.ahead("?<")) throw new PatternProblem("inline flags are not supported");
    this.takeUntil(">");
    return "(?:";
  }

  private escape(): string {
    const next = this.characters[this.at] ?? "";
    if (next === "b" || next === "B") {
      this.at++;
      return `\\${next}`;
    }
    const set = this.set();
    return set === null ? literal(String.fromCodePoint(this.escapedPoint())) : `[${set}]`;
  }

  /** The set that the next escape names, as the content of a class; null where the escape names one character. */
  private set(): string | null {
    const letter = this.characters[this.at] ?? "";
    if (letter === "p" || letter === "P") {
      this.at += 2;
      return `\\${letter}{${category(this.takeUntil("}"))}}`;
    }
    const set = SETS[letter];
    if (set !== undefined) this.at++;
    return set ?? null;
  }

  private escapedPoint(): number {
    const letter = this.take();
    if (letter === "c") return (this.take().codePointAt(0) ?? 0) % 32;
    if (letter === "x") return Number.parseInt(this.take() + this.take(), 16);
    if (letter === "u") return this.unicodeEscape();
    if (letter === "k" || (letter >= "1" && letter <= "9"))
      throw new PatternProblem("backreferences are not supported");
    return CONTROLS[letter] ?? letter.codePointAt(0) ?? 0;
  }

  private unicodeEscape(): number {
    if (this.ahead("{")) {
      this.at++;
      return Number.parseInt(this.takeUntil("}"), 16);
    }
    const high = this.hex4();
    if (high < 0xd800 || high > 0xdbff || !this.ahead("\\u")) return high;
    const before = this.at;
    this.at += 2;
    const low = this.ahead("{") ? 0 : this.hex4();
    if (low >= 0xdc00 && low <= 0xdfff) return (high - 0xd800) * 0x400 + (low - 0xdc00) + 0x10000;
    this.at = before;
    return high;
  }

  private hex4(): number {
    return Number.parseInt(this.take() + this.take() + this.take() + this.take(), 16);
  }

  private characterClass(): string {
    const negated = this.ahead("^");
    if (negated) this.at++;
    let content = "";
    while (!this.ahead("]")) {
      const low = this.classMember();
      if (typeof low === "string") {
        content += low;
      } else if (this.ahead("-") && this.characters[this.at + 1] !== "]") {
        this.at++;
        content += range(low, this.classMember() as number);
      } else {
        content += point(low);
      }
    }
    this.at++;
    if (content === "") return negated ? ANY : NONE;
    return `[${negated ? "^" : ""}${content}]`;
  }

  /** A code point, or the content of a set. */
  private classMember(): number | string {
    const character = this.take();
    if (character !== "\\") return character.codePointAt(0) ?? 0;
    const set = this.set();
    if (set !== null) return set;
    if (this.ahead("b")) {
      this.at++;
      return 8;
    }
    return this.escapedPoint();
  }
}

const literal = (character: string): string =>
  /^[0-9A-Za-z]$/.test(character) ? character : point(character.codePointAt(0) ?? 0);

/** RE2's name of a Unicode property: general categories and scripts. */
function category(name: string): string {
  const [key, value] = name.includes("=") ? name.split("=", 2) : [null, name];
  if (key === null || key === "General_Category" || key === "gc") {
    const short = CATEGORIES[value as string] ?? (value as string);
    if (/^(L[ultmo]?|M[nce]?|N[dlo]?|P[cdseifo]?|S[mcko]?|Z[slp]?|C[cfsno]?)$/.test(short)) return short;
  } else if (key === "Script" || key === "sc") {
    return value as string;
  }
  throw new PatternProblem(`the Unicode property ${name} is not supported`);
}
