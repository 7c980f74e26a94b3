import type { SQL } from "bun";
import { sha256 } from "../../core/canonical.ts";
import { UndoneFault } from "../../core/errors.ts";
import { SECOND_MS } from "../../core/time.ts";
import type { Instances } from "../instances.ts";
import { createClaims } from "./claims.ts";
import { Membership, type MembershipOptions, type Times } from "./membership.ts";
import { oneConnection } from "./one-connection.ts";

export type InstancesOptions = Pick<MembershipOptions, "newId" | "steadyNow" | "onStanding"> & {
  /** Makes a client of one connection. */
  readonly connect: () => SQL;
  readonly times?: Times;
};

const TIMES: Times = { everyMs: 5 * SECOND_MS, aheadMs: 20 * SECOND_MS, waitMs: 3 * SECOND_MS };

/** For work that cannot begin: the others might take it for left behind. */
const notBegun = (cause?: unknown): UndoneFault =>
  new UndoneFault("This instance does not reach the database, and nothing was done.", { cause });

/** The instances of a ledger on PostgreSQL: rows, renewed again and again, whose ends go by the database's clock. */
export function postgresInstances({ connect, times = TIMES, ...options }: InstancesOptions): Instances {
  const connection = oneConnection(connect, times.waitMs);
  const membership = new Membership({ ...options, connection, times }, () => claims);
  const claims = createClaims(connection, () => membership.me?.id ?? null, notBegun);
  return {
    alone: false,
    join: (settings) => membership.join(settings),
    isLost: () => membership.isLost(),
    lease(name) {
      membership.want(name);
      return { token: () => membership.tokenOf(name) };
    },
    async owning(id, work) {
      if (membership.isLost()) throw notBegun();
      // A command beside the servers is no instance. What it begins is recovered like that of a dead one.
      return membership.hasJoined ? claims.during(id, work) : work();
    },
    async owned(ids) {
      if (ids.length === 0) return new Set();
      const found: { id: string }[] = await connection.run(
        (sql) => sql`
          SELECT DISTINCT claims.id FROM claims JOIN instances_running AS owner ON owner.id = claims.instance
          WHERE claims.id = ANY(${sql.array([...ids], "TEXT")}::text[]) AND owner.seen_until > clock_timestamp()`,
      );
      return new Set([...found.map(({ id }) => id), ...ids.filter(claims.has)]);
    },
    isMine(id) {
      if (!membership.hasJoined) return true;
      const { me } = membership;
      return me !== null && !membership.isLost() && ownerAmong(me.live, id) === me.id;
    },
    async leave() {
      await membership.leave();
      await connection.close();
    },
  };
}

/** By rendezvous hashing: where an instance comes or goes, nothing changes hands but what was or becomes its own. */
function ownerAmong(live: readonly string[], id: string): string | null {
  let owner: string | null = null;
  let highest = "";
  for (const one of live) {
    const weight = sha256(`${one} ${id}`);
    if (weight > highest) [owner, highest] = [one, weight];
  }
  return owner;
}
