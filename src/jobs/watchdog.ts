import type { AuditOutcome } from "../core/operation.ts";

/** Audits the ledger again and again. */
export type Watchdog = {
  /** Makes one audit. Rejects where it could not be made; the outcome before it then stays. */
  run(): Promise<AuditOutcome>;
  /** The outcome of the last audit that ended. */
  outcome(): AuditOutcome | null;
};

/**
 * @param audit answers every disagreement in the ledger, one message each
 * @param onDisagreements is called after every audit that found any
 */
export function createWatchdog(
  audit: () => Promise<readonly string[]>,
  onDisagreements: (messages: readonly string[]) => void,
  now: () => number,
): Watchdog {
  let outcome: AuditOutcome | null = null;
  return {
    async run() {
      const startedAt = performance.now();
      const messages = await audit();
      outcome = {
        disagreements: messages.length,
        endedAt: now(),
        durationMs: performance.now() - startedAt,
      };
      if (messages.length > 0) onDisagreements(messages);
      return outcome;
    },
    outcome: () => outcome,
  };
}
