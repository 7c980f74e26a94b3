import { afterAll, beforeEach, expect, test } from "bun:test";
import { createOperator } from "../support/operator.ts";

const { ctx, cli, setUp, printed, refused } = createOperator();
afterAll(() => ctx.close());

let organisation: string;
let whose: readonly string[];
beforeEach(async () => {
  ({ organisation } = await setUp());
  whose = ["--organisation", organisation];
});

test("specs are hidden on receipts, and shown again", async () => {
  expect((await cli.json("organisations", "show", organisation)).receipt_specs).toBe("shown");
  expect((await cli.json("receipt-specs", "hidden", ...whose)).receipt_specs).toBe("hidden");
  expect(await printed("receipt-specs", "hidden", ...whose)).toContain(
    "Receipts of Acme show the hashes of its specs.",
  );
  expect(await printed("organisations", "show", organisation)).toMatch(/specs on receipts +hidden/);
  expect(await printed("receipt-specs", "shown", ...whose)).toContain("Receipts of Acme show its specs.");
  expect((await cli.json("organisations", "show", organisation)).receipt_specs).toBe("shown");
});

test("it is refused for another state, and without an organisation", async () => {
  await refused(["receipt-specs", "maybe", ...whose], "validation_failed", "command-argument value 'maybe'");
  await refused(["receipt-specs", "hidden"], "validation_failed", "required option '--organisation <id>'");
  await refused(["receipt-specs", "hidden", "--organisation", "org_none"], "organisation_not_found");
});
