import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { sha256 } from "../../src/core/canonical.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { issuePasswordReset } from "../../src/services/admin/password-resets.ts";
import { tellingBy } from "../support/channels.ts";
import { consoleOfShell } from "../support/console.ts";
import { DEVICES, deviceForm, newBrowser } from "../support/devices.ts";
import { must, PASSWORD, type Person, type TestOrganisation } from "../support/organisations.ts";
import { type ShellService, startTestShell } from "../support/server.ts";

/** The devices of a person on the page of notices, and the service worker (docs/notices, "Web push"). */

const PATH = "/console/settings/notices";
const NEW_PASSWORD = "velvet harbour ginger notion";

let service: ShellService;
let home: TestOrganisation;
beforeAll(() => {
  const taken = async () => ({ outcome: "delivered", answer: "1 of 1 took it: 201", durationMs: 1 }) as const;
  service = startTestShell({ notices: tellingBy({ push: taken }) });
});
beforeEach(async () => {
  home = await service.organisation();
});
afterAll(() => service?.close());

const open = (who: Person) => consoleOfShell(service)(who.as);
const devicesOf = ({ id }: Person) => service.ctx.reader.notices.pushSubscriptionsOf(id);

async function add(who: Person, fields = deviceForm()) {
  const stands = await open(who).formOn(PATH, DEVICES);
  return open(who).post(DEVICES, { ...stands, ...fields });
}

test("the page has the key that browsers subscribe with, the worker, and a form that only a script shows", async () => {
  const page = await open(home.people.viewer).get(PATH);
  const [form = ""] = /<form[^>]*data-subscribe[^>]*>/.exec(page.html) ?? [];
  expect(form).toContain(`data-subscribe="${service.ctx.webPush.publicKey}"`);
  expect(form).toContain('data-worker="/console/push-worker.js"');
  expect(form).toMatch(/ hidden(=""|>| )/);
  expect(page.text).toContain("No device yet");
  expect(page.text).toContain("A device can be added only where JavaScript is on.");
  expect(await open(home.people.viewer).formOn(PATH, PATH)).toMatchObject({ push: "on" });
});

test("the browser names itself, as far as it does", async () => {
  const named = async (agent: string) => {
    const page = await open(home.people.viewer).get(PATH, { "User-Agent": agent });
    return /name="device_name"[^>]* value="([^"]*)"/.exec(page.html)?.[1];
  };
  const chrome = "AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36";
  expect(await named(`Mozilla/5.0 (X11; Linux x86_64) ${chrome}`)).toBe("Chrome on Linux");
  expect(await named(`Mozilla/5.0 (Windows NT 10.0) ${chrome} Edg/140.0`)).toBe("Edge on Windows");
  expect(await named("Mozilla/5.0 (Android 15; Mobile; rv:143.0) Gecko/143.0 Firefox/143.0")).toBe(
    "Firefox on Android",
  );
  expect(await named("curl/8")).toBe("A browser");
});

