import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { sha256 } from "../../src/core/canonical.ts";
import { createShell } from "../../src/http/shell.ts";
import type { WebhookRequest } from "../../src/platform/webhook-sender.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { createWebhook, disableWebhook, type NewWebhook } from "../../src/services/admin/webhooks.ts";
import { type Client, createClient } from "../support/client.ts";
import { must, type TestOrganisation } from "../support/organisations.ts";
import { type Refused, type ShellService, startTestShell } from "../support/server.ts";

/** `GET /v1/console/webhooks` and `POST /internal/jobs/webhooks`. No job runs by itself here. */

const SECRET = "worker-secret-of-a-test";
const PATH = "/internal/jobs/webhooks";
const LIMITS = { read: 1_000, write: 20, bench: 1_000 };

let service: ShellService;
let home: TestOrganisation;
/** The service, with the worker's secret configured, called from an address. */
let open: (address?: string) => Client;
const sent: WebhookRequest[] = [];
let code = 200;
beforeAll(async () => {
  service = startTestShell({
    rateLimits: LIMITS,
    async sendWebhook(request) {
      sent.push(request);
      return { code, responseStart: "a response", durationMs: 4 };
    },
  });
  home = await service.organisation();
  const docsUrl = "https://docs.example";
  const onFault = (error: unknown) => console.error(error);
  const secretHashes = { worker: sha256(SECRET), messaging: null };
  const options = { docsUrl, rateLimits: LIMITS, trustedProxies: [], onFault, secretHashes };
  const shell = createShell(service.ctx, options);
  open = (address = "192.0.2.9") =>
    createClient((request) => shell(request, () => address), service.url, docsUrl);
});
afterAll(() => service?.close());

const endpoint = (
  organisation = home,
  input: { mode?: "live" | "sandbox"; events?: string[] } = {},
): Promise<NewWebhook> =>
  createWebhook(service.ctx, MACHINE, {
    organisation_id: organisation.id,
    mode: "live",
    url: "https://hook.example/in",
    ...input,
  }).then(must);
const nextWindow = (): void => {
  service.clock.now += 60_000;
};
const WORKER = { "X-Service-Worker": SECRET };

describe("GET /v1/console/webhooks", () => {
  const read = (as = home.people.admin.as) => service.get("/v1/console/webhooks", { as });

  test("lists endpoints and deliveries with exactly these fields", async () => {
    const own = await service.organisation();
    const { secret, ...webhook } = await endpoint(own, { events: ["warrant.opened"] });
    const { secret: other, ...disabled } = await endpoint(own);
    must(await disableWebhook(service.ctx, MACHINE, { webhook_id: disabled.id }));
    await endpoint(own, { mode: "sandbox" });
    await service.opened(own);
    const { status, body, text } = await read(own.people.admin.as);
    expect(status).toBe(200);
    expect(body).toEqual({
      object: "list",
      data: [webhook, { ...disabled, disabled: true }],
      deliveries: [
        {
          id: expect.stringMatching(/^whd_/),
          webhook_id: webhook.id,
          event: "warrant.opened",
          status: "pending",
          attempts: 0,
          response_code: null,
          next_attempt_at: new Date(service.clock.now).toISOString(),
          created_at: new Date(service.clock.now).toISOString(),
        },
      ],
    });
    for (const hidden of [secret, other, "whsec_", "secret"]) expect(text).not.toContain(hidden);
    await open().post(PATH, undefined, { headers: WORKER, key: null });
    expect((await read(own.people.owner.as)).body.deliveries).toMatchObject([
      { status: "delivered", attempts: 1, response_code: 200, next_attempt_at: null },
    ]);
    const sandbox = await own.signIn(own.people.admin, "sandbox");
    expect((await read(sandbox)).body).toMatchObject({ data: [{ disabled: false }], deliveries: [] });
    nextWindow();
  });

  test("has the 50 most recent deliveries, newest first", async () => {
    const own = await service.organisation();
    await endpoint(own);
    for (let count = 0; count < 53; count++) {
      service.clock.now += 10_000;
      await service.opened(own);
    }
    const { deliveries } = (await read(own.people.admin.as)).body;
    const times = deliveries.map(({ created_at }: { created_at: string }) => created_at);
    expect(times).toHaveLength(50);
    expect(times[0]).toBe(new Date(service.clock.now).toISOString());
    expect(times).toEqual(times.toSorted().toReversed());
    await open().post(PATH, undefined, { headers: WORKER, key: null });
  });

  test("is for admins", async () => {
    const refused = async (as: Record<string, string>) => {
      const { status, code: found } = await read(as);
      return [status, found];
    };
    expect(await refused(home.live.as)).toEqual([403, "user_session_required"]);
    for (const role of ["viewer", "operator"] as const)
      expect(await refused(home.people[role].as)).toEqual([403, "insufficient_role"]);
    expect(await refused({})).toEqual([401, "not_authenticated"]);
    for (const role of ["admin", "owner"] as const)
      expect(await refused(home.people[role].as)).toEqual([200, null]);
  });
});

