import { afterAll, beforeAll, expect, test } from "bun:test";
import type { StatementLine } from "../../../src/resources/statement.ts";
import { MACHINE } from "../../../src/services/admin/authority.ts";
import { fundBalance } from "../../../src/services/admin/balances.ts";
import { type StatementInput, statementOf } from "../../../src/services/admin/statements.ts";
import type { Reader } from "../../../src/store/reader.ts";
import { createTestContext, type TestContext } from "../../support/context.ts";
import { createStage, must, type Stage } from "../../support/stage.ts";

/** More than two pages of a statement. */
const DEPOSITS = 1_100;

let ctx: TestContext;
let stage: Stage;
/** When the second half of the deposits began. */
let half: string;

beforeAll(async () => {
  ctx = createTestContext();
  stage = await createStage(ctx, { funds: "0" });
  const fund = (amount: number) =>
    fundBalance(ctx, MACHINE, { ...scope(), amount: `${amount}` }).then((made) => must(made));
  const amounts = Array.from({ length: DEPOSITS }, (_, at) => at + 1);
  await Promise.all(amounts.slice(0, DEPOSITS / 2).map(fund));
  ctx.clock.now += 60_000;
  half = new Date(ctx.now()).toISOString();
  await Promise.all(amounts.slice(DEPOSITS / 2).map(fund));
});
afterAll(() => ctx.close());

const scope = () => ({ organisation_id: stage.organisationId, mode: stage.mode });
const sumTo = (amount: number): string => `${(amount * (amount + 1)) / 2}`;

/** The pages of a statement, and how often its balances were summed from before the period. */
async function pagesOf(period: Partial<StatementInput> = {}) {
  let sums = 0;
  const { read } = ctx.store;
  const counting = (reader: Reader): Reader =>
    new Proxy(reader, {
      get(of, name: keyof Reader) {
        if (name !== "statements") return of[name];
        return {
          since: (...asked) => of.statements.since(...asked),
          postings: (...step) => of.statements.postings(...step),
          sums(...step) {
            sums += 1;
            return of.statements.sums(...step);
          },
        } satisfies Reader["statements"];
      },
    });
  const store: TestContext["store"] = {
    ...ctx.store,
    read: (use) => read((reader) => use(counting(reader))),
  };
  const pages: (readonly StatementLine[])[] = [];
  for await (const page of must(await statementOf({ ...ctx, store }, MACHINE, { ...scope(), ...period })))
    pages.push(page);
  return { pages, sums };
}

test("a statement goes on from page to page, and from what was there before its period", async () => {
  const { pages } = await pagesOf();
  const lines = pages.flat();
  expect([pages.length > 2, lines.length]).toEqual([true, DEPOSITS]);
  lines.forEach((line, at) => {
    expect([line.available, line.available_after]).toEqual([`${at + 1}`, sumTo(at + 1)]);
  });
  const rest = (await pagesOf({ from: half })).pages.flat();
  expect(rest).toEqual(lines.slice(DEPOSITS / 2));
});

test("a period without postings sums nothing of what was before it", async () => {
  const after = new Date(ctx.now() + 1).toISOString();
  expect(await pagesOf({ from: after })).toEqual({ pages: [], sums: 0 });
  expect((await pagesOf({ from: half })).sums).toBeGreaterThan(0);
});

test("between its pages everybody else has a turn, however fast they are taken", async () => {
  let turns = 0;
  let goesOn = true;
  const turn = () => {
    turns += 1;
    if (goesOn) setImmediate(turn);
  };
  turn();
  const { pages } = await pagesOf();
  goesOn = false;
  expect(turns).toBeGreaterThanOrEqual(pages.length);
});
