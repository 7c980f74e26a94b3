import { afterAll, beforeAll, expect, test } from "bun:test";
import { claimNotice, endNotice, newNotice } from "../../src/core/notice.ts";
import { tellingBy } from "../support/channels.ts";
import { consoleOfShell } from "../support/console.ts";
import type { TestOrganisation } from "../support/organisations.ts";
import { type ShellService, startTestShell } from "../support/server.ts";

/** The page on which a person chooses how they hear of things (docs/notices, "Notices"). */

const PATH = "/console/settings/notices";

const taken = async () => ({ outcome: "delivered", answer: "250 ok", durationMs: 1 }) as const;

let service: ShellService;
let home: TestOrganisation;
beforeAll(async () => {
  service = startTestShell({ notices: tellingBy({ email: taken }) });
  home = await service.organisation();
});
afterAll(() => service?.close());

const as = (role: "viewer" | "operator" | "admin") => consoleOfShell(service)(home.people[role].as);
const entries = () =>
  service.ctx.reader.auditEntries
    .list(home.id, null, 50)
    .filter(
      ({ action, subject }) => action === "notice_settings.changed" && subject === home.people.operator.id,
    );

test("shows what holds where nothing was chosen", async () => {
  const page = await as("viewer").get(PATH);
  expect(page.status).toBe(200);
  expect(page.html).toMatch(/name="email" value="on" checked/);
  expect(page.text).not.toContain("This instance has no mail server");
  expect(page.text).toContain("A sign-in from a new place");
});

test("offers the channels that the instance has, and keeps what was chosen of the others", async () => {
  const { id } = home.people.admin;
  const choose = async (send: Parameters<typeof tellingBy>[0], channels: Record<string, string>) => {
    const browser = consoleOfShell({ ...service, ctx: { ...service.ctx, notices: tellingBy(send) } })(
      home.people.admin.as,
    );
    const { email: _, messaging: __, push: ___, ...form } = await browser.formOn(PATH, PATH);
    expect((await browser.post(PATH, { ...form, ...channels })).status).toBe(303);
    const { email, messaging } = service.ctx.reader.notices.settingsOf(id)!;
    return [
      Object.keys(await browser.formOn(PATH, PATH)).filter((name) => /^email|messaging$/.test(name)),
      email,
      messaging,
    ];
  };
  expect(await choose({ messaging: taken }, {})).toEqual([[], true, false]);
  expect(await choose({ email: taken }, {})).toEqual([[], false, false]);
  expect(await choose({ email: taken, messaging: taken }, { messaging: "on" })).toEqual([
    ["messaging"],
    false,
    true,
  ]);
  expect(await choose({}, { email: "on" })).toEqual([[], false, true]);
});

test("an instance without a mail server says so", async () => {
  const without = consoleOfShell({ ...service, ctx: { ...service.ctx, notices: tellingBy({}) } });
  const page = await without(home.people.viewer.as).get(PATH);
  expect(page.text).toContain("This instance has no mail server");
  expect(page.html).not.toContain('name="email"');
});

test("the last notices name their channel", async () => {
  const { id: userId } = home.people.operator;
  const scope = { organisationId: home.id, mode: "live" } as const;
  const about = { kind: "trouble", name: "disk", message: "full" } as const;
  const rows = (["email", "messaging"] as const).map((channel) => {
    const now = service.ctx.now();
    const made = newNotice({
      ...{ id: `ntc_${channel}`, ...scope, userId, channel },
      ...{ subject: "trouble disk", about, createdAt: now },
    });
    return endNotice(claimNotice(made, now)!, { outcome: "delivered", answer: channel, durationMs: 1 }, now);
  });
  await service.ctx.store.execute({
    scope,
    needs: {},
    decide: () => ({
      answer: null,
      change: { put: rows.map((row) => ({ kind: "notice", before: null, row })) },
    }),
  });
  const { text } = await as("operator").get(PATH);
  expect(text).toMatch(/Trouble: disk delivered .{9,40} E-mail email/);
  expect(text).toMatch(/Trouble: disk delivered .{9,40} Messaging messaging/);
});

test("keeps what a person chose, for them alone, and the audit log names them", async () => {
  const browser = as("operator");
  const { email: _, ...form } = await browser.formOn(PATH, PATH);
  const chosen = { ...form, from: "08:30", until: "18:00", time_zone: "Europe/Berlin" };
  const reply = await browser.post(PATH, chosen);
  expect([reply.status, reply.to]).toEqual([303, `${PATH}?done=chosen`]);
  const page = await browser.get(PATH);
  expect(page.html).toContain('value="08:30"');
  expect(page.html).toContain('value="Europe/Berlin"');
  expect(page.html).not.toMatch(/name="email" value="on" checked/);
  expect(page.html).toMatch(/name="sandbox" value="on" checked/);
  expect((await as("viewer").get(PATH)).html).toMatch(/name="email" value="on" checked/);
  const { id } = home.people.operator;
  expect(entries()).toMatchObject([
    { actor: { kind: "user", id }, subject: id, before: null, after: { fromMinute: 510, untilMinute: 1080 } },
  ]);
  // The same again changes nothing.
  const again = await browser.formOn(PATH, PATH);
  const { email: __, ...same } = again;
  expect((await browser.post(PATH, same)).status).toBe(303);
  expect(entries()).toHaveLength(1);
});

test.each([
  [{ from: "25:00", until: "18:00" }, "must be a time of the day, such as 08:00"],
  [{ from: "08:00", until: "" }, "must be a time of the day, such as 18:00"],
  [{ from: "08:00", until: "08:00" }, "must be another time than the first"],
  [{ time_zone: "Mars/Base" }, "must be the name of a time zone"],
])("what is wrong in %j is said beside its field, and nothing is kept", async (wrong, problem) => {
  const browser = as("viewer");
  const reply = await browser.post(PATH, { ...(await browser.formOn(PATH, PATH)), ...wrong });
  expect([reply.status, reply.text]).toEqual([400, expect.stringContaining(problem)]);
  expect(service.ctx.reader.notices.settingsOf(home.people.viewer.id)).toBeNull();
});
