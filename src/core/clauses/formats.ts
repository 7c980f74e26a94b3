import { fullFormats } from "ajv-formats/dist/formats.js";
import { compilePattern, type Pattern } from "./pattern.ts";

/**
 * The formats that schemas may name. Where ajv-formats uses a native regular expression, ours replaces it, since native ones
 * can backtrack (see pattern.ts). A schema that names an unknown format is refused when it is saved.
 */
type TextFormat = (text: string) => boolean;

const LABEL = "[0-9A-Za-z](?:[-0-9A-Za-z]{0,61}[0-9A-Za-z])?";
const IPV4 = "(?:(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)\\.){3}(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)";
const POINTER = "(?:\\/(?:[^~\\/]|~0|~1)*)*";
const DURATION =
  "P(?:\\d+W|(?:\\d+Y)?(?:\\d+M)?(?:\\d+D)?(?:T(?:\\d+H(?:\\d+M)?(?:\\d+S)?|\\d+M(?:\\d+S)?|\\d+S))?)";
const VARIABLE =
  "(?:[0-9A-Z_a-z]|%[0-9A-Fa-f]{2})(?:\\.?(?:[0-9A-Z_a-z]|%[0-9A-Fa-f]{2}))*(?::[1-9]\\d{0,3}|\\*)?";

const PATTERNS: Readonly<Record<string, string>> = {
  duration: DURATION,
  email: `[-0-9A-Za-z.!#$%&'*+\\/=?^_\`{|}~]+@${LABEL}(?:\\.${LABEL})*`,
  hostname: `${LABEL}(?:\\.${LABEL})*\\.?`,
  ipv4: IPV4,
  uri: "[A-Za-z][-0-9A-Za-z+.]*:[^\\s]*",
  "uri-reference": "(?:(?:[A-Za-z][-0-9A-Za-z+.]*:)?\\/?\\/)?(?:[^\\\\\\s#][^\\s#]*)?(?:#[^\\\\\\s]*)?",
  "uri-template": `(?:[^\\x00-\\x20"'<>%\\\\^\`{|}]|%[0-9A-Fa-f]{2}|\\{[+#.\\/;?&=,!@|]?${VARIABLE}(?:,${VARIABLE})*\\})*`,
  uuid: "(?:urn:uuid:)?[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}",
  "json-pointer": POINTER,
  "relative-json-pointer": `(?:0|[1-9]\\d*)(?:#|${POINTER})`,
  byte: "(?:[0-9A-Za-z+\\/]{4})*(?:[0-9A-Za-z+\\/]{2}==|[0-9A-Za-z+\\/]{3}=)?",
};

/** No time, address or hostname is longer. */
const SHORT_MAX = 256;

const short =
  (check: TextFormat): TextFormat =>
  (text) =>
    text.length <= SHORT_MAX && check(text);

/** Compiles its pattern when the first text comes. Compiling all patterns at load took 20 ms of every start. */
function patternFormat(source: string): TextFormat {
  let pattern: Pattern | null = null;
  return (text) => {
    pattern ??= compilePattern(`^(?:${source})$`);
    return pattern.test(text);
  };
}

const patterns = Object.fromEntries(
  Object.entries(PATTERNS).map(([name, source]) => [name, patternFormat(source)]),
);
const duration = patterns.duration as TextFormat;
const hostname = patterns.hostname as TextFormat;
type Times = Record<"date" | "time" | "date-time", { validate: TextFormat }>;
const times = fullFormats as unknown as Times;

export const textFormats: Readonly<Record<string, TextFormat | true>> = {
  ...patterns,
  duration: (text) => text !== "P" && duration(text),
  hostname: (text) => text.length <= 254 && hostname(text),
  ipv6: short(
    (text) => /^[0-9A-Fa-f:.]+$/.test(text) && text.includes(":") && URL.canParse(`http://[${text}]/`),
  ),
  date: short(times.date.validate),
  time: short(times.time.validate),
  "date-time": short(times["date-time"].validate),
  regex: isRegularExpression,
  password: true,
  binary: true,
};

const isInt32 = (value: number): boolean => Number.isInteger(value) && Math.abs(value + 0.5) < 2 ** 31;

export const numberFormats: Readonly<Record<string, (value: number) => boolean>> = {
  int32: isInt32,
  int64: Number.isInteger,
  float: Number.isFinite,
  double: Number.isFinite,
};

function isRegularExpression(text: string): boolean {
  try {
    new RegExp(text, "u");
    return true;
  } catch {
    return false;
  }
}
