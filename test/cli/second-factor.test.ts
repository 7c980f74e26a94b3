import { afterAll, beforeEach, expect, test } from "bun:test";
import { createOperator } from "../support/operator.ts";

const { ctx, cli, setUp, printed, refused } = createOperator();
afterAll(() => ctx.close());

let organisation: string;
beforeEach(async () => {
  ({ organisation } = await setUp());
});
const turn = (state: string) => ["second-factor", state, "--organisation", organisation];

test("the second factor is turned on and off", async () => {
  expect((await cli.json(...turn("on"))).second_factor).toBeTrue();
  expect(await printed(...turn("on"))).toMatch(
    /asks operators, admins and owners for a passkey[\s\S]*second factor +on/,
  );
  expect((await cli.json("organisations", "show", organisation)).second_factor).toBeTrue();
  expect(await printed("organisations", "list")).toContain("second factor");
  expect(await printed(...turn("off"))).toContain("lets people in by the password alone");
  expect((await cli.json("organisations", "show", organisation)).second_factor).toBeFalse();
});

test("it is refused with another state, without an organisation, and for an unknown one", async () => {
  await refused(turn("maybe"), "validation_failed", "command-argument value 'maybe'");
  await refused(["second-factor", "on"], "validation_failed", "required option '--organisation <id>'");
  await refused(["second-factor", "on", "--organisation", "org_none"], "organisation_not_found");
});
