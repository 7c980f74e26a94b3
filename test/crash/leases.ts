import assert from "node:assert/strict";
import { SQL } from "bun";

/** Who has the leases of jobs, as somebody sees it who looks all the time. */
export type LeaseWatch = {
  /** Looks again and again until it is ended. Until then the database may not answer. */
  follow(databaseUrl: () => string, ended: AbortSignal): Promise<void>;
  /** How often a lease was seen in other hands than before. */
  readonly handovers: () => number;
};

type Lease = {
  readonly name: string;
  readonly token: bigint;
  readonly instance: string;
  /** When it ends, and the time of the look, by the database's clock; epoch milliseconds. */
  readonly until: number;
  readonly now: number;
};

const LOOKED_AT_EVERY_MS = 100;

export function watchLeases(): LeaseWatch {
  const seen = new Map<string, Lease>();
  let handovers = 0;

  /** A token rises with each holder, and never falls: so each is one holder's. The next has it once that of the last has ended. */
  function learn(lease: Lease): void {
    const known = seen.get(lease.name);
    seen.set(lease.name, lease);
    if (!known) return;
    const what = `the lease ${lease.name} of ${lease.instance} with the token ${lease.token}, after that of ${known.instance} with ${known.token}`;
    assert.ok(lease.token >= known.token, what);
    if (lease.token === known.token) assert.equal(lease.instance, known.instance, what);
    if (lease.instance === known.instance) return;
    assert.ok(known.until <= lease.now, `${what}, which ended ${known.until - lease.now} ms later`);
    handovers += 1;
  }

  async function look(url: string): Promise<void> {
    const sql = new SQL(url, { max: 1, connectionTimeout: 1, bigint: true });
    try {
      const leases = await sql<Lease[]>`
        SELECT name, token, instance, (extract(epoch FROM until) * 1000)::float8 AS until,
          (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now
        FROM leases WHERE isfinite(until)`;
      // A commit of its own: once that is answered, the replica has what was seen, and no other can take the primary's place without it.
      await sql`SELECT pg_logical_emit_message(true, 'holdfast', 'looked')`;
      for (const lease of leases) learn(lease);
    } catch (error) {
      if (error instanceof assert.AssertionError) throw error;
    } finally {
      await sql.close({ timeout: 0 }).catch(() => {});
    }
  }

  return {
    async follow(databaseUrl, ended) {
      for (; !ended.aborted; await Bun.sleep(LOOKED_AT_EVERY_MS)) await look(databaseUrl());
    },
    handovers: () => handovers,
  };
}
