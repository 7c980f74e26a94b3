import { afterAll, beforeEach, expect, test } from "bun:test";
import type { Json } from "../support/client.ts";
import { createOperator } from "../support/operator.ts";

const { ctx, cli, setUp, printed, refused } = createOperator();
afterAll(() => ctx.close());

let organisation: string;
beforeEach(async () => {
  ({ organisation } = await setUp());
});
const turn = (state: string) => ["messaging-decisions", state, "--organisation", organisation];

test("decisions in chats are allowed, and no more", async () => {
  const show = () => cli.json("organisations", "show", organisation);
  expect((await show()).messaging_decisions).toBeFalse();
  expect((await cli.json(...turn("on"))).messaging_decisions).toBeTrue();
  expect(await printed(...turn("on"))).toMatch(
    /People of Acme may decide escalations in their chats\.[\s\S]*decisions in chats +on/,
  );
  expect((await show()).messaging_decisions).toBeTrue();
  expect(await printed(...turn("off"))).toContain("decided at the console and by the API alone");
  expect(await printed("organisations", "show", organisation)).toMatch(/decisions in chats +off/);
  const { data } = (await cli.json("audit-log", "--organisation", organisation)) as Json;
  const turned = data.filter(({ action }: Json) => action === "messaging_decisions.changed");
  expect(turned.map(({ actor }: Json) => actor.kind)).toEqual(["machine", "machine"]);
});

test("it is refused with another state, without an organisation, and for an unknown one", async () => {
  await refused(turn("maybe"), "validation_failed", "command-argument value 'maybe'");
  await refused(["messaging-decisions", "on"], "validation_failed", "required option '--organisation <id>'");
  await refused(["messaging-decisions", "on", "--organisation", "org_none"], "organisation_not_found");
});
