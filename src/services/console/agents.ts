import type { Agent } from "../../core/agent.ts";
import type { ApiKey } from "../../core/api-key.ts";
import { didKeyOf } from "../../core/did-key.ts";
import { didOfAgent } from "../../core/did-web.ts";
import { isRefusal, type Refusal, refuse } from "../../core/errors.ts";
import { isId } from "../../core/ids.ts";
import type { Policy } from "../../core/policy.ts";
import { ACCESS, type PersonCaller, refuseAccess } from "../../core/roles.ts";
import type { SpendSession } from "../../core/session.ts";
import { heldBetween } from "../../core/session-limits.ts";
import { DAY_MS, HOUR_MS } from "../../core/time.ts";
import type { State, Warrant } from "../../core/warrant.ts";
import type { Cursor, Reader } from "../../store/reader.ts";
import { findAgent } from "../admin/agents.ts";
import { findKey } from "../admin/keys.ts";
import type { Context } from "../context.ts";
import { PAGE_SIZE, type PageAsked, type RowsOfPage, readPage } from "./paging.ts";

/** What people see of agents, their keys and their spend sessions. */

/** A spend session with what is used of it. */
export type Budget = {
  readonly session: SpendSession;
  /** How it ended; null while it is live. */
  readonly end: "revoked" | "expired" | null;
  /** What was held within the last hour and day; null where the session does not limit that. */
  readonly hourUsed: bigint | null;
  readonly dayUsed: bigint | null;
};

export type CountsByState = Readonly<Partial<Record<State, number>>>;

/** An agent in a list. */
export type ListedAgent = {
  readonly agent: Agent;
  /** Its newest session, live or ended; null where it never had one. */
  readonly budget: Budget | null;
  readonly counts: CountsByState;
};

export type AgentsAsked = PageAsked & {
  readonly status: Agent["status"] | null;
  /** An id, or a part of a name; empty for all. */
  readonly search: string;
};

export type AgentsPage = RowsOfPage<ListedAgent> & {
  /** The agent after which a search goes on, where it looked at as many as one page may; else null. */
  readonly searchedTo: string | null;
};

/** A search reads agents this many at a time, and no more than the second number for a page: no index has names or statuses. */
const STEP = 250;
const SEARCHED_MAX = 1_000;
/** How many warrants, keys and sessions the page of an agent names. */
const NAMED_MAX = 5;
/** How many warrants are summed up for a confirmation, so that it does not wait for all of a hundred thousand. */
const SUMMED_MAX = 10_000;

async function budgetOf(
  reader: Reader,
  session: SpendSession | undefined | null,
  now: number,
): Promise<Budget | null> {
  if (!session) return null;
  // A hold is decided by a clock that never jumps; a picture goes by the one on the wall.
  const at = Math.max(now, session.heldAt ?? 0);
  const usedSince = async (max: bigint | null, since: number) =>
    max === null ? null : heldBetween(await reader.agents.heldUntil(session.id, since), session.amountHeld);
  return {
    session,
    end: session.revokedAt !== null ? "revoked" : session.expiresAt <= now ? "expired" : null,
    hourUsed: await usedSince(session.hourlyMax, at - HOUR_MS),
    dayUsed: await usedSince(session.dailyMax, at - DAY_MS),
  };
}

async function listedOf(reader: Reader, agent: Agent, now: number): Promise<ListedAgent> {
  const [newest] = await reader.agents.sessions(agent.id, {}, 1);
  return {
    agent,
    budget: await budgetOf(reader, newest, now),
    counts: await reader.agents.countsByState(agent),
  };
}

/** A page of agents, newest first. */
export async function listAgentsForPeople(
  ctx: Context,
  caller: PersonCaller,
  asked: AgentsAsked,
): Promise<AgentsPage | Refusal> {
  const refused = refuseAccess(caller, ACCESS.readConsole);
  if (refused) return refused;
  return ctx.store.read(async (reader) => {
    const { rows, ...page } = await findAgents(reader, caller, asked);
    const now = ctx.now();
    return { ...page, rows: await Promise.all(rows.map((agent) => listedOf(reader, agent, now))) };
  });
}

type FoundAgents = RowsOfPage<Agent> & { readonly searchedTo: string | null };

