import { expect } from "bun:test";
import type { SpendSession } from "../../src/core/session.ts";
import type { Warrant } from "../../src/core/warrant.ts";
import { EVERY, type Simulated } from "./service.ts";

/** What a warrant takes from its session: its whole amount while it is held, then what it paid. */
const committedBy = ({ amount, settledAt, releasedBps }: Warrant): bigint =>
  settledAt === null ? amount : (amount * BigInt(releasedBps ?? 0)) / 10_000n;

/**
 * What must hold for every spend session at any time, computed from its warrants without the model (docs/sessions, "Spend sessions"):
 * `amount_spent` is what is held or paid under the session, and never above the ceiling. So what returned was given back once,
 * to the session that the warrant was opened under. `warrant_count` never falls, and never passes its limit. The returned
 * function reads the service and expects all this; it is called after every step.
 */
export function createSessionLaws({ ctx, organisationId, mode, model }: Simulated): () => void {
  const { reader } = ctx;
  const before = new Map<string, SpendSession>();
  return () => {
    const warrants = reader.warrants.byCreation({ organisationId, mode }, {}, {}, EVERY);
    for (const { id } of model.sessions) {
      const session = reader.agents.session(id);
      if (!session) throw new Error(`the session ${id} is gone`);
      const under = warrants.filter(({ sessionId }) => sessionId === id);
      const committed = under.reduce((sum, warrant) => sum + committedBy(warrant), 0n);
      expect(session.amountSpent).toBe(committed);
      expect(session.amountSpent <= session.amountCeiling).toBeTrue();
      expect(session.warrantCount).toBe(under.length);
      expect(session.warrantLimit ?? EVERY).toBeGreaterThanOrEqual(session.warrantCount);
      for (const warrant of under) expect(warrant.agentId).toBe(session.agentId);
      expectWithinLimits(session, under);
      const earlier = before.get(id);
      if (earlier) expectLaterThan(earlier, session);
      before.set(id, session);
    }
  };
}

/** Whatever returned since: no hour and no day before an open has more than its sum, and nobody else is paid. */
function expectWithinLimits(session: SpendSession, under: readonly Warrant[]): void {
  const windows = [
    [session.hourlyMax, 3_600_000],
    [session.dailyMax, 86_400_000],
  ] as const;
  for (const { openedAt, amount, payee } of under) {
    for (const [max, windowMs] of windows) {
      const within = under.filter((one) => one.openedAt <= openedAt && one.openedAt > openedAt - windowMs);
      expect(within.reduce((sum, one) => sum + one.amount, 0n) <= (max ?? 2n ** 64n)).toBeTrue();
    }
    expect(amount <= (session.perWarrantMax ?? amount)).toBeTrue();
    expect(session.payees?.some((entry) => payee.startsWith(entry.replace("*", ""))) ?? true).toBeTrue();
  }
}

function expectLaterThan(earlier: SpendSession, session: SpendSession): void {
  expect(session.warrantCount).toBeGreaterThanOrEqual(earlier.warrantCount);
  if (earlier.revokedAt === null) return;
  // A revoked session stays revoked, and nothing more is charged to it.
  expect([session.revokedAt, session.warrantCount]).toEqual([earlier.revokedAt, earlier.warrantCount]);
  expect(session.amountSpent <= earlier.amountSpent).toBeTrue();
}
