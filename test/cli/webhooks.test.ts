import { afterAll, beforeAll, expect, test } from "bun:test";
import type { WebhookRequest } from "../../src/platform/webhook-sender.ts";
import { runDeliveries } from "../../src/services/webhooks/deliver.ts";
import { type CommandLine, createCommandLine } from "../support/command-line.ts";
import { createTestContext, TEST_NOW, type TestContext } from "../support/context.ts";
import { rowCounts } from "../support/rows.ts";
import { createCaller, createStage, must, open, type Stage } from "../support/stage.ts";

/** `holdfast webhooks …`: with --json one object, without it a few lines for people. Only `create` shows a secret. */

let ctx: TestContext;
let cli: CommandLine;
let stage: Stage;
let code = 200;
const sent: WebhookRequest[] = [];
beforeAll(async () => {
  ctx = createTestContext({
    async sendWebhook(request) {
      sent.push(request);
      return {
        code: code === 0 ? null : code,
        responseStart: code === 0 ? "source_timeout" : "",
        durationMs: 12,
      };
    },
  });
  cli = createCommandLine(ctx);
  stage = await createStage(ctx, { mode: "sandbox" });
});
afterAll(() => ctx.close());

const NOW = new Date(TEST_NOW).toISOString();
const whose = () => ["--organisation", stage.organisationId, "--mode", "sandbox"];
const create = (...more: readonly string[]) =>
  cli.json("webhooks", "create", ...whose(), "--url", "https://shop.example/hook", ...more);
const human = async (...args: readonly string[]): Promise<string> => {
  const ran = await cli.run("webhooks", ...args);
  expect([ran.code, ran.err]).toEqual([0, ""]);
  return ran.out;
};
const run = () =>
  runDeliveries(ctx, (error) => {
    throw error;
  });

test("create, list, disable", async () => {
  const { secret, ...webhook } = await create("--events", "warrant.released, warrant.refunded");
  expect(webhook).toEqual({
    id: expect.stringMatching(/^whk_/),
    url: "https://shop.example/hook",
    events: ["warrant.released", "warrant.refunded"],
    disabled: false,
    created_at: NOW,
  });
  expect(secret).toMatch(/^whsec_/);
  const created = await human("create", ...whose(), "--url", "https://shop.example/all");
  for (const text of ["Created a sandbox webhook endpoint.", "whsec_", "shown once", "all"])
    expect(created).toContain(text);

  const listed = await cli.json("webhooks", "list", ...whose());
  expect(listed).toMatchObject({
    object: "list",
    data: [webhook, { url: "https://shop.example/all", events: [] }],
  });
  const disabled = await cli.json("webhooks", "disable", String(webhook.id));
  expect(disabled).toEqual({ ...webhook, disabled: true });
  expect(await human("disable", String(webhook.id))).toContain("The webhook endpoint is disabled.");
  const list = await human("list", ...whose());
  for (const text of [
    "disabled",
    "active",
    "https://shop.example/hook",
    "warrant.released, warrant.refunded",
  ])
    expect(list).toContain(text);
  expect(await human("list", "--organisation", stage.organisationId, "--mode", "live")).toContain(
    "no endpoint yet, live",
  );
  expect(JSON.stringify(listed) + list).not.toContain("whsec_");
});

test("send-example, deliveries, redeliver, recover", async () => {
  const id = String((await create()).id);
  expect(await human("deliveries", id)).toContain("Nothing was sent to it yet.");
  const example = await cli.json("webhooks", "send-example", id);
  expect(example).toMatchObject({
    webhook_id: id,
    event: "warrant.released",
    status: "pending",
    warrant_id: null,
  });
  expect(await human("send-example", id)).toContain("The example is on its way.");
  await run();
  expect(JSON.parse(sent[0]!.body).example).toBe(true);

  const key = await createCaller(stage);
  ctx.clock.now += 1;
  must(await open(stage, key));
  code = 0;
  for (const wait of [0, 1_000, 5_000, 25_000]) {
    ctx.clock.now += wait;
    await run();
  }
  code = 200;
  const [delivery] = (await cli.json("webhooks", "deliveries", id)).data as Record<string, unknown>[];
  expect([delivery!.event_id, delivery!.warrant_id].map((each) => String(each).slice(0, 4))).toEqual([
    "evt_",
    "wrt_",
  ]);
  expect(delivery).toMatchObject({
    event: "warrant.opened",
    status: "exhausted",
    attempts: 4,
    response_code: null,
    response_start: "source_timeout",
    duration_ms: 12,
  });
  const log = await human("deliveries", id);
  for (const text of ["exhausted", "source_timeout", "delivered", "200"]) expect(log).toContain(text);

  expect(await cli.json("webhooks", "recover", id, "--since", NOW)).toEqual({
    object: "webhook_recovery",
    webhook_id: id,
    since: NOW,
    deliveries: 1,
  });
  expect(await human("recover", id, "--since", NOW)).toContain("Nothing was missed since");
  const again = await cli.json("webhooks", "redeliver", String(delivery!.id));
  expect(again).toMatchObject({ event_id: delivery!.event_id, status: "pending", attempts: 0 });
  expect(await human("redeliver", String(delivery!.id))).toContain("The event is on its way again.");
  sent.length = 0;
  await run();
  const toIt = sent.filter(({ body }) => JSON.parse(body).id === delivery!.event_id);
  expect(toIt.filter(({ url }) => url === "https://shop.example/hook")).toHaveLength(3);
});

test.each([
  [["create", "--mode", "live"], "validation_failed", "required option '--organisation <id>' not specified"],
  [["disable", "whk_none"], "webhook_not_found", "There is no webhook endpoint whk_none."],
  [["deliveries", "whk_none"], "webhook_not_found", ""],
  [["send-example", "whk_none"], "webhook_not_found", ""],
  [["recover", "whk_none", "--since", "2026-01-01"], "validation_failed", "since: "],
  [["recover", "whk_none"], "validation_failed", "required option '--since <time>' not specified"],
  [["redeliver", "whd_none"], "delivery_not_found", "There is no delivery whd_none."],
  [["list", "--organisation", "org_none", "--mode", "live"], "organisation_not_found", ""],
])("%p is refused, and nothing is written", async (args, refusal, start) => {
  const before = rowCounts(ctx.folder);
  const ran = await cli.run("webhooks", ...args, "--json");
  expect([ran.code, ran.out]).toEqual([1, ""]);
  const { error } = JSON.parse(ran.err);
  expect([error.code, error.message.slice(0, start.length)]).toEqual([refusal, start]);
  expect(rowCounts(ctx.folder)).toEqual(before);
});
