import { afterAll, expect, test } from "bun:test";
import { createOperator } from "../support/operator.ts";

const { ctx, cli, setUp, printed, refused } = createOperator();
afterAll(() => ctx.close());

type Id = { readonly id: string };

test("organisations are listed and shown with their switches", async () => {
  const { organisation } = await setUp();
  await cli.json("kill-switch", "on", "--organisation", organisation);
  const shown = await cli.json("organisations", "show", organisation);
  expect([shown.id, shown.kill_switch, shown.passkey_threshold]).toEqual([organisation, true, null]);
  const { data } = await cli.json("organisations", "list");
  expect((data as Id[]).find(({ id }) => id === organisation)).toEqual(shown as Id);
  for (const args of [["list"], ["show", organisation]]) {
    const text = await printed("organisations", ...args);
    for (const part of [organisation, "on", "off"]) expect(text).toContain(part);
  }
  await refused(["organisations", "show", "org_unknown"], "organisation_not_found");
});
