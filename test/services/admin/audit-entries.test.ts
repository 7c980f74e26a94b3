import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { AuditAction } from "../../../src/core/audit-entry.ts";
import { createAgent, setAgentStatus, showAgent, updateAgent } from "../../../src/services/admin/agents.ts";
import { MACHINE } from "../../../src/services/admin/authority.ts";
import { createKey, revokeKey, rotateKey } from "../../../src/services/admin/keys.ts";
import { createSession, revokeSession } from "../../../src/services/admin/sessions.ts";
import { setKillSwitch, setPasskeyThreshold, setReceiptSpecs } from "../../../src/services/admin/switches.ts";
import { createTestContext, TEST_NOW, type TestContext } from "../../support/context.ts";
import { createStage, must, type Stage } from "../../support/stage.ts";

/** What the audit log says of agents, keys, sessions and switches: who, what, before, after, when; never a secret. */

let ctx: TestContext;
let stage: Stage;
let agent_id: string;
beforeEach(async () => {
  ctx = createTestContext();
  stage = await createStage(ctx);
  agent_id = must(await createAgent(ctx, MACHINE, agentInput())).id;
});
afterEach(() => ctx.close());

const agentInput = () => ({ organisation_id: stage.organisationId, mode: "live" as const, name: "buyer" });
const NOW = new Date(TEST_NOW).toISOString();

/** The audit entries that a verb added, oldest first. */
async function entriesOf(verb: () => Promise<unknown>) {
  const { list } = ctx.reader.auditEntries;
  const known = new Set(list(stage.organisationId, null, 1_000).map(({ id }) => id));
  await verb();
  return list(stage.organisationId, null, 1_000)
    .filter(({ id }) => !known.has(id))
    .toReversed();
}

/** An audit entry of the stage's admin, as JSON: fields that are undefined are missing. */
const byAdmin = (action: AuditAction, subject: string, before: object | null, after: object | null) =>
  expect.objectContaining({
    id: expect.stringMatching(/^act_/),
    organisationId: stage.organisationId,
    actor: { kind: "user", id: stage.admin.userId },
    action,
    subject,
    before,
    after,
    recordedAt: TEST_NOW,
  });

const agentRecord = (id: string, rest: object = {}) => ({
  id,
  object: "agent",
  name: "buyer",
  did_key: null,
  status: "active",
  failure_budget: 3,
  failure_count: 0,
  created_at: NOW,
  mode: "live",
  must_be_named: false,
  ...rest,
});

