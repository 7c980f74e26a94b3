import type { SqlDatabase } from "./database.ts";
import { lazily } from "./lazily.ts";

/** Finds the running total of a session at a time; 0 before its first hold. */
export const heldUntilIn = (raw: SqlDatabase) =>
  lazily(() => {
    const statement = raw.prepare<{ total: bigint }, [string, number]>(
      `SELECT total FROM session_totals
       WHERE session = (SELECT position FROM spend_sessions WHERE id = ?) AND held_at <= ?
       ORDER BY held_at DESC LIMIT 1`,
    );
    return (sessionId: string, at: number): bigint => statement.get(sessionId, at)?.total ?? 0n;
  });
