import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { newDelivery } from "../../src/core/webhook.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { createWebhook, type NewWebhook } from "../../src/services/admin/webhooks.ts";
import { runDeliveries } from "../../src/services/webhooks/deliver.ts";
import { consoleOfShell, fieldsOf, openConsole } from "../support/console.ts";
import { noFault } from "../support/no-fault.ts";
import { must, type TestOrganisation } from "../support/organisations.ts";
import { createJudge, type Receiver, startReceiver } from "../support/receiver.ts";
import { type Service, startTestServer, startTestShell } from "../support/server.ts";
import { until } from "../support/until.ts";

/** The console's pages of webhooks, as a browser without a script has them. */

let service: Service;
let receiver: Receiver;
let home: TestOrganisation;
beforeAll(async () => {
  [receiver, service] = [startReceiver(), await startTestServer()];
  home = await service.organisation();
});
afterAll(async () => {
  await service?.close();
  receiver?.stop();
});

const admin = (of = home) => openConsole(service, of.people.admin.as);
const endpointOf = (of = home, path = "/", events: string[] = []): Promise<NewWebhook> =>
  createWebhook(service.ctx, MACHINE, {
    ...{ organisation_id: of.id, mode: "live", url: receiver.url(path), events },
  }).then(must);
const deliveriesIn = ({ ctx }: Pick<Service, "ctx">, of: TestOrganisation) =>
  ctx.reader.deliveries.list({ organisationId: of.id, mode: "live" }, 1_000);
const deliveries = (of: TestOrganisation) => deliveriesIn(service, of);
const auditOf = async (of: TestOrganisation) =>
  (await service.get("/v1/console/audit-log", { as: of.people.owner.as })).body.data;

/** Sends the form that a page has, with other values in some fields. */
async function submit(path: string, action: string, fields: object = {}, of = home) {
  const browser = admin(of);
  return browser.post(action, { ...(await browser.formOn(path, action)), ...fields });
}

