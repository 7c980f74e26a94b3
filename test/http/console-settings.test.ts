import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import type { Role } from "../../src/core/roles.ts";
import { fieldsOf, openConsole, type Shown } from "../support/console.ts";
import { PASSWORD, type TestOrganisation } from "../support/organisations.ts";
import { type Service, startTestServer } from "../support/server.ts";

/** One's own account, the organisation's switches, and what the instance says of itself. */

const NEW_PASSWORD = "velvet harbour ginger notion";

let service: Service;
let home: TestOrganisation;
beforeAll(async () => {
  service = await startTestServer();
});
beforeEach(async () => {
  home = await service.organisation();
});
afterAll(() => service?.close());

const as = (role: Role) => openConsole(service, home.people[role].as);
type Browser = ReturnType<typeof openConsole>;
async function send(browser: Browser, page: string, action: string, fields: object = {}): Promise<Shown> {
  return browser.post(action, { ...(await browser.formOn(page, action)), ...fields });
}
async function sendUnasked(browser: Browser, action: string, fields: object = {}): Promise<Shown> {
  return browser.post(action, { _key: crypto.randomUUID(), _mode: "live", ...fields });
}
const organisation = async () =>
  (await service.ctx.store.read(({ organisations }) => organisations.get(home.id)))!;
const newestEntry = async () =>
  (await service.ctx.store.read(({ auditEntries }) => auditEntries.list(home.id, null, 1)))[0];

describe("one's account", () => {
  test("the name is changed, shows at once, and is in the audit log", async () => {
    const browser = as("viewer");
    const reply = await send(browser, "/console/account", "/console/account/name", { name: "Grace Hopper" });
    expect(reply.to).toBe("/console/account?done=name");
    expect((await browser.get("/console")).text).toContain("Grace Hopper");
    const entry = await newestEntry();
    expect(entry).toMatchObject({ action: "user.renamed", subject: home.people.viewer.id });
    expect(entry?.actor).toEqual({ kind: "user", id: home.people.viewer.id });
    expect(entry?.after).toMatchObject({ name: "Grace Hopper" });
  });

  test.each(["", "  ", "x".repeat(201), "a\u202eb"])(
    "the name %j is refused beside its field",
    async (name) => {
      const reply = await send(as("viewer"), "/console/account", "/console/account/name", { name });
      expect([reply.status, reply.html.includes('id="name-problem"')]).toEqual([400, true]);
    },
  );

  test("the same name again changes nothing", async () => {
    const fields = await as("viewer").formOn("/console/account", "/console/account/name");
    const before = await newestEntry();
    await as("viewer").post("/console/account/name", fields);
    expect((await newestEntry())?.id).toBe(before!.id);
  });

  test("the password is changed, with the current one, and other sign-ins end", async () => {
    const elsewhere = openConsole(service, await home.signIn(home.people.viewer));
    const browser = as("viewer");
    const change = (fields: object) => send(browser, "/console/account", "/console/account/password", fields);
    const wrong = await change({ current_password: "wrong", new_password: NEW_PASSWORD });
    expect([wrong.status, wrong.html.includes('id="current_password-problem"')]).toEqual([401, true]);
    const weak = await change({ current_password: PASSWORD, new_password: "password1234" });
    expect([weak.status, weak.html.includes('id="new_password-problem"')]).toEqual([400, true]);
    const done = await change({ current_password: PASSWORD, new_password: NEW_PASSWORD });
    expect([done.to, done.html]).toEqual(["/console/account?done=password", ""]);
    expect((await elsewhere.get("/console")).to).toContain("/console/sign-in");
    expect((await browser.get("/console")).status).toBe(200);
  });

  test("sign-ins are listed; one is ended, and all are, with the cookie", async () => {
    const browser = as("viewer");
    const elsewhere = openConsole(service, await home.signIn(home.people.viewer));
    const { html } = await browser.get("/console/account");
    const [, id = ""] = /name="sign_in" value="(sgn_\w+)"/.exec(html) ?? [];
    const action = "/console/account/sign-out";
    const ended = await sendUnasked(browser, action, { sign_in: id });
    expect(ended.to).toBe("/console/account?done=ended");
    expect((await elsewhere.get("/console")).to).toContain("/console/sign-in");
    const none = await sendUnasked(browser, action, { sign_in: id });
    expect([none.status, none.text]).toEqual([404, expect.stringContaining("There is no sign-in")]);
    const all = await sendUnasked(browser, action);
    expect([all.to, all.headers.get("set-cookie")]).toEqual([
      "/console/sign-in",
      expect.stringContaining("service_session=;"),
    ]);
    expect((await browser.get("/console")).to).toContain("/console/sign-in");
  });

  test("a passkey that is not one's own leads back", async () => {
    expect((await as("viewer").get("/console/account/remove-passkey?passkey=x")).to).toBe("/console/account");
    const reply = await sendUnasked(as("viewer"), "/console/account/remove-passkey", {
      ...{ passkey: "x", password: PASSWORD },
    });
    expect(reply.to).toBe("/console/account");
  });
});

