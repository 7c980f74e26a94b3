import { afterAll, beforeAll, expect, test } from "bun:test";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { createWebhook } from "../../src/services/admin/webhooks.ts";
import { anchor } from "../../src/services/log/anchor.ts";
import { type Fields, openConsole } from "../support/console.ts";
import { must, type TestOrganisation } from "../support/organisations.ts";
import { type Receiver, startReceiver } from "../support/receiver.ts";
import { type Service, startTestServer } from "../support/server.ts";
import { type Source, startSource } from "../support/source.ts";

/** A payout fires no event, and changes neither the trace nor the receipt of a warrant (docs/money, "Payouts"). */

const PAYOUTS = "/console/money/payouts";
const SPEC = { clauses: [{ kind: "json.jsonpath", path: "$.done", equals: true }] };

let service: Service;
let source: Source;
let receiver: Receiver;
let home: TestOrganisation;
beforeAll(async () => {
  [source, receiver, service] = [startSource(), startReceiver(), await startTestServer()];
  home = await service.organisation();
  const endpoint = { organisation_id: home.id, mode: "live", url: receiver.url(), events: [] } as const;
  must(await createWebhook(service.ctx, MACHINE, endpoint));
});
afterAll(async () => {
  await service?.close();
  receiver?.stop();
  source?.stop();
});

/** A warrant that a check released, or a person released in part. */
async function paid(payee: string, how: "verify" | "partial"): Promise<string> {
  const { id } = await service.opened(home, { payee, amount: "1000", spec: SPEC });
  const body = how === "verify" ? { source_url: source.gives({ done: true }) } : { released_bps: 2_500 };
  const as = how === "verify" ? home.live.as : home.people.operator.as;
  expect((await service.post(`/v1/warrants/${id}/${how}`, body, { as })).status).toBe(200);
  return id;
}

/** Everything that is said of a warrant, as it is sent. */
async function saidOf(id: string): Promise<readonly string[]> {
  const [as, agent] = [home.people.viewer.as, home.live.as];
  const answers = await Promise.all([
    ...[`/t/${id}`, `/v1/warrants/${id}`, `/v1/warrants/${id}/trace`, `/v1/warrants/${id}/checks`].map(
      (path) => service.get(path, { as }),
    ),
    service.get(`/v1/warrants/${id}/trace`, { as: agent }),
    service.get("/v1/warrants", { as: agent }),
  ]);
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
  return answers.map(({ text }) => text);
}

test("a payout that is submitted, paid, failed or returned leaves what is said of paid warrants as it is, byte for byte, and sends nothing", async () => {
  const warrants = [await paid("acme", "verify"), await paid("acme", "partial"), await paid("b", "verify")];
  // A receipt proves its entry from the first checkpoint on that has it.
  must(await anchor(service.ctx));
  // Each was opened, two were checked, and each was settled.
  const before = [...(await receiver.whenReceived(8))];
  const said = () => Promise.all(warrants.map(saidOf));
  const first = await said();
  const browser = openConsole(service, home.people.admin.as);

  async function does(action: string, query: Fields, fields: Fields): Promise<void> {
    const form = await browser.formOn(`${action}?${new URLSearchParams(query)}`, action);
    const { status, to } = await browser.post(action, { ...form, ...fields });
    expect([status, to]).toEqual([303, expect.stringContaining("done=")]);
    expect(await said()).toEqual(first);
  }
  const payoutOf = (payee: string): string =>
    service.ctx.reader.payouts
      .list({ organisationId: home.id, mode: "live" }, "submitted", null, 10)
      .find((payout) => payout.payee === payee)?.id ?? "";
  await does(`${PAYOUTS}/submit`, {}, {});
  const [acme, b] = [payoutOf("acme"), payoutOf("b")];
  await does(`${PAYOUTS}/end`, { payout: acme, as: "paid" }, { reference: "wire 1" });
  await does(`${PAYOUTS}/end`, { payout: b, as: "failed" }, { reason: "no such account" });
  await does(`${PAYOUTS}/end`, { payout: acme, as: "returned" }, { reason: "closed" });
  await does(`${PAYOUTS}/submit`, { payee: "acme", asset: "USDC" }, { payee: "acme" });

  // What comes next is of the next warrant, so nothing was sent between.
  const next = await paid("acme", "partial");
  const after = (await receiver.whenReceived(before.length + 2)).slice(before.length);
  expect(after.map(({ body }) => body.data.warrant_id)).toEqual([next, next]);
  expect(service.allRows(home).webhook_deliveries).toHaveLength(before.length + 2);
});
