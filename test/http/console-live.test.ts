import { afterAll, beforeAll, expect, test } from "bun:test";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { removeUser } from "../../src/services/admin/users.ts";
import { createWebhook } from "../../src/services/admin/webhooks.ts";
import { signedInBy } from "../../src/services/auth/callers.ts";
import type { Credentials } from "../support/client.ts";
import { openConsole } from "../support/console.ts";
import { type EventReader, readEvents } from "../support/event-stream.ts";
import { must, type TestOrganisation } from "../support/organisations.ts";
import { type Service, startTestServer, startTestShell } from "../support/server.ts";
import { until } from "../support/until.ts";

/** The stream by which pages hear what changed: what it tells whom, how it goes on after a cut, and when it ends. */

let service: Service;
let home: TestOrganisation;
const opened: EventReader[] = [];
beforeAll(async () => {
  service = await startTestServer();
  home = await service.organisation();
});
afterAll(async () => {
  for (const reader of opened) reader.leave();
  await service?.close();
});

async function listen(as: Credentials, { after = "", headers = {} } = {}): Promise<EventReader> {
  const query = after === "" ? "" : `?after=${after}`;
  const reader = await readEvents(`${service.url}/console/events${query}`, { ...as, ...headers });
  opened.push(reader);
  return reader;
}

/** Where the reader of a page stands. */
const positionOn = async (as: Credentials, path = "/console"): Promise<string> =>
  /data-position="([^"]+)"/.exec((await openConsole(service, as).get(path)).html)?.[1] ?? "none";

test("is of server-sent events, for signed-in people alone", async () => {
  const { status, headers } = await listen(home.people.viewer.as);
  expect([status, headers.get("content-type"), headers.get("cache-control")]).toEqual([
    200,
    "text/event-stream",
    "no-store",
  ]);
  expect(headers.get("x-accel-buffering")).toBe("no");
  expect((await fetch(`${service.url}/console/events`, { redirect: "manual" })).status).toBe(303);
  const byKey = await fetch(`${service.url}/console/events`, { headers: { ...home.live.as } });
  expect(byKey.status).toBe(403);
});

test("tells what changed in the reader's organisation and mode, and nothing of others", async () => {
  const other = await service.organisation();
  const viewer = home.people.viewer;
  const [live, sandbox] = [
    await listen(viewer.as, { after: await positionOn(viewer.as) }),
    await service.opened(home, {}, { as: home.sandbox.as }),
  ];
  const elsewhere = await service.opened(other, {}, { as: other.live.as });
  const warrant = await service.opened(home);
  const names = await live.nextNames();
  expect(names).toContain("warrants");
  expect(names).toContain("money");
  expect(names).toContain(warrant.id);
  expect(names).not.toContain(sandbox.id);
  expect(names).not.toContain(elsewhere.id);
});

test("tells what changed after the page was read, before the stream began", async () => {
  const { as } = home.people.viewer;
  const after = await positionOn(as, "/console/warrants");
  const warrant = await service.opened(home);
  expect(await (await listen(as, { after })).nextNames()).toContain(warrant.id);
});

test("goes on after a cut with what was missed, and only with that", async () => {
  const { as } = home.people.viewer;
  const first = await listen(as, { after: await positionOn(as) });
  const heard = await service.opened(home);
  const event = await first.next();
  expect(event?.data).toContain(heard.id);
  first.leave();
  const missed = await service.opened(home);
  const again = await listen(as, { after: "0.0", headers: { "Last-Event-ID": event?.id ?? "" } });
  const names = await again.nextNames();
  expect(names).toContain(missed.id);
  expect(names).not.toContain(heard.id);
});

test.each(["", "000000000000.1", "nonsense", "'; DROP TABLE"])(
  "from %p, which it does not know, anything may have changed",
  async (id) => {
    const reader = await listen(home.people.viewer.as, { headers: { "Last-Event-ID": id } });
    expect(await reader.nextNames()).toBeNull();
  },
);

