import { afterAll, beforeAll, expect, test } from "bun:test";
import { openConsole } from "../support/console.ts";
import type { TestOrganisation } from "../support/organisations.ts";
import { type Service, startTestServer } from "../support/server.ts";

/** The page on which a person chooses how they hear of things (docs/notices, "Notices"). */

const PATH = "/console/settings/notices";

let service: Service;
let home: TestOrganisation;
beforeAll(async () => {
  service = await startTestServer();
  home = await service.organisation();
});
afterAll(() => service?.close());

const as = (role: "viewer" | "operator") => openConsole(service, home.people[role].as);
const entries = () =>
  service.ctx.reader.auditEntries
    .list(home.id, null, 50)
    .filter(({ action }) => action === "notice_settings.changed");

test("shows what holds where nothing was chosen, and that there is no mail server", async () => {
  const page = await as("viewer").get(PATH);
  expect(page.status).toBe(200);
  expect(page.html).toMatch(/name="email" value="on" checked/);
  expect(page.text).toContain("This instance has no mail server");
  expect(page.text).toContain("No notice yet");
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