describe("an endpoint", () => {
  test("says that it never changes, and another one begins with its URL and events", async () => {
    const own = await service.organisation();
    const { id, url } = await endpointOf(own, "/like", ["warrant.opened", "warrant.refunded"]);
    const path = `/console/webhooks/new?from=${id}`;
    const page = await admin(own).get(`/console/webhooks/${id}`);
    expect(page.html).toContain(`href="${path}"`);
    expect(page.text).toContain("Its URL, events and secret stay as they are.");
    expect(await admin(own).formOn(path, "/console/webhooks/new")).toMatchObject({
      ...{ url, "event_warrant.opened": "on", "event_warrant.refunded": "on" },
    });
    expect(await admin(own).formOn(path, "/console/webhooks/new")).not.toHaveProperty([
      "event_warrant.released",
    ]);
    const other = await service.organisation();
    expect((await admin(other).get(path)).status).toBe(404);
  });

  test("is listed by pages, oldest first, and each is offered as a filter of deliveries", async () => {
    const own = await service.organisation();
    const made: NewWebhook[] = [];
    for (let count = 0; count < 26; count++) made.push(await endpointOf(own, `/many-${count}`));
    const listed = (html: string) =>
      [...html.matchAll(/href="\/console\/webhooks\/(whk_\w+)"/g)].map(([, id = ""]) => id);
    const first = await admin(own).get("/console/webhooks");
    expect(listed(first.html)).toEqual(made.slice(0, 25).map(({ id }) => id));
    const next = /href="([^"]+)" rel="next"/.exec(first.html)?.[1] ?? "";
    const second = await admin(own).get(next);
    expect(listed(second.html)).toEqual([made[25]!.id]);
    expect([second.html.includes('rel="next"'), second.html.includes('rel="prev"')]).toEqual([false, true]);
    const { html } = await admin(own).get(`/console/deliveries?endpoint=${made[25]!.id}`);
    for (const { id } of made) expect(html.split(`value="${id}"`)).toHaveLength(2);
    expect(html).toMatch(new RegExp(`value="${made[25]!.id}" selected`));
  });

  test("is made by a form, and its secret is shown once", async () => {
    const browser = admin();
    const made = await browser.formOn("/console/webhooks/new", "/console/webhooks/new");
    const fields = { ...made, url: receiver.url("/made"), "event_warrant.opened": "on" };
    const page = await browser.post("/console/webhooks/new", fields);
    expect(page.status).toBe(201);
    const secret = /value="(whsec_[^"]+)"/.exec(page.html)?.[1]?.replaceAll("&#x2F;", "/") ?? "";
    const id = /whk_[0-9A-Z]{26}/.exec(page.html)?.[0] ?? "";
    for (const path of ["/console/webhooks", `/console/webhooks/${id}`])
      expect((await browser.get(path)).html).not.toContain("whsec_");
    const [entry] = await auditOf(home);
    expect(entry).toMatchObject({
      ...{ action: "webhook.created", subject: id, after: { events: ["warrant.opened"] } },
      actor: { kind: "user", id: home.people.admin.id },
    });
    // It is the secret by which deliveries are signed.
    const before = receiver.received.length;
    await service.opened(home);
    const posted = (await receiver.whenReceived(before + 1)).find(({ path }) => path === "/made");
    expect(posted && createJudge(secret)(posted, Date.now())).toBe("accepted");
  });

  test.each([
    ["ftp://hook.example", "must be an http or https URL"],
    ["https://a:b@hook.example", "must not carry credentials"],
    ["", "must be an http or https URL"],
  ])("at %p is refused beside the field, and what was written stays", async (url, words) => {
    const fields = { url, "event_warrant.opened": "on" };
    const page = await submit("/console/webhooks/new", "/console/webhooks/new", fields);
    expect([page.status, page.text]).toEqual([400, expect.stringContaining(words)]);
    expect(page.html).toMatch(/id="url-problem"/);
    expect(page.html).toContain('name="event_warrant.opened" value="on" checked');
  });

  test("is disabled after a confirmation that says what that does", async () => {
    const { id } = await endpointOf();
    const action = `/console/webhooks/${id}/disable`;
    expect((await admin().get(action)).text).toContain("No money moves. This cannot be undone");
    expect((await submit(action, action)).to).toBe(`/console/webhooks/${id}?done=disabled`);
    const { text, html } = await admin().get(`/console/webhooks/${id}?done=disabled`);
    expect(text).toContain("Endpoint Disabled");
    expect(html).not.toContain("/example");
    expect((await auditOf(home))[0]).toMatchObject({ action: "webhook.disabled", subject: id });
  });

  test("of another organisation or mode is not there", async () => {
    const other = await service.organisation();
    const { id } = await endpointOf(other);
    for (const path of [`/console/webhooks/${id}`, `/console/webhooks/${id}/disable`])
      expect((await admin().get(path)).status).toBe(404);
    const reply = await admin().post(`/console/webhooks/${id}/disable`, { _key: "k", _mode: "live" });
    expect(reply.status).toBe(404);
    const sandboxed = openConsole(service, await other.signIn(other.people.admin, "sandbox"));
    expect((await sandboxed.get(`/console/webhooks/${id}`)).status).toBe(404);
    expect((await admin(other).get(`/console/webhooks/${id}`)).status).toBe(200);
  });
});