test("tells of webhooks to those who may see them", async () => {
  const { viewer, admin } = home.people;
  const readers = [
    await listen(viewer.as, { after: await positionOn(viewer.as) }),
    await listen(admin.as, { after: await positionOn(admin.as) }),
  ] as const;
  const input = { organisation_id: home.id, mode: "live", url: "https://hook.example/in" } as const;
  const { id } = must(await createWebhook(service.ctx, MACHINE, { ...input, events: ["warrant.refunded"] }));
  expect(await readers[1].nextNames()).toEqual(["webhooks", id, "audit"]);
  await service.opened(home);
  const names = await readers[0].nextNames();
  expect(names).toContain("warrants");
  for (const name of ["webhooks", id, "audit"]) expect(names).not.toContain(name);
});

test("ends when the person signs out", async () => {
  const as = await home.signIn(home.people.operator);
  const reader = await listen(as, { after: await positionOn(as) });
  await service.send("DELETE", "/auth/session", undefined, { as });
  const end = await reader.next();
  expect([end?.type, end?.data, await reader.next()]).toEqual(["end", '{"why":"signed_out"}', null]);
});

test("ends when the person is removed", async () => {
  const gone = await service.organisation();
  const { as, id } = gone.people.viewer;
  const reader = await listen(as, { after: await positionOn(as) });
  must(await removeUser(service.ctx, MACHINE, { user_id: id }));
  expect((await reader.next())?.data).toBe('{"why":"signed_out"}');
});

test("ends when the person goes to the other mode", async () => {
  const as = await home.signIn(home.people.operator);
  const reader = await listen(as, { after: await positionOn(as) });
  const browser = openConsole(service, as);
  const fields = await browser.formOn("/console", "/console/mode");
  await browser.post("/console/mode", { ...fields, mode: "sandbox" });
  expect((await reader.next())?.data).toBe('{"why":"other_mode"}');
});

test("the ninth of a person takes the place of their first", async () => {
  const busy = await service.organisation();
  const { as } = busy.people.viewer;
  const after = await positionOn(as);
  const readers = [];
  for (let i = 0; i < 9; i++) readers.push(await listen(as, { after }));
  expect((await readers[0]?.next())?.data).toBe('{"why":"replaced"}');
  await service.opened(busy);
  for (const reader of readers.slice(1)) expect(await reader.nextNames()).toContain("warrants");
  for (const reader of readers) reader.leave();
});

test("a reader who leaves, and one who asks for the head alone, takes no place", async () => {
  const alone = await startTestServer();
  try {
    const { people } = await alone.organisation();
    const url = `${alone.url}/console/events`;
    const head = await fetch(url, { method: "HEAD", headers: { ...people.viewer.as } });
    expect([head.status, alone.ctx.live.count()]).toEqual([200, 0]);
    const reader = await readEvents(url, people.viewer.as);
    expect(await reader.nextNames()).toBeNull();
    expect(alone.ctx.live.count()).toBe(1);
    reader.leave();
    await until("the reader's place is free", () => alone.ctx.live.count() === 0);
    // A stop waits for nobody who listens.
    const waiting = await readEvents(url, people.viewer.as);
    expect(await waiting.nextNames()).toBeNull();
    const began = performance.now();
    await alone.close();
    expect(performance.now() - began).toBeLessThan(5_000);
    expect(await waiting.next()).toBeNull();
  } finally {
    await alone.close().catch(() => {});
  }
});

test("what a page asks by itself is no use of the sign-in", async () => {
  const shell = startTestShell();
  try {
    const { people } = await shell.organisation();
    const { as } = people.viewer;
    const token = as.Cookie?.split("=")[1] ?? "";
    const endsAt = async () => (await signedInBy(shell.ctx, token, true))?.session.expiresAt ?? 0;
    const before = await endsAt();
    shell.clock.now += 2 * 3_600_000;
    for (const headers of [{ Accept: "text/event-stream" }, { "Service-Refresh": "1" }]) {
      expect((await shell.get("/auth/session", { as, headers })).status).toBe(200);
      expect(await endsAt()).toBe(before);
    }
    await shell.get("/auth/session", { as });
    expect(await endsAt()).toBeGreaterThan(before);
  } finally {
    await shell.close();
  }
});