async function findAgents(reader: Reader, caller: PersonCaller, asked: AgentsAsked): Promise<FoundAgents> {
  const { search, status } = asked;
  if (isId("agent", search)) {
    const found = await findAgent(reader, caller, search);
    return { rows: isRefusal(found) ? [] : [found], hasNewer: false, hasOlder: false, searchedTo: null };
  }
  if (search !== "" || status !== null) return searchAgents(reader, caller, asked);
  const read = (cursor: Cursor, limit: number) => reader.agents.page(caller, cursor, limit);
  return { ...(await readPage(asked, read)), searchedTo: null };
}

/** The newest agents with this status whose name contains the text, of as many as one page may look at. */
async function searchAgents(
  reader: Reader,
  caller: PersonCaller,
  { search, status, olderThan }: AgentsAsked,
): Promise<FoundAgents> {
  const wanted = search.toLowerCase();
  const rows: Agent[] = [];
  let last = olderThan;
  for (let looked = 0; looked < SEARCHED_MAX; looked += STEP) {
    const found = await reader.agents.page(caller, last === null ? {} : { olderThan: last }, STEP);
    for (const agent of found) {
      if (rows.length === PAGE_SIZE) break;
      const isOne = status === null || agent.status === status;
      if (isOne && agent.name.toLowerCase().includes(wanted)) rows.push(agent);
      last = agent.id;
    }
    if (rows.length === PAGE_SIZE) break;
    if (found.length < STEP) return { rows, hasNewer: false, hasOlder: false, searchedTo: null };
  }
  return { rows, hasNewer: false, hasOlder: true, searchedTo: last };
}

/** Everything that a person sees of one agent. */
export type AgentDetail = ListedAgent & {
  readonly identity: string;
  /** Null where the rules that are built in decide. */
  readonly policy: Policy | null;
  /** The newest warrants that name it. */
  readonly warrants: readonly Warrant[];
  /** Its newest keys, and whether these are all; null for whoever may not see them. */
  readonly keys: { readonly newest: readonly ApiKey[]; readonly isAll: boolean } | null;
};

export async function readAgentDetail(
  ctx: Context,
  caller: PersonCaller,
  id: string,
): Promise<AgentDetail | Refusal> {
  const refused = refuseAccess(caller, ACCESS.readConsole);
  if (refused) return refused;
  const maySeeKeys = refuseAccess(caller, ACCESS.administer) === null;
  return ctx.store.read(async (reader) => {
    const agent = await findAgent(reader, caller, id);
    if (isRefusal(agent)) return agent;
    const { agents, policies, warrants, apiKeys } = reader;
    return {
      ...(await listedOf(reader, agent, ctx.now())),
      identity: didKeyOf(agent.identity) ?? didOfAgent(ctx.baseUrl, agent.id),
      policy: (await agents.ownPolicy(agent.id)) ?? (await policies.ofOrganisation(agent.organisationId)),
      warrants: await warrants.byCreation(caller, { agentId: agent.id }, {}, NAMED_MAX),
      keys: maySeeKeys ? newestOf(await apiKeys.ofAgent(agent.id, {}, NAMED_MAX + 1)) : null,
    };
  });
}

/** @param found the newest keys, at most one more than are named, so that it is known whether these are all */
const newestOf = (found: readonly ApiKey[]) => ({
  newest: found.slice(0, NAMED_MAX),
  isAll: found.length <= NAMED_MAX,
});

/** A page of an agent's keys, those that have ended among them, newest first. */
export async function listKeysOfAgent(ctx: Context, caller: PersonCaller, id: string, asked: PageAsked) {
  const refused = refuseAccess(caller, ACCESS.administer);
  if (refused) return refused;
  return ctx.store.read(async (reader) => {
    const agent = await findAgent(reader, caller, id);
    if (isRefusal(agent)) return agent;
    const page = await readPage(asked, (cursor, limit) => reader.apiKeys.ofAgent(agent.id, cursor, limit));
    return { agent, page };
  });
}

/** A key with its agent. */
export async function readKey(ctx: Context, caller: PersonCaller, id: string) {
  const refused = refuseAccess(caller, ACCESS.administer);
  if (refused) return refused;
  return ctx.store.read(async (reader) => {
    const key = await findKey(reader, caller, id);
    if (isRefusal(key)) return key;
    const agent = await findAgent(reader, caller, key.agentId);
    return isRefusal(agent) ? agent : { agent, key };
  });
}

