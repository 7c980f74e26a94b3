import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  AGENT_STATUSES,
  type Agent,
  type AgentStatus,
  agentAfter,
  isFreed,
  isStopped,
  sessionAfter,
  type Verdict,
  withStatus,
} from "../../src/core/agent.ts";
import type { SpendSession } from "../../src/core/session.ts";
import { UNLIMITED } from "../support/unlimited.ts";

const agent = (rest: Partial<Agent> = {}): Agent => ({
  id: "agt_1",
  organisationId: "org_1",
  mode: "sandbox",
  name: "buyer",
  identity: "did:holdfast:agt_1",
  status: "active",
  failureBudget: 3,
  failureCount: 0,
  mustBeNamed: false,
  createdAt: 0,
  ...rest,
});
const SESSION: SpendSession = {
  ...UNLIMITED,
  id: "ses_1",
  agentId: "agt_1",
  amountCeiling: 10n,
  amountSpent: 4n,
  amountHeld: 4n,
  heldAt: 0,
  warrantLimit: null,
  warrantCount: 1,
  failureBudget: 3,
  failureCount: 2,
  expiresAt: 1,
  revokedAt: null,
  createdAt: 0,
};
const VERDICTS: readonly Verdict[] = ["failed", "clean", "neither"];

test("an agent is active, paused or killed", () => {
  expect([...AGENT_STATUSES]).toEqual(["active", "paused", "killed"]);
});

describe("after a check or an expiry", () => {
  type Row = readonly [
    status: AgentStatus,
    count: number,
    verdict: Verdict,
    statusAfter: AgentStatus,
    countAfter: number,
  ];
  const TABLE: readonly Row[] = [
    ["active", 0, "failed", "active", 1],
    ["active", 1, "failed", "active", 2],
    ["active", 2, "failed", "paused", 3],
    ["active", 3, "failed", "paused", 4],
    ["active", 2, "clean", "active", 0],
    ["active", 2, "neither", "active", 2],
    // Nothing failed now: a person made it active although its count was full.
    ["active", 3, "neither", "active", 3],
    ["paused", 3, "clean", "paused", 0],
    ["paused", 3, "failed", "paused", 4],
    ["paused", 3, "neither", "paused", 3],
    ["killed", 2, "failed", "killed", 3],
    ["killed", 2, "clean", "killed", 0],
  ];
  for (const [status, failureCount, verdict, statusAfter, countAfter] of TABLE) {
    test(`${verdict}, an agent that is ${status} with ${failureCount} of 3 is ${statusAfter} with ${countAfter}`, () => {
      expect(agentAfter(agent({ status, failureCount }), verdict)).toEqual(
        agent({ status: statusAfter, failureCount: countAfter }),
      );
    });
  }

  for (const [verdict, failureCount] of [
    ["failed", 3],
    ["clean", 0],
    ["neither", 2],
  ] as const) {
    test(`${verdict}, a session with 2 failures has ${failureCount}`, () => {
      expect(sessionAfter(SESSION, verdict)).toEqual({ ...SESSION, failureCount });
    });
  }

  test("an agent is paused at the first run of failures that is as long as its budget", () => {
    const sequences = fc.array(fc.constantFrom(...VERDICTS), { maxLength: 30 });
    fc.assert(
      fc.property(sequences, fc.integer({ min: 1, max: 5 }), (verdicts, failureBudget) => {
        let current = agent({ failureBudget });
        let run = 0;
        let paused = false;
        for (const verdict of verdicts) {
          run = verdict === "failed" ? run + 1 : verdict === "clean" ? 0 : run;
          paused ||= run >= failureBudget;
          current = agentAfter(current, verdict);
          expect(current).toEqual(
            agent({ failureBudget, failureCount: run, status: paused ? "paused" : "active" }),
          );
        }
      }),
    );
  });
});

describe("a person's change of status", () => {
  for (const from of AGENT_STATUSES) {
    for (const to of AGENT_STATUSES) {
      const count = to === "active" ? 0 : 2;
      test(`from ${from} to ${to} leaves ${count} of 2 failures`, () => {
        expect(withStatus(agent({ status: from, failureCount: 2 }), to)).toEqual(
          agent({ status: to, failureCount: count }),
        );
      });
    }
  }
});

describe("the kill rule", () => {
  const withStatusOf = (status: AgentStatus | null) => status && agent({ status });
  const STATUSES = [null, ...AGENT_STATUSES];
  for (const named of STATUSES) {
    for (const opener of STATUSES) {
      const agents = { warrantAgent: withStatusOf(named), warrantOpener: withStatusOf(opener) };
      const both = [named, opener];
      test(`a warrant that names an agent (${named}), opened by a key of an agent (${opener})`, () => {
        expect(isStopped(agents)).toBe(both.includes("killed"));
        expect(isFreed(agents)).toBe(!both.includes("killed") && !both.includes("paused"));
      });
    }
  }
});