describe("a delivery", () => {
  test("of an example is sent once however often the form is, and shows request and answer", async () => {
    receiver.answer(() => new Response("thank <you>", { status: 202 }));
    const { id } = await endpointOf(home, "/example", ["warrant.refunded"]);
    const action = `/console/webhooks/${id}/example`;
    const browser = admin();
    const fields = await browser.formOn(`/console/webhooks/${id}`, action);
    const replies = await Promise.all([browser.post(action, fields), browser.post(action, fields)]);
    expect(replies[0]?.to).toMatch(/^\/console\/deliveries\/whd_[0-9A-Z]{26}\?done=example$/);
    expect(replies[1]?.to).toBe(replies[0]!.to);
    const path = replies[0]!.to!;
    const page = await until("the example has arrived", async () => {
      const shown = await browser.get(path);
      return shown.text.includes("Delivered") && shown;
    });
    expect(receiver.received.filter((one) => one.path === "/example")).toHaveLength(1);
    const [posted] = receiver.received.filter((one) => one.path === "/example");
    expect(page.text).toContain("The example is on its way.");
    expect(page.text).toContain(`POST ${receiver.url("/example")}`);
    expect(page.text).toContain(`Service-Delivery: ${posted?.delivery}`);
    for (const part of ["202", "thank &lt;you&gt;", "none: it is an example"])
      expect(page.html).toContain(part);
    expect(page.html).not.toContain("thank <you>");
    // The body is the one that was sent.
    const shown = /<h3>Body<\/h3><pre[^>]*>\s*([^<]+)</.exec(page.html)?.[1]?.replaceAll("&quot;", '"') ?? "";
    expect(JSON.parse(shown)).toEqual(posted?.body);
    // Signatures are of an attempt, and of nobody else's business.
    expect(page.html).not.toMatch(/v1=|webhook-signature/i);
  });

  test("is sent again, as a new one", async () => {
    receiver.answer(() => new Response("ok"));
    const own = await service.organisation();
    await endpointOf(own, "/again", ["warrant.opened"]);
    await service.opened(own);
    const [first] = await until("it is delivered", () => {
      const found = deliveries(own);
      return found[0]?.status === "delivered" && found;
    });
    const action = `/console/deliveries/${first?.id}/redeliver`;
    const reply = await submit(`/console/deliveries/${first?.id}`, action, {}, own);
    expect(reply.to).toContain("?done=redelivered");
    expect(reply.to).not.toContain(first?.id ?? "none");
    expect(deliveries(own).map(({ eventId }) => eventId)).toEqual([first!.eventId, first!.eventId]);
    expect((await auditOf(own))[0]).toMatchObject({
      ...{ action: "delivery.redelivered", subject: first?.id },
      actor: { kind: "user", id: own.people.admin.id },
    });
  });

  test.each(["9y", "toString", ""])("is not recovered since %p", async (since) => {
    const { id } = await endpointOf();
    const page = `/console/webhooks/${id}`;
    const wrong = await submit(page, `${page}/recover`, { since });
    expect([wrong.status, wrong.text]).toEqual([400, expect.stringContaining("must be one of the list")]);
  });

  test("that never arrived is recovered, and counted", async () => {
    const shell = startTestShell({
      sendWebhook: async () => ({ code: 500, responseStart: "down", durationMs: 1 }),
    });
    try {
      const own = await shell.organisation();
      const input = { organisation_id: own.id, mode: "live", url: "https://hook.example" } as const;
      const { id } = must(await createWebhook(shell.ctx, MACHINE, input));
      await shell.opened(own);
      await shell.opened(own);
      for (let attempt = 0; attempt < 4; attempt++) {
        await runDeliveries(shell.ctx, noFault);
        shell.clock.now += 30_000;
      }
      const browser = consoleOfShell(shell)(own.people.admin.as);
      const page = `/console/webhooks/${id}`;
      expect((await browser.get(`/console/deliveries?status=exhausted`)).text).toContain("500");
      const recovered = async () => {
        const fields = await browser.formOn(page, `${page}/recover`);
        const { to } = await browser.post(`${page}/recover`, { ...fields, since: "1h" });
        return (await browser.get(to ?? "")).text;
      };
      expect(await recovered()).toContain("2 events are on their way again.");
      expect(deliveriesIn(shell, own).map(({ status }) => status)).toEqual([
        ...["pending", "pending", "exhausted", "exhausted"],
      ] as never);
      expect(await recovered()).toContain("Nothing was missed since then.");
    } finally {
      await shell.close();
    }
  });

  test("of another organisation or mode is not there", async () => {
    const other = await service.organisation();
    await endpointOf(other, "/other");
    await service.opened(other);
    const [theirs] = deliveries(other);
    expect((await admin().get(`/console/deliveries/${theirs?.id}`)).status).toBe(404);
    const reply = await admin().post(`/console/deliveries/${theirs?.id}/redeliver`, {
      ...{ _key: "other", _mode: "live" },
    });
    expect([reply.status, deliveries(other).length]).toEqual([404, 1]);
  });
});

