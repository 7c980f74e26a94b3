import type { Mode } from "../../src/core/roles.ts";
import { until } from "../support/until.ts";
import {
  type Acknowledged,
  type Answer,
  isFinal,
  type Knowledge,
  type KnownWarrant,
  PAY,
  type Sent,
} from "./knowledge.ts";
import type { Market } from "./market.ts";
import { DELIVERABLES } from "./outside.ts";
import type { Agent, Credentials, Parties } from "./parties.ts";
import type { Random } from "./random.ts";

/** The requests of a mixed load, and how they are sent. */

const WORKERS = 16;
/** Beyond so many unsettled warrants, the load moves warrants instead of opening more. */
const UNSETTLED_MAX = 120;
const PAYEES = 5;
const SHORT_DEADLINE_MS = 800;
const LONG_DEADLINE_MS = 3_600_000;
/** How long a job may take to end a purchase that was cut off. */
const RECOVERED_MS = 30_000;
/** How long others wait at most for an instance that is dead, and for the job that recovers what it was at. */
const TAKEN_OVER_MS = 120_000;

/** Refusals that a mixed load gets without any fault. */
const EXPECTED = new Set([
  // Two workers chose the same warrant, or its deadline came first: before this request met it, or after.
  "illegal_transition",
  "version_conflict",
  // A short deadline, and a request that waited for the server.
  "deadline_in_past",
  // The escalation became a dispute meanwhile, which the operator may not decide.
  "insufficient_role",
]);
/** No place, evaluator or lock was free in time, on a busy machine. What was begun goes on: it is asked for again by the same key. */
export const BUSY = "rate_limit_exceeded";
/** Others have taken over what a server was at that was away for too long. What came of it is asked for by the same key. */
const TAKEN_OVER = "idempotency_in_flight";
/** While the clock is wrong, whatever ends by the time may have ended. */
const EXPECTED_OF_A_JUMP = new Set(["not_authenticated", "session_expired"]);
/** The second of two requests with one key at the same time gets this too. */
const EXPECTED_OF_TWINS = new Set([TAKEN_OVER, "idempotency_conflict"]);

const codeOf = ({ status, text }: Answer): string | null =>
  status >= 400 ? (JSON.parse(text).error.code as string) : null;

/** Throws where this load may not get such an answer. */
export function checkAnswer(sent: Sent, answer: Answer, { isTwin = false, hasJumped = false } = {}): void {
  const code = codeOf(answer);
  if (code === null || EXPECTED.has(code) || (isTwin && EXPECTED_OF_TWINS.has(code))) return;
  if (hasJumped && EXPECTED_OF_A_JUMP.has(code)) return;
  throw new Error(`${sent.path} with the key ${sent.key} answered ${answer.status}: ${answer.text}`);
}

/**
 * Each request has a connection of its own: of several servers each gets some, and no server ends one because nothing came for long, in
 * the moment in which something does.
 */
export const UNSHARED = { keepalive: false } as const;

/** Sends a request. Rejects where the answer does not come whole. */
export async function send(url: string, { key, path, body, as }: Sent): Promise<Answer> {
  const response = await fetch(url + path, {
    ...UNSHARED,
    method: "POST",
    headers: { ...as, "content-type": "application/json", "idempotency-key": key },
    body,
  });
  const text = await response.text();
  const replayed = response.headers.get("idempotent-replayed") === "true";
  return { status: response.status, text, replayed };
}

export type Load = {
  /** Resolves when every worker has stopped. */
  readonly done: Promise<void>;
  readonly acknowledged: Acknowledged[];
  readonly refused: Answer[];
  /** Requests that were sent and not answered. Whether they were done is not known. */
  readonly unanswered: Sent[];
  /** From now on the server's clock is wrong. */
  jumped(): void;
  /** From now on a cut connection, or an answer that says nothing, is expected. */
  breaks(): void;
  /** The same, and no new request is sent. */
  stop(): void;
};

/** What a load is made of. */
export type Outside = {
  readonly random: Random;
  readonly urlOf: (deliverable: string) => string;
  readonly market: Market;
  /** Whom the treasury's wallet pays, and others whose names look like it; none where there is no treasury. */
  readonly payees: readonly string[];
  /** The right time, epoch milliseconds. */
  readonly now: () => number;
};

