import { STATES } from "../../src/core/warrant.ts";
import { METRICS_TOKEN } from "./holdfast.ts";
import type { Facts } from "./parties.ts";

/** A server on a filled folder, and what its queries name. */
export type Place = {
  readonly url: string;
  readonly facts: Facts;
  /** Of a signed-in person. */
  readonly cookie: string;
  /** The warrant in the middle of the organisation's, by creation. */
  readonly middle: string;
  /** One that is settled. */
  readonly settled: string;
};

/** A read of the HTTP surface. Those of a group are one line of the table. */
export type Query = {
  readonly group: string;
  readonly name: string;
  readonly pathOf: (place: Place) => string;
  readonly headersOf: (place: Place) => Record<string, string>;
  /** Whether it takes a `limit`. */
  readonly paged: boolean;
};

const asKey = ({ facts }: Place) => ({ Authorization: `Bearer ${facts.secret}` });
const asPerson = ({ cookie }: Place) => ({ Cookie: cookie });
const asMonitor = () => ({ Authorization: `Bearer ${METRICS_TOKEN}` });

/** What a list is continued with, by its sort. */
const PAGES = {
  deadline: [
    { page: "first page", rest: () => "" },
    { page: "second page", rest: () => "&offset=25" },
  ],
  created: [
    { page: "first page", rest: () => "" },
    { page: "after a cursor", rest: ({ middle }: Place) => `&starting_after=${middle}` },
    { page: "before a cursor", rest: ({ middle }: Place) => `&ending_before=${middle}` },
  ],
} as const;
const SORTS = ["deadline", "created"] as const;
const AGENTS = ["busy", "early", "waiting", "killed", "idle"] as const;
/** With an agent: many, few and none, spread over the time and not. The others are like one of them. */
const STATES_OF_AGENTS = [null, "held", "released", "disputed", "frozen", "verifying"] as const;

const FILTERS = [
  ...[null, ...STATES].map((state) => ({ state, agent: null })),
  ...AGENTS.flatMap((agent) => STATES_OF_AGENTS.map((state) => ({ state, agent }))),
];

/** The lists of warrants: each sort, each filter, each way to continue. */
const warrantLists: readonly Query[] = SORTS.flatMap((sort) =>
  PAGES[sort].flatMap(({ page, rest }) =>
    FILTERS.map(({ state, agent }): Query => {
      const stated = state === null ? "" : `&state=${state}`;
      const named = agent === null ? "" : `&agent=${agent}`;
      return {
        group: `lists with sort=${sort}, ${page}`,
        name: `sort=${sort}${stated}${named}, ${page}`,
        pathOf: (place) => {
          const agentId = agent === null ? "" : `&agent_id=${place.facts.agents[agent]}`;
          return `/v1/warrants?sort=${sort}${stated}${agentId}${rest(place)}`;
        },
        headersOf: asKey,
        paged: true,
      };
    }),
  ),
);

const consoleList = (name: string, paged = false): Query => ({
  group: "read-backs of the console",
  name,
  pathOf: () => `/v1/console/${name}${paged ? "?" : ""}`,
  headersOf: asPerson,
  paged,
});

const one = (group: string, pathOf: Query["pathOf"], headersOf: Query["headersOf"]): Query => ({
  ...{ group, name: group, pathOf, headersOf },
  paged: false,
});

export const QUERIES: readonly Query[] = [
  ...warrantLists,
  ...["verifiers", "agents", "policies", "keys", "users", "escalations", "webhooks"].map((name) =>
    consoleList(name),
  ),
  consoleList("audit-log", true),
  one("one warrant, one request at a time", ({ middle }) => `/v1/warrants/${middle}`, asKey),
  one("a trace", ({ settled }) => `/v1/warrants/${settled}/trace`, asKey),
  one(
    "a receipt",
    ({ settled }) => `/t/${settled}`,
    () => ({}),
  ),
  one("counts: the metrics", () => "/metrics", asMonitor),
];