describe("a device", () => {
  test("is added by every role, and is shown by its name and the host of its push service alone", async () => {
    for (const who of Object.values(home.people)) {
      const browser = newBrowser("https://push.example.com");
      const fields = deviceForm(browser, "Ada's <phone>");
      expect((await add(who, fields)).to).toBe(`${PATH}?done=device`);
      const [device, ...others] = devicesOf(who);
      expect([device, others]).toEqual([
        {
          ...{ id: expect.stringMatching(/^psh_/), userId: who.id, organisationId: home.id },
          ...{ endpoint: browser.endpoint, p256dh: browser.p256dh, encryptedAuth: expect.any(String) },
          ...{ name: "Ada's <phone>", createdAt: service.clock.now, deliveredAt: null },
        },
        [],
      ]);
      expect(service.ctx.vault.decrypt(device!.encryptedAuth, device!.id)).toBe(browser.auth);
      const shown = await open(who).get(`${PATH}?done=device`);
      expect(shown.text).toContain("You are notified on this device from now on.");
      expect(shown.text).toContain("by push.example.com · added");
      expect(shown.html).toContain("Ada&#39;s &lt;phone&gt;");
      expect(shown.html).toContain(`data-device="${sha256(browser.endpoint)}"`);
      const secrets = [new URL(browser.endpoint).pathname, browser.p256dh, browser.auth];
      for (const secret of secrets) expect(shown.html).not.toContain(secret);
      const log = await open(home.people.admin).get("/console/audit-log?what=push_devices");
      expect(log.text).toContain("added or removed a device for push notices");
      for (const secret of secrets) expect(log.html).not.toContain(secret);
    }
  });

  test("is removed on the page of its person, and by nobody else", async () => {
    const { operator, owner } = home.people;
    await add(operator);
    await add(owner);
    const remove = `${DEVICES}/remove`;
    const theirs = await open(operator).formOn(PATH, remove);
    const stolen = await open(owner).post(remove, { ...theirs, _key: crypto.randomUUID() });
    expect(stolen.status).toBe(400);
    expect(stolen.text).toContain("is not one of yours, or was removed already");
    expect(devicesOf(operator)).toHaveLength(1);
    expect((await open(operator).post(remove, theirs)).to).toBe(`${PATH}?done=removed`);
    expect([devicesOf(operator).length, devicesOf(owner).length]).toEqual([0, 1]);
    expect((await open(operator).get(`${PATH}?done=removed`)).text).toContain(
      "You are not notified on that device any more.",
    );
  });

  test("that is refused shows the form again, with why and what was typed", async () => {
    const { viewer } = home.people;
    const refused = await add(viewer, { ...deviceForm(), device_name: "x".repeat(201) });
    expect(refused.status).toBe(400);
    expect(refused.html).toContain('id="device_name-problem"');
    expect(refused.html).toContain(`value="${"x".repeat(201)}"`);
    const plain = await add(viewer, { ...deviceForm(), endpoint: "http://push.example.com/1" });
    expect([plain.status, plain.text]).toEqual([
      400,
      expect.stringContaining("endpoint: must be an https URL"),
    ]);
    expect(devicesOf(viewer)).toEqual([]);
  });

  test("of another person is not taken over", async () => {
    const browser = newBrowser();
    await add(home.people.owner, deviceForm(browser));
    const taken = await add(home.people.viewer, deviceForm(browser));
    expect([taken.status, taken.text]).toEqual([409, expect.stringContaining("notifies another person")]);
  });
});

test("a new password ends the devices, by hand and by a reset link", async () => {
  const { operator, admin } = home.people;
  await add(operator);
  await add(admin);
  const passwords = { current_password: PASSWORD, new_password: NEW_PASSWORD };
  expect((await service.post("/auth/password", passwords, { as: operator.as, key: null })).status).toBe(204);
  expect([devicesOf(operator).length, devicesOf(admin).length]).toEqual([0, 1]);
  const { url } = must(await issuePasswordReset(service.ctx, MACHINE, { user_id: admin.id }));
  const body = { token: new URL(url).hash.slice(1), new_password: NEW_PASSWORD };
  expect((await service.post("/auth/password/reset", body, { key: null })).status).toBe(204);
  expect(devicesOf(admin)).toEqual([]);
  const changes = service.ctx.reader.auditEntries
    .list(home.id, null, 50)
    .filter(({ action }) => action === "push_devices.changed");
  expect(changes.slice(0, 2)).toMatchObject([
    { subject: admin.id, before: { devices: [{ name: "Laptop" }] }, after: { devices: [] } },
    { subject: operator.id, before: { devices: [{ name: "Laptop" }] }, after: { devices: [] } },
  ]);
});

test("a test notice is made at the console, and one more only after a minute", async () => {
  const { viewer } = home.people;
  const ask = async () => {
    const form = await open(viewer).formOn(PATH, `${PATH}/test`);
    return open(viewer).post(`${PATH}/test`, form);
  };
  const none = await ask();
  expect([none.status, none.text]).toEqual([
    400,
    expect.stringContaining("No channel that is chosen reaches you."),
  ]);
  await add(viewer);
  expect((await ask()).to).toBe(`${PATH}?done=test`);
  const shown = await open(viewer).get(`${PATH}?done=test`);
  expect(shown.text).toContain("A test notice is on its way.");
  expect(shown.text).toMatch(/A test notice waits .{9,40} Push/);
  const again = await ask();
  expect([again.status, again.text]).toEqual([400, expect.stringContaining("less than a minute ago")]);
});

test("the service worker is there for everybody, may load nothing, and is asked for anew each time", async () => {
  const { status, headers, html } = await consoleOfShell(service)({}).get("/console/push-worker.js");
  expect(status).toBe(200);
  expect(headers.get("content-type")).toStartWith("text/javascript");
  expect(headers.get("content-security-policy")).toBe("default-src 'none'");
  expect(headers.get("cache-control")).toBe("no-cache");
  expect(headers.get("x-content-type-options")).toBe("nosniff");
  expect(html).toContain('addEventListener("push"');
});
