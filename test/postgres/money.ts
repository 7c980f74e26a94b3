/** Statements of money and of solvency on a ledger that several transactions, and instances with other clocks, write at once. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import type { SQL } from "bun";
import { MINUTE_MS } from "../../src/core/time.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { fundBalance } from "../../src/services/admin/balances.ts";
import { statementOf } from "../../src/services/admin/statements.ts";
import { auditNewestStatements } from "../../src/services/solvency/audit.ts";
import { proveSolvency } from "../../src/services/solvency/prove.ts";
import { signStatement } from "../../src/services/solvency/sign.ts";
import { type Postgres, startPostgres } from "../support/postgres-server.ts";
import { createStage, must, type Stage } from "../support/stage.ts";
import { until } from "../support/until.ts";
import { createConnections } from "./connections.ts";
import { type Instance, lockOutside, openInstance, waitingForLocks } from "./store-context.ts";

setDefaultTimeout(120_000);

let postgres: Postgres;
let one: Instance;
let other: Instance;
let sql: SQL;
/** An organisation that is used at the first instance, and one that is used at the other. */
let first: Stage;
let second: Stage;
const { closing, connectTo, closeAll } = createConnections(() => postgres.port);

beforeAll(async () => {
  postgres = await startPostgres();
  const url = await postgres.createDatabase();
  [one, other] = [await openInstance(url), await openInstance(url)];
  closing.push(one.close, other.close);
  sql = connectTo(url, { max: 4 });
  [first, second] = [
    await createStage(one.ctx, { funds: "10" }),
    await createStage(other.ctx, { funds: "20" }),
  ];
});
afterAll(async () => {
  await closeAll();
  await postgres.close();
});

const scopeOf = ({ organisationId, mode }: Stage) => ({ organisation_id: organisationId, mode });
const fund = async (of: Stage, amount: string) =>
  must(await fundBalance(of.ctx, MACHINE, { ...scopeOf(of), amount }));

/** Signs while an organisation's deposit is not committed, and another one's, which began later, is. Answers whether it has the later position. */
async function signBetween(): Promise<boolean> {
  const letGo = await lockOutside(
    sql,
    `SELECT 1 FROM accounts JOIN scopes ON scopes.position = scope WHERE organisation_id = '${first.organisationId}' FOR UPDATE OF accounts`,
  );
  const held = fund(first, "3");
  await until("it has its positions, and waits for the lock", async () => (await waitingForLocks(sql)) > 0);
  await fund(second, "4");
  const signing = signStatement(other.ctx);
  // As long as it takes where nobody is waited for.
  await Promise.race([signing, Bun.sleep(500)]);
  await letGo();
  await held;
  must(await signing);
  const [newest] = await sql`SELECT organisation_id FROM postings JOIN accounts ON accounts.position = account
    JOIN scopes ON scopes.position = scope ORDER BY postings.position DESC LIMIT 1`;
  return newest.organisation_id === second.organisationId;
}

test("a statement of solvency is of one moment: what began before is waited for, and counts", async () => {
  // On a busy machine the first one waits too long for the lock, and takes new positions.
  for (let isBetween = false; !isBetween; ) {
    isBetween = await signBetween();
    expect(await auditNewestStatements(other.ctx)).toEqual([]);
    for (const stage of [first, second]) must(await proveSolvency(other.ctx, MACHINE, scopeOf(stage)));
  }
});

test("the edges of a period are right where another instance's clock is ahead", async () => {
  const edge = other.ctx.now() + MINUTE_MS;
  one.ctx.clock.now = edge + MINUTE_MS;
  const linesOf = async (of: Stage, period: { from?: string; to?: string }): Promise<number> => {
    let lines = 0;
    const pages = must(await statementOf(of.ctx, MACHINE, { ...scopeOf(of), ...period }));
    for await (const page of pages) lines += page.length;
    return lines;
  };
  const before = [await linesOf(first, {}), await linesOf(second, {})] as const;
  for (let round = 0; round < 5; round++) {
    await fund(first, "1");
    await fund(second, "1");
  }
  const at = new Date(edge).toISOString();
  expect([await linesOf(first, { to: at }), await linesOf(first, { from: at })]).toEqual([before[0], 5]);
  expect([await linesOf(second, { to: at }), await linesOf(second, { from: at })]).toEqual([
    before[1] + 5,
    0,
  ]);
});
