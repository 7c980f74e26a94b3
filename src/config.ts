import { type Refusal, refuseField } from "./core/errors.ts";
import { type Network, parseNetwork } from "./core/networks.ts";
import type { RateLimits } from "./core/rate.ts";
import { checkSourceUrl } from "./core/source-url.ts";

/** The checked configuration (decisions.md, Configuration). Nothing else reads the environment. */
export type Config = {
  /** The data folder. */
  readonly data: string;
  readonly host: string;
  /** 0 takes a free port. */
  readonly port: number;
  /** Where people and agents reach the service; null means `http://localhost:<port>`. */
  readonly baseUrl: string | null;
  /** Where the links in errors lead; null means the service's own `/docs`. */
  readonly docsUrl: string | null;
  /** Networks that a deliverable may be fetched from besides the public ones. */
  readonly allowNetworks: readonly string[];
  readonly fetchSeconds: number;
  /** Proxies whose `X-Forwarded-For` is believed. */
  readonly trustProxy: readonly Network[];
  readonly rateLimits: RateLimits;
};

/** Settings as they were given, by their names without `HOLDFAST_`: flags of the command line, then the environment. */
export type Given = Readonly<Record<string, string | undefined>>;

/** Reads one setting's text, or says how it must be. */
type Parse<Value> = (text: string) => Value | { readonly problem: string };

const integer =
  (minimum: number, maximum: number): Parse<number> =>
  (text) => {
    const value = /^[0-9]{1,9}$/.test(text) ? Number(text) : Number.NaN;
    return value >= minimum && value <= maximum
      ? value
      : { problem: `must be an integer from ${minimum} to ${maximum}` };
  };

const url: Parse<string> = (text) =>
  checkSourceUrl(text) === null && !/[?#]/.test(text)
    ? text.replace(/\/+$/, "")
    : { problem: "must be an http or https URL, such as https://holdfast.example" };

const networks: Parse<readonly string[]> = (text) => {
  const entries = text.split(",").map((entry) => entry.trim());
  const wrong = entries.find((entry) => parseNetwork(entry) === null);
  return wrong === undefined
    ? entries
    : { problem: `must be CIDRs such as 10.0.0.0/8, with commas between; ${wrong} is none` };
};

const text: Parse<string> = (given) => given;
const RATE = integer(1, 100_000_000);

const SETTINGS = {
  DATA: text,
  HOST: text,
  PORT: integer(0, 65_535),
  BASE_URL: url,
  DOCS_URL: url,
  ALLOW_NETWORKS: networks,
  FETCH_SECONDS: integer(1, 60),
  TRUST_PROXY: networks,
  RATE_READ: RATE,
  RATE_WRITE: RATE,
  RATE_BENCH: RATE,
} satisfies Record<string, Parse<unknown>>;

type Values = {
  [Name in keyof typeof SETTINGS]?: Exclude<ReturnType<(typeof SETTINGS)[Name]>, { problem: string }>;
};

/**
 * The configuration from flags and environment; flags win, an empty value is as if unset. An unknown `HOLDFAST_…` variable or
 * a bad value is refused by its name.
 */
export function readConfig(flags: Given, environment: Given = process.env): Config | Refusal {
  const values: Record<string, unknown> = {};
  const prefix = "HOLDFAST_";
  const variables = Object.entries(environment).filter(([name]) => name.startsWith(prefix));
  for (const [name, given] of [
    ...variables,
    ...Object.entries(flags).map(([flag, to]) => [prefix + flag, to] as const),
  ]) {
    const setting = name.slice(prefix.length);
    if (!Object.hasOwn(SETTINGS, setting)) {
      return refuseField(
        name,
        `is not a setting; known are ${Object.keys(SETTINGS)
          .map((known) => prefix + known)
          .join(", ")}`,
      );
    }
    if (given === undefined || given === "") continue;
    const value = SETTINGS[setting as keyof typeof SETTINGS](given);
    if (typeof value === "object" && "problem" in value) return refuseField(name, value.problem);
    values[setting] = value;
  }
  return configOf(values as Values);
}

const configOf = (values: Values): Config => ({
  data: values.DATA ?? "./data",
  host: values.HOST ?? "127.0.0.1",
  port: values.PORT ?? 8080,
  baseUrl: values.BASE_URL ?? null,
  docsUrl: values.DOCS_URL ?? null,
  allowNetworks: values.ALLOW_NETWORKS ?? [],
  fetchSeconds: values.FETCH_SECONDS ?? 10,
  trustProxy: (values.TRUST_PROXY ?? []).map(parseNetwork).filter((network) => network !== null),
  rateLimits: {
    read: values.RATE_READ ?? 600,
    write: values.RATE_WRITE ?? 60,
    bench: values.RATE_BENCH ?? 30,
  },
});

/** What holds where nothing is set. */
export const DEFAULTS: Config = configOf({});