/** A page of an agent's sessions, newest first. */
export async function listSessionsOfAgent(ctx: Context, caller: PersonCaller, id: string, asked: PageAsked) {
  const refused = refuseAccess(caller, ACCESS.readConsole);
  if (refused) return refused;
  return ctx.store.read(async (reader) => {
    const agent = await findAgent(reader, caller, id);
    if (isRefusal(agent)) return agent;
    const { rows, ...page } = await readPage(asked, (cursor, limit) =>
      reader.agents.sessions(agent.id, cursor, limit),
    );
    const budgets = await Promise.all(rows.map((session) => budgetOf(reader, session, ctx.now())));
    return { agent, page: { ...page, rows: budgets.filter((one) => one !== null) } };
  });
}

/** A session with what is used of it, and its agent. */
export async function readSession(ctx: Context, caller: PersonCaller, id: string) {
  const refused = refuseAccess(caller, ACCESS.readConsole);
  if (refused) return refused;
  const notFound = refuse("session_not_found", `There is no spend session ${id}.`);
  return ctx.store.read(async (reader) => {
    const budget = await budgetOf(reader, await reader.agents.session(id), ctx.now());
    const agent = budget && (await findAgent(reader, caller, budget.session.agentId));
    return !budget || !agent || isRefusal(agent) ? notFound : { agent, budget };
  });
}

/** An agent with its newest session. */
export async function readAgent(ctx: Context, caller: PersonCaller, id: string) {
  const refused = refuseAccess(caller, ACCESS.readConsole);
  if (refused) return refused;
  return ctx.store.read(async (reader) => {
    const agent = await findAgent(reader, caller, id);
    return isRefusal(agent) ? agent : listedOf(reader, agent, ctx.now());
  });
}

/** How many warrants, and how much they hold of each asset. */
export type Sums = {
  readonly count: number;
  readonly amounts: readonly { readonly asset: string; readonly amount: bigint }[];
  /** Whether these are all; else there are more, and they hold more. */
  readonly isAll: boolean;
};

export const STATUS_CHANGES = ["pause", "activate", "kill"] as const;
export type StatusChange = (typeof STATUS_CHANGES)[number];

/** What a change of an agent's status would move. */
export type Consequences = {
  readonly agent: Agent;
  /** What a kill freezes, or what is held again when it is active. */
  readonly moving: Sums;
  /** What stays as it is: held or frozen through a pause; frozen though it is active, since the deadline has passed. */
  readonly staying: Sums;
  /** Some of those that move, the soonest deadline first. */
  readonly some: readonly Warrant[];
};

export async function readConsequences(
  ctx: Context,
  caller: PersonCaller,
  id: string,
  change: StatusChange,
): Promise<Consequences | Refusal> {
  const refused = refuseAccess(caller, change === "pause" ? ACCESS.pauseAgent : ACCESS.administer);
  if (refused) return refused;
  return ctx.store.read(async (reader) => {
    const agent = await findAgent(reader, caller, id);
    if (isRefusal(agent)) return agent;
    const state = change === "kill" || (change === "pause" && agent.status !== "killed") ? "held" : "frozen";
    const all = await reader.warrants.sumsOfAgent(agent.id, state, BEFORE_ALL, SUMMED_MAX);
    if (change === "pause") return { agent, moving: sumsOf([]), staying: sumsOf(all), some: [] };
    const since = change === "activate" ? ctx.now() : BEFORE_ALL;
    const moving =
      since === BEFORE_ALL ? all : await reader.warrants.sumsOfAgent(agent.id, state, since, SUMMED_MAX);
    return {
      agent,
      moving: sumsOf(moving),
      staying: sumsOf(without(all, moving)),
      some: await reader.warrants.ofAgent(agent.id, state, since, NAMED_MAX),
    };
  });
}

/** Every deadline is later. */
const BEFORE_ALL = -1;

type SumsOfAssets = Awaited<ReturnType<Reader["warrants"]["sumsOfAgent"]>>;

function sumsOf(sums: SumsOfAssets): Sums {
  const count = sums.reduce((sum, one) => sum + one.count, 0);
  return { count, amounts: sums, isAll: count < SUMMED_MAX };
}

const without = (all: SumsOfAssets, some: SumsOfAssets): SumsOfAssets =>
  all
    .map(({ asset, count, amount }) => {
      const taken = some.find((one) => one.asset === asset);
      return { asset, count: count - (taken?.count ?? 0), amount: amount - (taken?.amount ?? 0n) };
    })
    .filter(({ count }) => count > 0);
