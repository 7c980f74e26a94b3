/**
 * `bun by-hand.ts URL CONNECTIONS SECONDS`: opens of warrants as a program would make them that was written for PostgreSQL by hand: each in
 * a transaction of its own, which locks the balance, checks it, and writes with six statements. It prints how many there were in a
 * second, and the microseconds of its own processor time for each.
 */
import { randomBytes, randomUUID } from "node:crypto";
import { SQL } from "bun";
import { opening } from "./opening.ts";

const [url = "", connections = "1", seconds = "1"] = process.argv.slice(2);
const sql = new SQL(url, { max: Number(connections), bigint: true });
const [account] = await sql`SELECT position, scope FROM accounts ORDER BY position LIMIT 1`;
const spec = JSON.stringify(opening(Date.now()).spec);
const hash = randomBytes(32);

/** Positions above all that Holdfast gives. */
let next = 10n ** 15n + BigInt(process.pid) * 10n ** 10n;

async function open(): Promise<void> {
  const at = BigInt(Date.now());
  const id = `wrt_${randomUUID()}`;
  await sql.begin(async (tx) => {
    const [balance] =
      await tx`SELECT available FROM accounts WHERE position = ${account.position} FOR NO KEY UPDATE`;
    if (balance.available < 100n) throw new Error("the balance is used up");
    // The postings of an account are in the order of its commits.
    const [warrant, entry, posting, key] = [next++, next++, next++, next++];
    await tx`INSERT INTO warrants (position, id, scope, account, state, version, amount, payee, spec, spec_hash, rules_hash, trace_head, deadline, opened_at)
      VALUES (${warrant}, ${id}, ${account.scope}, ${account.position}, 'held', 1, 100, 'acct_seller_1', ${spec}, ${hash}, ${hash}, ${hash}, ${at + 3_600_000n}, ${at})`;
    await tx`INSERT INTO trace (position, warrant, sequence, to_state, actor_kind, recorded_at, encoding, entry_hash)
      VALUES (${entry}, ${warrant}, 0, 'held', 'system', ${at}, 1, ${hash})`;
    await tx`INSERT INTO postings (position, account, kind, rail, cause, available, held, paid, funding, recorded_at)
      VALUES (${posting}, ${account.position}, 'hold', 'sandbox_book', ${warrant}, -100, 100, 0, 0, ${at})`;
    await tx`UPDATE accounts SET available = available - 100, held = held + 100, posted = ${posting} WHERE position = ${account.position}`;
    await tx`INSERT INTO idempotency_keys (position, scope, key, fingerprint, status, body, created_at)
      VALUES (${key}, ${account.scope}, ${id}, ${hash}, 201, '{}', ${at})`;
    await tx`INSERT INTO warrant_counts (scope, agent, state, count, rowid) VALUES (${account.scope}, 0, 'held', 1, ${warrant})
      ON CONFLICT (scope, agent, state) DO UPDATE SET count = warrant_counts.count + 1`;
  });
}

async function openFor(milliseconds: number): Promise<number> {
  let opened = 0;
  const until = performance.now() + milliseconds;
  const one = async () => {
    while (performance.now() < until) {
      await open();
      opened += 1;
    }
  };
  await Promise.all(Array.from({ length: Number(connections) }, one));
  return opened;
}

// The connections are made, and their statements prepared.
await openFor(500);
const before = process.cpuUsage();
const startedAt = performance.now();
const opened = await openFor(Number(seconds) * 1_000);
const elapsed = (performance.now() - startedAt) / 1_000;
const { user, system } = process.cpuUsage(before);
console.log(JSON.stringify({ rate: opened / elapsed, processor: (user + system) / opened }));
process.exit(0);
