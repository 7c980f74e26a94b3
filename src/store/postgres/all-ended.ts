import { SECOND_MS } from "../../core/time.ts";
import { type Session, type Sessions, sqlStateOf } from "./client.ts";
import { arrayOf } from "./values.ts";

/** How long it is waited for one scope at most, and how many are looked at together. */
const WAIT_MS_MAX = 30 * SECOND_MS;
const SCOPES_MAX = 500n;

const NEXT = "SELECT position FROM scopes WHERE position > $1::int8 ORDER BY position LIMIT $2::int8";
const FREE = "SELECT position FROM scopes WHERE position = ANY($1::int8[]) FOR SHARE SKIP LOCKED";
const ONE = "SELECT position FROM scopes WHERE position = $1::int8 FOR SHARE";
const LOCK_NOT_AVAILABLE = "55P03";

/**
 * Resolves when every transaction of any process has ended that had written for an organisation, or was about to, at the call.
 *
 * Each locks its scopes before it takes positions, and keeps the locks until it ends (`locks.ts`). So whoever has had the lock of every
 * scope once has waited for all of them. A lock is given back at once, since each statement is a transaction of its own.
 */
export async function allEnded(sessions: Sessions): Promise<void> {
  const session = await sessions.reserve();
  try {
    for (let after = 0n; ; ) {
      const scopes = await positionsOf(session, NEXT, [after, SCOPES_MAX]);
      const last = scopes.at(-1);
      if (last === undefined) return;
      const free = new Set(await positionsOf(session, FREE, [arrayOf("int8", scopes)]));
      for (const scope of scopes) if (!free.has(scope)) await untilFree(session, scope);
      after = last;
    }
  } finally {
    session.release();
  }
}

async function positionsOf(
  session: Session,
  text: string,
  params: readonly unknown[],
): Promise<readonly bigint[]> {
  const [rows = []] = await session.exchange([{ text, params }]);
  return (rows as readonly { readonly position: bigint }[]).map(({ position }) => position);
}

/** The server gives up after 2 s, and is asked again. */
async function untilFree(session: Session, scope: bigint): Promise<void> {
  const until = performance.now() + WAIT_MS_MAX;
  for (;;)
    try {
      await positionsOf(session, ONE, [scope]);
      return;
    } catch (error) {
      if (sqlStateOf(error) !== LOCK_NOT_AVAILABLE || performance.now() > until) throw error;
    }
}
