import { expect } from "bun:test";
import { type ErrorCode, isRefusal, type Refusal } from "../../src/core/errors.ts";
import type { TestContext } from "./context.ts";
import { rowCounts } from "./rows.ts";

/** The refusal that is expected: its code, and how its message starts. */
export type Expected = readonly [code: ErrorCode, start: string];

/** Runs a verb that must be refused, and must not have written a row. */
export async function expectRefused(
  ctx: TestContext,
  verb: () => Promise<unknown>,
  [code, start]: Expected,
): Promise<void> {
  const before = rowCounts(ctx.folder);
  const answer = await verb();
  expect(isRefusal(answer)).toBeTrue();
  const { refused, message } = answer as Refusal;
  expect([refused, message.slice(0, start.length)]).toEqual([code, start]);
  expect(rowCounts(ctx.folder)).toEqual(before);
}