describe("the list of deliveries", () => {
  test("is paged, and narrowed by endpoint, status and event", async () => {
    await endpointOf(home, "/theirs");
    await service.opened(home);
    const [theirs] = deliveries(home);
    const own = await service.organisation();
    const [one] = [await endpointOf(own, "/one", ["warrant.opened"]), await endpointOf(own, "/two")];
    for (let i = 0; i < 30; i++) await service.opened(own);
    const browser = admin(own);
    const idsOf = (html: string) =>
      [...html.matchAll(/href="\/console\/deliveries\/(whd_[0-9A-Z]{26})"/g)].map(([, id = ""]) => id);
    const next = (html: string) =>
      /href="([^"]+)" rel="next"/.exec(html)?.[1]?.replaceAll("&amp;", "&") ?? null;
    for (const [query, count] of [
      ["", 60],
      [`?endpoint=${one.id}`, 30],
      ["?event=warrant.opened", 60],
      ["?event=warrant.refunded", 0],
      ["?status=exhausted", 0],
    ] as const) {
      const seen: string[] = [];
      let path: string | null = `/console/deliveries${query}`;
      while (path !== null) {
        const { html } = await browser.get(path);
        expect(idsOf(html).length).toBeLessThanOrEqual(25);
        seen.push(...idsOf(html));
        path = next(html);
      }
      expect([query, seen.length, new Set(seen).size]).toEqual([query, count, count]);
    }
    expect((await browser.get("/console/deliveries?status=exhausted")).text).toContain(
      "No delivery is like that",
    );
    // A cursor of somebody else's is none.
    const { html } = await browser.get(`/console/deliveries?after=${theirs?.id}`);
    expect(idsOf(html)).toHaveLength(25);
  });
});

test("a filter goes on where a page has looked at as many deliveries as it may", async () => {
  const own = await service.organisation();
  const made = await endpointOf(own, "/many", ["warrant.verifying"]);
  const webhook = service.ctx.reader.webhooks.get(made.id);
  const scope = { organisationId: own.id, mode: "live" } as const;
  const rows = Array.from({ length: 2_300 }, (_, at) => {
    const event = at === 0 || at === 1_000 ? ("warrant.refunded" as const) : ("warrant.opened" as const);
    const of = { event, eventId: `evt_${at}`, warrantId: null, sequence: null, createdAt: at };
    const row = newDelivery(webhook!, service.ctx.newId("delivery"), of);
    return { ...row, status: "exhausted" as const, nextAttemptAt: null };
  });
  await service.ctx.store.execute({
    ...{ scope, needs: {} },
    decide: () => ({
      answer: true,
      change: { put: rows.map((row) => ({ kind: "delivery", before: null, row }) as const) },
    }),
  });
  const browser = admin(own);
  const first = await browser.get("/console/deliveries?event=warrant.refunded");
  const next = /href="([^"]+)" rel="next"/.exec(first.html)?.[1]?.replaceAll("&amp;", "&") ?? "";
  const second = await browser.get(next);
  const count = (html: string) => html.match(/href="\/console\/deliveries\/whd_/g)?.length ?? 0;
  expect([count(first.html), count(second.html), second.html.includes('rel="next"')]).toEqual([1, 1, false]);
});

test("the navigation leads there only whom it lets in", async () => {
  const of = (role: "viewer" | "operator" | "admin") =>
    openConsole(service, home.people[role].as).get("/console");
  expect((await of("admin")).html).toContain('href="/console/webhooks"');
  for (const role of ["viewer", "operator"] as const)
    expect((await of(role)).html).not.toContain('href="/console/webhooks"');
});

test("the form shows what was refused with a key of its own", async () => {
  const page = await submit("/console/webhooks/new", "/console/webhooks/new", { url: "x" });
  expect(fieldsOf(page.html, "/console/webhooks/new")._key).not.toBe("");
});
