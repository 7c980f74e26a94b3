import type { AuditOutcome } from "../core/operation.ts";

/** Audits the books again and again, where that holds up nobody. */
export type Watchdog = {
  /** One audit; rejects where it could not be made, and the last outcome stands. */
  run(): Promise<AuditOutcome>;
  /** Of the last audit that ended. */
  outcome(): AuditOutcome | null;
};

/**
 * @param audit answers every disagreement in the books, one message each
 * @param onDisagreements hears of them, every time
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
