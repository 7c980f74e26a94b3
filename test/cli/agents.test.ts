import { afterAll, beforeEach, expect, test } from "bun:test";
import { createOperator, idOf, type SetUp } from "../support/operator.ts";

const { ctx, cli, setUp, printed, refused } = createOperator();
afterAll(() => ctx.close());

const DID_KEY = "did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK";

let made: SetUp;
beforeEach(async () => {
  made = await setUp();
});

test("create with a key of their own", async () => {
  const create = ["agents", "create", ...made.account(), "--name", "own", "--did-key"];
  const created = await cli.json(...create, DID_KEY);
  expect(created.identity).toBe(DID_KEY);
  expect(await printed("agents", "show", idOf(created))).toContain(DID_KEY);
  await refused([...create, `${DID_KEY}x`], "validation_failed", "did_key: must be the did:key:z… of");
});

test("list and show, in the read-back shape", async () => {
  const { agent, account } = made;
  await cli.json("sessions", "create", "--agent", agent, "--ceiling", "8400000");
  const shown = await cli.json("agents", "show", agent);
  expect(shown).toMatchObject({
    id: agent,
    object: "agent",
    session: { amount_ceiling: "8400000", amount_spent: "0" },
    warrants: { total: 0, by_state: {} },
  });
  expect(await cli.json("agents", "list", ...account())).toEqual({ object: "list", data: [shown] });
  expect(await cli.json("agents", "list", ...account("live"))).toEqual({ object: "list", data: [] });

  const list = await printed("agents", "list", ...account());
  for (const text of ["id ", "failures", agent, "buyer", "active", "0 of 3", "0.00 USDC of 8.40 USDC"])
    expect(list).toContain(text);
  const show = await printed("agents", "show", agent);
  for (const text of ["The agent buyer is active.", "0.00 USDC of 8.40 USDC", "did:web:"])
    expect(show).toContain(text);
  expect(await printed("agents", "list", ...account("live"))).toBe("No agents yet, live.\n");
});

test("are refused where they do not exist", async () => {
  await refused(["agents", "show", "agt_none"], "agent_not_found", "There is no agent agt_none");
  await refused(["agents", "list", "--organisation", "org_none", "--mode", "live"], "organisation_not_found");
  await refused(
    ["agents", "list", "--organisation", made.organisation],
    "validation_failed",
    "required option",
  );
});