describe("an audit entry in the commit of", () => {
  test("an agent created", async () => {
    let id = "";
    const entries = await entriesOf(async () => {
      const input = { ...agentInput(), must_be_named: true, failure_budget: 9 };
      ({ id } = must(await createAgent(ctx, stage.admin, input)));
    });
    const after = agentRecord(id, { must_be_named: true, failure_budget: 9 });
    expect(entries).toEqual([byAdmin("agent.created", id, null, after)]);
  });

  test("an agent's status, where it changes", async () => {
    const set = (status: "paused" | "active") => setAgentStatus(ctx, stage.admin, { agent_id, status });
    expect(await entriesOf(() => set("active"))).toEqual([]);
    expect(await entriesOf(() => set("paused"))).toEqual([
      byAdmin(
        "agent.status_changed",
        agent_id,
        agentRecord(agent_id),
        agentRecord(agent_id, { status: "paused" }),
      ),
    ]);
    expect(await entriesOf(() => set("paused"))).toEqual([]);
  });

  test("a key created, rotated and revoked, the last one once", async () => {
    const secrets: string[] = [];
    const keep = <Key extends { readonly secret: string }>({ secret, ...rest }: Key) => {
      secrets.push(secret);
      return rest;
    };
    let key = { id: "" };
    const created = await entriesOf(async () => {
      key = keep(must(await createKey(ctx, stage.admin, { agent_id })));
    });
    expect(created).toEqual([byAdmin("api_key.created", key.id, null, key)]);

    let newer = { id: "", replaces: {} };
    const rotated = await entriesOf(async () => {
      newer = keep(must(await rotateKey(ctx, stage.admin, { key_id: key.id })));
    });
    expect(rotated).toEqual([byAdmin("api_key.rotated", key.id, key, newer)]);

    let revoked = {};
    const revoke = async () => {
      revoked = must(await revokeKey(ctx, stage.admin, { key_id: newer.id }));
    };
    const { replaces: _, ...before } = newer;
    expect(await entriesOf(revoke)).toEqual([byAdmin("api_key.revoked", newer.id, before, revoked)]);
    expect(await entriesOf(revoke)).toEqual([]);

    const text = JSON.stringify([created, rotated]);
    for (const secret of secrets) expect(text).not.toContain(secret);
    expect(text).not.toMatch(/hf_live_|secret|hash/i);
  });

  test("an agent changed, with all that is set of it before and after", async () => {
    const { name, failure_budget, must_be_named } = must(await showAgent(ctx, MACHINE, { agent_id }));
    const before = agentRecord(agent_id, { name, failure_budget, must_be_named });
    const change = { agent_id, name: "renamed", failure_budget: 7, must_be_named: true };
    expect(await entriesOf(() => updateAgent(ctx, stage.admin, change).then(must))).toEqual([
      byAdmin("agent.changed", agent_id, before, {
        ...before,
        name: "renamed",
        failure_budget: 7,
        must_be_named: true,
      }),
    ]);
    // What is so already is not changed.
    expect(await entriesOf(() => updateAgent(ctx, stage.admin, change).then(must))).toEqual([]);
    must(await updateAgent(ctx, stage.admin, { agent_id, must_be_named: false }));
  });

  test("a spend session created, with the end of the one before, and revoked", async () => {
    const create = async (amount_ceiling: string) => {
      const { warning: _, ...session } = must(
        await createSession(ctx, stage.admin, { agent_id, amount_ceiling }),
      );
      return session;
    };
    let first = { id: "" };
    const begun = await entriesOf(async () => {
      first = await create("5");
    });
    expect(begun).toEqual([byAdmin("spend_session.created", first.id, null, first)]);

    let second = { id: "" };
    const replaced = await entriesOf(async () => {
      second = await create("6");
    });
    expect(replaced).toEqual([
      byAdmin("spend_session.revoked", first.id, first, { ...first, revoked_at: NOW }),
      byAdmin("spend_session.created", second.id, null, second),
    ]);

    const revoke = (session_id: string) => () => revokeSession(ctx, stage.admin, { session_id });
    expect(await entriesOf(revoke(second.id))).toEqual([
      byAdmin("spend_session.revoked", second.id, second, { ...second, revoked_at: NOW }),
    ]);
    for (const { id } of [first, second]) expect(await entriesOf(revoke(id))).toEqual([]);
    // A session that had expired before is not revoked.
    expect((await entriesOf(() => create("7"))).map(({ action }) => action)).toEqual([
      "spend_session.created",
    ]);
  });

  test("a switch, by the machine too", async () => {
    const organisation_id = stage.organisationId;
    const is = {
      id: organisation_id,
      object: "organisation",
      name: "Stage",
      kill_switch: false,
      passkey_threshold: null,
      receipt_specs: "shown",
      second_factor: false,
      messaging_decisions: false,
      created_at: NOW,
    };
    const on = { ...is, kill_switch: true };
    expect(await entriesOf(() => setKillSwitch(ctx, stage.admin, { organisation_id, on: true }))).toEqual([
      byAdmin("kill_switch.changed", organisation_id, is, on),
    ]);
    const amount = "9223372036854775807";
    const entries = await entriesOf(() => setPasskeyThreshold(ctx, MACHINE, { organisation_id, amount }));
    expect(entries).toMatchObject([
      {
        actor: { kind: "machine", id: null },
        action: "passkey_threshold.changed",
        before: on,
        after: { ...on, passkey_threshold: amount },
      },
    ]);
    const hide = () => setReceiptSpecs(ctx, stage.admin, { organisation_id, hidden: true });
    const set = { ...on, passkey_threshold: amount };
    expect(await entriesOf(hide)).toEqual([
      byAdmin("receipt_specs.changed", organisation_id, set, { ...set, receipt_specs: "hidden" }),
    ]);
    expect(await entriesOf(hide)).toEqual([]);
  });
});