describe("POST /internal/jobs/webhooks", () => {
  const drive = (headers: Record<string, string> = WORKER, body?: unknown, from = open()) =>
    from.post(PATH, body, { headers, key: null });

  test("attempts the deliveries that are due, and answers how they ended", async () => {
    await endpoint();
    await service.opened(home);
    sent.length = 0;
    code = 500;
    const first = await drive();
    expect([first.status, first.body]).toEqual([
      200,
      { object: "job", attempted: 1, delivered: 0, failed: 1, exhausted: 0, pending: 1 },
    ]);
    code = 200;
    expect((await drive()).body).toMatchObject({ attempted: 0, pending: 1 });
    service.clock.now += 1_000;
    expect((await drive(WORKER, {})).body).toEqual({
      object: "job",
      attempted: 1,
      delivered: 1,
      failed: 0,
      exhausted: 0,
      pending: 0,
    });
    expect(sent.map(({ headers }) => headers["Service-Attempt"])).toEqual(["1", "2"]);
  });

  /** Nothing is attempted, and nothing is written. */
  async function refuses(expected: Refused, send: () => ReturnType<typeof drive>): Promise<void> {
    const before = sent.length;
    await service.refuses(home, expected, send);
    expect(sent).toHaveLength(before);
  }

  test("without the secret, or with another, is refused, whoever else calls, before the body is looked at", async () => {
    nextWindow();
    await service.opened(home);
    const wrong: readonly Record<string, string>[] = [
      {},
      { "X-Service-Worker": "" },
      { "X-Service-Worker": SECRET.slice(1) },
      { "X-Service-Worker": `${SECRET}x` },
      { "X-Service-Worker": SECRET.toUpperCase() },
      { Authorization: `Bearer ${SECRET}` },
      home.live.as,
      home.people.owner.as,
    ];
    for (const headers of wrong)
      await refuses([401, "invalid_worker_secret"], () => drive(headers, "{", open("192.0.2.10")));
    await refuses([400, "validation_failed", "body: must be an empty object"], () =>
      drive(WORKER, { limit: 5 }),
    );
    expect((await drive()).body).toMatchObject({ attempted: 1, delivered: 1 });
  });

  test("is closed where no secret is configured", async () => {
    await service.opened(home);
    for (const headers of [{}, WORKER, { "X-Service-Worker": "null" }])
      await refuses([403, "worker_secret_unset"], () => drive(headers, undefined, service));
    await drive();
  });

  test("strangers at the worker's address do not use up its budget, and it does not use up theirs", async () => {
    nextWindow();
    const from = open("192.0.2.11");
    for (let count = 0; count < LIMITS.write; count++)
      expect((await drive({ "X-Service-Worker": "guess" }, undefined, from)).code).toBe(
        "invalid_worker_secret",
      );
    expect((await drive({ "X-Service-Worker": "guess" }, undefined, from)).status).toBe(429);
    const [first] = [await drive(WORKER, undefined, from)];
    expect([first.status, first.headers.get("ratelimit-remaining")]).toEqual([200, String(LIMITS.write - 1)]);
    for (let count = 1; count < LIMITS.write; count++)
      expect((await drive(WORKER, undefined, from)).status).toBe(200);
    expect((await drive(WORKER, undefined, open("192.0.2.12"))).status).toBe(429);
    expect((await drive({}, undefined, open("192.0.2.12"))).status).toBe(401);
    nextWindow();
    expect((await drive(WORKER, undefined, from)).status).toBe(200);
  });

  test("is 404 with another method", async () => {
    for (const method of ["GET", "PUT", "DELETE"])
      await refuses([404, "route_not_found"], () =>
        open().send(method, PATH, undefined, { headers: WORKER }),
      );
  });
});
