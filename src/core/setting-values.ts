import { type Refusal, refuseField } from "./errors.ts";
import { parseNetwork } from "./networks.ts";
import { checkSourceUrl } from "./source-url.ts";

/** How settings of the usual kinds are read (docs/configuration, "Configuration"). */

/** Reads the text of a setting, or says what it must be. */
export type Parse<Value> = (text: string) => Value | { readonly problem: string };

/** What parses a URL leaves line ends out: of two addresses it would make one. */
export const oneLine =
  <Value>(parse: Parse<Value>): Parse<Value> =>
  (text) =>
    /\p{Cc}/u.test(text) ? { problem: "must be one line, without control characters" } : parse(text);

export const integer =
  (minimum: number, maximum: number): Parse<number> =>
  (text) => {
    const value = /^[0-9]{1,16}$/.test(text) ? Number(text) : Number.NaN;
    return value >= minimum && value <= maximum
      ? value
      : { problem: `must be an integer from ${minimum} to ${maximum}` };
  };

export const yesOrNo: Parse<boolean> = (text) =>
  text === "true" || (text === "false" ? false : { problem: "must be true or false" });

/** Identifiers follow from what a path stands for (`core/did-web.ts`), so it must stand for something. */
export const url: Parse<string> = (text) => {
  if (checkSourceUrl(text) !== null || /[?#]/.test(text))
    return { problem: "must be an http or https URL, such as https://holdfast.example" };
  return isDecodable(text)
    ? text.replace(/\/+$/, "")
    : { problem: "must be a URL with the digits of UTF-8 after each %, such as %20" };
};

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

export const networks: Parse<readonly string[]> = (text) => {
  const entries = text.split(",").map((entry) => entry.trim());
  const wrong = entries.find((entry) => parseNetwork(entry) === null);
  return wrong === undefined
    ? entries
    : { problem: `must be CIDRs such as 10.0.0.0/8, with commas between; ${wrong} is not a CIDR` };
};

export const token: Parse<string> = (given) =>
  /^[\x21-\x7e]{16,256}$/.test(given)
    ? given
    : { problem: "must be 16 to 256 printable ASCII characters without spaces" };

/** The 32 bytes that a text holds in base64; null where it holds none. */
export const parseKey = (text: string): Uint8Array | null =>
  /^[A-Za-z0-9+/_-]{43}=?$/.test(text) ? new Uint8Array(Buffer.from(text, "base64")) : null;

export const key: Parse<Uint8Array> = (text) =>
  parseKey(text) ?? { problem: "must be 32 bytes in base64, as `openssl rand -base64 32` makes them" };

/** One line, as it is typed. A guess costs a second and 256 MiB, so it needs to be no longer than a person can write down. */
export const parsePassphrase: Parse<string> = (text) =>
  /^[^\p{Cc}]{12,1024}$/u.test(text)
    ? text
    : { problem: "must be 12 to 1024 characters in one line, such as five words drawn at random" };

/** Whether a URL's host is this machine, by its name or an address of its own. */
export const isLoopback = (host: string): boolean =>
  /^(?:localhost|127(?:\.\d{1,3}){3}|::1|\[::1\])$/.test(host);

export const PREFIX = "HOLDFAST_";

/** The texts of settings, by name. A flag's name comes without `HOLDFAST_`; a variable's name is whole. */
export type Given = Readonly<Record<string, string | undefined>>;

/** After the name of a variable that names a file. */
export const FILE = "_FILE";

/** The texts of settings, each of its variable, or of the file that the variable of that name with `_FILE` names. */
export function orFromFiles(
  settings: readonly string[],
  environment: Given,
  readFile: (path: string) => string,
): Given | Refusal {
  const given: Record<string, string | undefined> = {};
  for (const setting of settings) {
    const name = PREFIX + setting;
    const path = environment[name + FILE];
    given[name] = environment[name];
    if (path === undefined || path === "") continue;
    if (given[name]) return refuseField(name + FILE, `set it or ${name}, not both`);
    let text: string;
    try {
      text = readFile(path).replace(/\r?\n$/, "");
    } catch (error) {
      const { code } = error as { code?: unknown };
      return refuseField(name + FILE, `cannot be read${typeof code === "string" ? ` (${code})` : ""}`);
    }
    // Taken for not set, it would begin a new ledger, or make a new key.
    if (text.trim() === "")
      return refuseField(
        name + FILE,
        `names a file that is empty: write into it what ${name} would be, or leave the variable out`,
      );
    given[name] = text;
  }
  return given;
}

type Table = Readonly<Record<string, Parse<unknown>>>;
/** What a table of settings is read as; a setting that is not given is missing. */
export type Values<T extends Table> = {
  [Name in keyof T]?: Exclude<ReturnType<T[Name]>, { problem: string }>;
};

/** The settings that are given, parsed. The first bad value is refused, and the message names the setting. */
export function parseAll<T extends Table>(table: T, given: Given): Values<T> | Refusal {
  const values: Record<string, unknown> = {};
  for (const [setting, parse] of Object.entries(table)) {
    const text = given[PREFIX + setting];
    if (text === undefined || text === "") continue;
    const value = parse(text);
    if (typeof value === "object" && value !== null && "problem" in value) {
      return refuseField(PREFIX + setting, String(value.problem));
    }
    values[setting] = value;
  }
  return values as Values<T>;
}
