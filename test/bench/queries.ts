import { STATES } from "../../src/core/warrant.ts";
import { METRICS_TOKEN } from "./holdfast.ts";
import type { Facts } from "./parties.ts";

/** A server on a filled folder, and what its queries name. */
export type Place = {
  readonly url: string;
  readonly facts: Facts;
  /** The cookie of a signed-in person. */
  readonly cookie: string;
  /** The warrant in the middle of the organisation's list by creation. */
  readonly middle: string;
  /** A settled warrant. */
  readonly settled: string;
  /** The newest entry of the audit log. */
  readonly auditEntry: string;
};

/** A read over HTTP. All reads of a group share one line of the table. */
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

/** The fields that continue a list, by its sort. */
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
const FILTERS = [null, ...AGENTS].flatMap((agent) => [null, ...STATES].map((state) => ({ state, agent })));

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

const consoleList = (name: string): Query => ({
  group: "read-backs of the console",
  name,
  pathOf: () => `/v1/console/${name}`,
  headersOf: asPerson,
  paged: false,
});

const auditLog = (page: string, rest: (place: Place) => string): Query => ({
  ...consoleList(`audit-log, ${page}`),
  pathOf: (place) => `/v1/console/audit-log?${rest(place)}`,
  paged: true,
});

const one = (group: string, pathOf: Query["pathOf"], headersOf: Query["headersOf"]): Query => ({
  ...{ group, name: group, pathOf, headersOf },
  paged: false,
});

export const QUERIES: readonly Query[] = [
  ...warrantLists,
  ...["verifiers", "agents", "policies", "keys", "users", "escalations", "webhooks"].map(consoleList),
  auditLog("first page", () => ""),
  auditLog("after a cursor", ({ auditEntry }) => `starting_after=${auditEntry}`),
  one("one warrant, one request at a time", ({ middle }) => `/v1/warrants/${middle}`, asKey),
  one("a trace", ({ settled }) => `/v1/warrants/${settled}/trace`, asKey),
  one(
    "a receipt",
    ({ settled }) => `/t/${settled}`,
    () => ({}),
  ),
  one("counts: the metrics", () => "/metrics", asMonitor),
];
