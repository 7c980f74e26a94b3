import { afterAll, beforeEach, expect, test } from "bun:test";
import { createOperator } from "../support/operator.ts";

const { ctx, cli, setUp, printed, refused } = createOperator();
afterAll(() => ctx.close());

let whose: readonly string[];
beforeEach(async () => {
  whose = ["--organisation", (await setUp()).organisation];
});
const amount = (text: string) => ["passkey-threshold", ...whose, "--amount", text];

test("the passkey threshold is an amount, or off", async () => {
  const set = await cli.json(...amount("9223372036854775807"));
  expect(set.passkey_threshold).toBe("9223372036854775807");
  expect(await printed(...amount("8400000"))).toContain("Above 8.40 USDC");
  expect((await cli.json(...amount("0"))).passkey_threshold).toBe("0");
  expect(await printed(...amount("off"))).toContain("asks for no passkey");
  expect((await cli.json(...amount("off"))).passkey_threshold).toBeNull();
});

test("it is refused where it is no amount", async () => {
  for (const text of ["-1", "1.5", "none", "9223372036854775808"])
    await refused(amount(text), "validation_failed", "amount: ");
  await refused(["passkey-threshold", ...whose], "validation_failed", "required option '--amount");
});