describe("the kill switch", () => {
  test("offers the way back where it was turned, as long as it stands so", async () => {
    const undoAt = async (path: string | null) =>
      /<a href="([^"]+)"[^>]*>Undo<\/a>/.exec((await as("admin").get(path ?? "")).html)?.[1] ?? null;
    const [on, off] = ["/console/settings/kill-switch/on", "/console/settings/kill-switch/off"];
    const { to: turnedOn } = await send(as("admin"), on, on);
    expect(await undoAt(turnedOn)).toBe(off);
    const { to: turnedOff } = await send(as("admin"), off, off);
    expect([await undoAt(turnedOn), await undoAt(turnedOff)]).toEqual([null, on]);
  });

  test("says what it stops and how much money that is, then stops it, and goes off again", async () => {
    await service.opened(home, { amount: "400000" });
    const path = "/console/settings/kill-switch/on";
    const { text } = await as("admin").get(path);
    for (const said of [
      "live: cannot be held 0.60 USDC live: held, and goes on 0.40 USDC",
      "sandbox: cannot be held 1.00 USDC sandbox: held, and goes on 0.00 USDC",
    ])
      expect(text).toContain(said);
    expect(text).toContain("What is held goes on");
    expect((await send(as("admin"), path, path)).to).toBe("/console/settings?done=kill_on");
    const refused = await service.post("/v1/warrants", service.body(), { as: home.live.as });
    expect(refused.code).toBe("kill_switch_active");
    expect((await newestEntry())?.actor).toEqual({ kind: "user", id: home.people.admin.id });
    const off = "/console/settings/kill-switch/off";
    expect((await send(as("admin"), off, off)).to).toBe("/console/settings?done=kill_off");
    expect((await organisation()).killSwitch).toBe(false);
  });

  test("knows no other state", async () => {
    expect((await as("admin").get("/console/settings/kill-switch/maybe")).to).toBe("/console/settings");
    expect((await sendUnasked(as("admin"), "/console/settings/kill-switch/maybe")).to).toBe(
      "/console/settings",
    );
    expect((await organisation()).killSwitch).toBe(false);
  });
});

describe("the owner's switches", () => {
  const THRESHOLD = "/console/settings/passkey-threshold";
  test.each([
    ["250.00", 250_000_000n],
    ["1 000.5", 1_000_500_000n],
    ["0", 0n],
    ["", null],
  ])("the threshold %j is set", async (amount, kept) => {
    const reply = await send(as("owner"), "/console/settings", THRESHOLD, { amount });
    expect(reply.to).toBe("/console/settings?done=threshold");
    expect((await organisation()).passkeyThreshold).toBe(kept);
  });

  test.each(["-1", "1e3", "abc", "0.0000001"])(
    "the threshold %j is refused beside its field",
    async (amount) => {
      const reply = await send(as("owner"), "/console/settings", THRESHOLD, { amount });
      expect([reply.status, reply.html.includes('id="amount-problem"')]).toEqual([400, true]);
      expect(fieldsOf(reply.html, THRESHOLD).amount).toBe(amount);
      expect((await organisation()).passkeyThreshold).toBeNull();
    },
  );

  test("the second factor is asked for, and of the one who turned it on too", async () => {
    const path = "/console/settings/second-factor";
    expect((await send(as("owner"), "/console/settings", path)).to).toBe("/console/settings?done=factor");
    expect((await organisation()).secondFactor).toBe(true);
    const { status, to } = await as("owner").get("/console/settings");
    expect([status, to]).toEqual([303, "/console/passkey?next=%2Fconsole%2Fsettings"]);
  });

  test("specs on receipts are hidden, and shown again", async () => {
    const path = "/console/settings/receipt-specs";
    for (const hidden of [true, false]) {
      expect((await send(as("admin"), "/console/settings", path)).to).toBe("/console/settings?done=specs");
      expect((await organisation()).hidesSpecs).toBe(hidden);
    }
  });
});

describe("each role sees what is", () => {
  test.each([
    ["viewer", []],
    ["operator", []],
    ["admin", ["receipt-specs"]],
    ["owner", ["passkey-threshold", "second-factor", "receipt-specs"]],
  ] as const)("a %s changes %j", async (role, forms) => {
    const { html, text } = await as(role).get("/console/settings");
    const found = [...html.matchAll(/action="\/console\/settings\/([^"]+)"/g)].map(([, name]) => name);
    expect(found).toEqual([...forms]);
    expect(text).toContain("Kill switch Off");
    expect(text.includes("This instance")).toBe(role === "admin" || role === "owner");
  });
});

test("the instance says where it is, how it is, and by which key it signs", async () => {
  const { text, html } = await as("admin").get("/console/settings");
  const base = `http://localhost:${new URL(service.url).port}`;
  const { kid } = service.ctx.tokens.jwks.keys[0]!;
  for (const said of [base, "ready", "the server makes none by itself", "in the local log alone", kid])
    expect([said, text.includes(said)]).toEqual([said, true]);
  const { log, instance } = await service.ctx.store.read(async (reader) => ({
    log: await reader.log.size(),
    instance: await reader.instance.get(),
  }));
  expect(html).toContain(instance.id);
  expect(text).toContain(`${log} entries`);
});

describe("what was just switched", () => {
  test("is undone by the button beside what says so", async () => {
    const action = "/console/settings/receipt-specs";
    const before = await organisation();
    const { to } = await send(as("admin"), "/console/settings", action);
    expect(await organisation()).not.toEqual(before);
    const page = await as("admin").get(to ?? "");
    const [, notice = ""] = page.html.split('class="notice done"');
    expect(notice.split("</form>")[0]).toContain("Undo");
    await as("admin").post(action, fieldsOf(notice, action));
    expect(await organisation()).toEqual(before);
  });
});