export function startLoad(url: string, parties: Parties, knowledge: Knowledge, outside: Outside): Load {
  const { random } = outside;
  const load: Omit<Load, "done" | "jumped" | "breaks" | "stop"> = {
    acknowledged: [],
    refused: [],
    unanswered: [],
  };
  let stopping = false;
  let breaking = false;
  let hasJumped = false;

  async function exchange(sent: Sent, isTwin = false): Promise<void> {
    const answer = await send(url, sent).catch((error: unknown) => {
      if (!breaking) throw error;
    });
    // Where a database is lost, a server cannot say what became of a request. Its own faults are in its log.
    const isUnknown = (answered: Answer) =>
      answered.status >= 500 || (codeOf(answered) === TAKEN_OVER && !isTwin);
    if (answer === undefined || (breaking && isUnknown(answer)) || codeOf(answer) === BUSY) {
      load.unanswered.push(sent);
      return;
    }
    checkAnswer(sent, answer, { isTwin, hasJumped });
    if (answer.status >= 400) {
      load.refused.push(answer);
      return;
    }
    knowledge.acknowledge({ sent, answer });
    load.acknowledged.push({ sent, answer });
  }

  async function read(warrant: KnownWarrant): Promise<void> {
    const body = await readWarrant(url, warrant).catch((error: unknown) => {
      if (!breaking) throw error;
    });
    if (body) knowledge.learn(body);
  }

  /** Warrants that a worker is moving. Sometimes another worker moves the same one. */
  const moved = new Set<string>();

  async function move(warrant: KnownWarrant): Promise<void> {
    const sent = moving(warrant, parties, outside);
    moved.add(warrant.id);
    await Promise.all(random.chance(0.05) ? [exchange(sent, true), exchange(sent, true)] : [exchange(sent)]);
    moved.delete(warrant.id);
  }

  async function work(): Promise<void> {
    while (!stopping) {
      const unsettled = [...knowledge.warrants.values()].filter(
        (warrant) => warrant.mayMove && !isFinal(warrant),
      );
      const warrant = unsettled[random.below(unsettled.length)];
      if (random.chance(0.1)) {
        await exchange(buying(parties, outside));
      } else if (!warrant || random.chance(unsettled.length > UNSETTLED_MAX ? 0.05 : 0.4)) {
        await exchange(opening(parties, outside));
      } else if (random.chance(0.2)) {
        await read(warrant);
      } else if (!moved.has(warrant.id) || random.chance(0.1)) {
        await move(warrant);
      }
    }
  }

  const done = Promise.all(Array.from({ length: WORKERS }, work)).then(() => {});
  return {
    ...load,
    done,
    jumped: () => {
      hasJumped = true;
    },
    breaks: () => {
      breaking = true;
    },
    stop: () => {
      breaking = true;
      stopping = true;
    },
  };
}

type Again = {
  /** A server may be killed again meanwhile. */
  readonly mayFail: boolean;
  readonly count: (what: string) => void;
  /** Other instances take over what a dead one was at, once they take it for dead. */
  readonly isTakenOver?: boolean;
};

/**
 * Sends again what was not answered, and removes from the set what is answered now. A key must be free or have its answer: the
 * crash must leave none in flight.
 */
export async function sendAgain(
  url: string,
  again: Set<Sent>,
  { acknowledged, refused }: Load,
  knowledge: Knowledge,
  { mayFail, count, isTakenOver = false }: Again,
): Promise<void> {
  await Promise.all(
    [...again].map(async (sent) => {
      const answer = await answerAtLast(url, sent, isTakenOver).catch((error: unknown) => {
        if (!mayFail) throw error;
      });
      if (answer === undefined || (mayFail && answer.status >= 500)) return;
      checkAnswer(sent, answer);
      again.delete(sent);
      if (answer.status >= 400) {
        refused.push(answer);
        count("sent again, refused");
        return;
      }
      knowledge.acknowledge({ sent, answer });
      acknowledged.push({ sent, answer });
      count(answer.replayed ? "sent again, replayed" : "sent again, done");
    }),
  );
}

