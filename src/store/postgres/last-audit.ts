import type { AuditOutcome } from "../../core/operation.ts";
import type { Sessions, Statement } from "./client.ts";

/** What the last audit of the ledger found, as a row that every instance reads. */
export type LastAudit = {
  /** Keeps the outcome of an audit that ends now. Its time is the database's. */
  keep(found: Omit<AuditOutcome, "endedAt">): Promise<void>;
  /** Null before the first one has ended. */
  read(): Promise<AuditOutcome | null>;
};

const KEEP = `
  INSERT INTO last_audit (disagreements, ended_at, duration_ms)
  VALUES ($1::int8, (extract(epoch FROM clock_timestamp()) * 1000)::int8, $2::int8)
  ON CONFLICT (one) DO UPDATE SET
    disagreements = excluded.disagreements, ended_at = excluded.ended_at, duration_ms = excluded.duration_ms`;
const READ = "SELECT disagreements, ended_at, duration_ms FROM last_audit WHERE one = $1::int8";

type Row = { readonly disagreements: bigint; readonly ended_at: bigint; readonly duration_ms: bigint };

export function lastAuditIn(sessions: Sessions): LastAudit {
  async function ask(statement: Statement) {
    const session = await sessions.reserve();
    try {
      const [answer] = await session.exchange([statement]);
      return answer as unknown as readonly Row[];
    } finally {
      session.release();
    }
  }
  return {
    async keep({ disagreements, durationMs }) {
      await ask({ text: KEEP, params: [BigInt(disagreements), BigInt(Math.round(durationMs))] });
    },
    async read() {
      const [row] = await ask({ text: READ, params: [1n] });
      if (!row) return null;
      const { disagreements, ended_at: endedAt, duration_ms: durationMs } = row;
      return {
        disagreements: Number(disagreements),
        endedAt: Number(endedAt),
        durationMs: Number(durationMs),
      };
    },
  };
}
