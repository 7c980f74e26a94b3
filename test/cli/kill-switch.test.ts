import { afterAll, beforeEach, expect, test } from "bun:test";
import { TEST_NOW } from "../support/context.ts";
import { createOperator } from "../support/operator.ts";

const { ctx, cli, setUp, printed, refused } = createOperator();
afterAll(() => ctx.close());

const NOW = new Date(TEST_NOW).toISOString();

let organisation: string;
let whose: readonly string[];
beforeEach(async () => {
  ({ organisation } = await setUp());
  whose = ["--organisation", organisation];
});

test("the kill switch is on, and off again", async () => {
  const on = await cli.json("kill-switch", "on", ...whose);
  expect(on).toEqual({
    id: organisation,
    object: "organisation",
    name: "Acme",
    kill_switch: true,
    passkey_threshold: null,
    receipt_specs: "shown",
    second_factor: false,
    messaging_decisions: false,
    created_at: NOW,
  });
  expect(await printed("kill-switch", "on", ...whose)).toContain("Acme opens no new warrants");
  expect(await printed("kill-switch", "off", ...whose)).toContain("Acme opens warrants.");
  expect((await cli.json("kill-switch", "off", ...whose)).kill_switch).toBeFalse();
});

test("it is refused without a state, for another state, and without an organisation", async () => {
  await refused(["kill-switch", "maybe", ...whose], "validation_failed", "command-argument value 'maybe'");
  await refused(["kill-switch", ...whose], "validation_failed", "missing required argument 'state'");
  await refused(["kill-switch", "on"], "validation_failed", "required option '--organisation <id>'");
  await refused(["kill-switch", "on", "--organisation", "org_none"], "organisation_not_found");
});