/** The answer of a key. That of a purchase which was cut off comes when recovery has ended it. */
export async function answerAtLast(url: string, sent: Sent, isTakenOver = false): Promise<Answer> {
  const later = sent.path === PAY || isTakenOver ? [BUSY, TAKEN_OVER] : [BUSY];
  let answer = await send(url, sent);
  const comesLater = () => later.includes(codeOf(answer) ?? "");
  await until(
    `the request of ${sent.key} has ended`,
    async () => {
      if (comesLater()) answer = await send(url, sent);
      return !comesLater();
    },
    isTakenOver ? TAKEN_OVER_MS : RECOVERED_MS,
  );
  return answer;
}

export async function readWarrant(url: string, { id, as }: KnownWarrant) {
  const response = await fetch(`${url}/v1/warrants/${id}`, { ...UNSHARED, headers: as });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${id} reads back as ${response.status}: ${text}`);
  return JSON.parse(text);
}

export const freshKey = (): string => crypto.randomUUID();
const CLAUSES = [0, 1, 2, 3].map((index) => ({ kind: "json.jsonpath", path: `$.c${index}` }));

const ofMode = (agents: Parties["agents"], mode: Mode): Agent =>
  agents.find((agent) => agent.mode === mode) ?? agents[0];

function buying({ agents }: Parties, { random, market }: Outside): Sent {
  // The sandbox has a wallet: most purchases are paid on the chain.
  const { mode, as, agentId } = random.chance(0.7) ? ofMode(agents, "sandbox") : random.pick(agents);
  return {
    key: freshKey(),
    path: PAY,
    as,
    body: JSON.stringify({
      url: market.randomUrl(mode),
      max_amount: market.price,
      spec: { clauses: CLAUSES },
      ...(agentId !== null && { agent_id: agentId }),
    }),
    opens: { mode, as, mayMove: false },
  };
}

/** @param payee to whom it opens a warrant of the sandbox; left out, any agent opens one to anybody */
export function opening(
  { agents }: Parties,
  { random, payees, now }: Outside,
  {
    payee = null as string | null,
    deadlineMs = random.chance(0.1) ? 1 + random.below(SHORT_DEADLINE_MS) : LONG_DEADLINE_MS,
    mayMove = true,
  } = {},
): Sent {
  // The sandbox has a treasury: it gets more of them.
  const isOfSandbox = payee !== null || random.chance(0.3);
  const { mode, as, agentId } = isOfSandbox ? ofMode(agents, "sandbox") : random.pick(agents);
  const isOnChain = random.chance(mode === "sandbox" ? 0.8 : 0.4);
  const onChain = isOnChain ? payees[random.below(payees.length)] : undefined;
  return {
    key: freshKey(),
    path: "/v1/warrants",
    as,
    body: JSON.stringify({
      amount: String(10_000 + random.below(1_000_000)),
      payee: payee ?? onChain ?? `seller ${1 + random.below(PAYEES)}`,
      deadline: new Date(now() + deadlineMs).toISOString(),
      spec: { clauses: CLAUSES },
      ...(agentId !== null && { agent_id: agentId }),
    }),
    opens: { mode, as, mayMove },
  };
}

/** A move that fits the last known state of a warrant: a check, or a person's decision. */
function moving(warrant: KnownWarrant, { people }: Parties, { random, urlOf }: Outside): Sent {
  const sent = (path: string, body: object, as: Credentials): Sent => ({
    key: freshKey(),
    path,
    body: JSON.stringify(body),
    as,
    opens: null,
  });
  const path = `/v1/warrants/${warrant.id}`;
  const { operator, admin } = people[warrant.mode];
  if (warrant.state === "escalated" || warrant.state === "disputed") {
    const decision = random.pick(["release", "partial_release", "refund", "dispute"]);
    const isDisputed = warrant.state === "disputed";
    return sent(
      `/v1/console/escalations/${warrant.id}/resolve`,
      {
        decision: isDisputed && decision === "dispute" ? "refund" : decision,
        ...(decision === "partial_release" && { released_bps: 1 + random.below(9_999) }),
      },
      isDisputed ? admin : operator,
    );
  }
  if (random.chance(0.3)) {
    const [action, body] = random.pick<readonly [string, object]>([
      ["release", {}],
      ["partial", { released_bps: 5_000 }],
      ["refund", {}],
    ]);
    return sent(`${path}/${action}`, body, operator);
  }
  return sent(`${path}/verify`, { source_url: urlOf(random.pick(DELIVERABLES)) }, warrant.as);
}
