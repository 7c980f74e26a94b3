import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { issuePasswordReset } from "../../src/services/admin/password-resets.ts";
import { setSecondFactor } from "../../src/services/admin/switches.ts";
import { consoleOfShell, fieldsOf } from "../support/console.ts";
import { must, PASSWORD, type Person, type TestOrganisation } from "../support/organisations.ts";
import { enrol } from "../support/passkeys.ts";
import { type ShellService, startTestServer, startTestShell } from "../support/server.ts";

/** The pages of the console that somebody reaches by a link, or before everything else: a new password, and an owed passkey. */

const NEW_PASSWORD = "another battery staple";

let service: ShellService;
let home: TestOrganisation;
beforeAll(() => {
  service = startTestShell();
});
beforeEach(async () => {
  home = await service.organisation();
});
afterAll(() => service?.close());

const openAs = (as = {}) => consoleOfShell(service)(as);

test("/account leads to one's own account in the console", async () => {
  const { status, to } = await openAs(home.people.viewer.as).get("/account");
  expect([status, to]).toEqual([303, "/console/account"]);
});

test("what the page of a receipt loads is the console's, and is not there without it", async () => {
  const server = await startTestServer();
  for (const [path, type] of [
    ["/console/receipt.js", "text/javascript; charset=utf-8"],
    ["/console/receipt.css", "text/css; charset=utf-8"],
  ] as const) {
    const { headers } = await server.get(path);
    expect([headers.get("content-type"), headers.get("x-content-type-options")]).toEqual([type, "nosniff"]);
    const reply = await service.get(path);
    expect([reply.status, reply.code]).toEqual([404, "route_not_found"]);
  }
  await server.close();
});

describe("a new password", () => {
  const PATH = "/reset-password";
  const tokenFor = async ({ id }: Person): Promise<string> => {
    const { url } = must(await issuePasswordReset(service.ctx, MACHINE, { user_id: id }));
    return new URL(url).hash.slice(1);
  };
  const sends = (token: string, password: string) => openAs().post(PATH, { token, new_password: password });
  const signsIn = async ({ email }: Person, password: string) =>
    (await service.post("/auth/session", { email, password }, { key: null })).status;

  test("is chosen without a script, by the code of the link, once", async () => {
    const { viewer } = home.people;
    const page = await openAs().get(PATH);
    expect([page.status, fieldsOf(page.html, PATH)]).toEqual([200, { token: "", new_password: "" }]);
    const token = await tokenFor(viewer);
    const done = await sends(` ${token} `, NEW_PASSWORD);
    expect([done.status, done.text]).toEqual([200, expect.stringContaining("Your password is set.")]);
    expect([await signsIn(viewer, PASSWORD), await signsIn(viewer, NEW_PASSWORD)]).toEqual([401, 201]);
    const again = await sends(token, PASSWORD);
    expect([again.status, again.text]).toEqual([401, expect.stringContaining("link")]);
    expect(await signsIn(viewer, PASSWORD)).toBe(401);
  });

  test("that is weak is refused beside its field, and the code stays", async () => {
    const { operator } = home.people;
    const token = await tokenFor(operator);
    for (const weak of ["", "short"]) {
      const { status, html } = await sends(token, weak);
      expect([weak, status, html.includes('id="new_password-problem"')]).toEqual([weak, 400, true]);
      expect(fieldsOf(html, PATH)).toEqual({ token, new_password: "" });
    }
    expect(await signsIn(operator, PASSWORD)).toBe(201);
  });

  test("is not set from another site", async () => {
    const { admin } = home.people;
    const fields = { token: await tokenFor(admin), new_password: NEW_PASSWORD };
    const { status } = await openAs().post(PATH, fields, { "Sec-Fetch-Site": "cross-site" });
    expect(status).toBe(401);
    expect([await signsIn(admin, NEW_PASSWORD), await signsIn(admin, PASSWORD)]).toEqual([401, 201]);
  });
});

describe("somebody who owes a passkey", () => {
  const PASSKEY = "/console/passkey";
  const turnOn = async () =>
    void must(await setSecondFactor(service.ctx, MACHINE, { organisation_id: home.id, on: true }));

  test("is led to it from wherever they are, and a form says so", async () => {
    const owner = openAs(home.people.owner.as);
    const form = await owner.formOn("/console/settings", "/console/mode");
    await turnOn();
    for (const [path, back] of [
      ["/console", "%2Fconsole"],
      ["/console/warrants?state=held", "%2Fconsole%2Fwarrants%3Fstate%3Dheld"],
    ] as const) {
      const { status, to } = await owner.get(path);
      expect([path, status, to]).toEqual([path, 303, `${PASSKEY}?next=${back}`]);
    }
    const { status, html } = await owner.post("/console/mode", { ...form, mode: "sandbox" });
    expect([status, html.includes(`href="${PASSKEY}"`)]).toEqual([403, true]);
  });

  test("adds the first one there, or uses theirs, or signs out", async () => {
    const { admin, operator } = home.people;
    await enrol(service, operator);
    // One that was there when the passkey was registered has proved it.
    const again = await home.signIn(operator);
    await turnOn();
    const first = await openAs(admin.as).get(PASSKEY);
    expect([first.status, first.text]).toEqual([200, expect.stringContaining("you have none yet")]);
    expect([first.html.includes("data-add-passkey"), first.html.includes("data-passkey-sign-in")]).toEqual([
      ...[true, false],
    ]);
    const second = await openAs(again).get(`${PASSKEY}?next=/console/agents`);
    expect(second.text).toContain("asks you for your passkey beside the password");
    expect([second.html.includes("data-add-passkey"), second.html.includes("data-passkey-sign-in")]).toEqual([
      ...[false, true],
    ]);
    expect(second.html).toContain('name="next" value="/console/agents"');
    for (const as of [admin.as, again]) {
      const browser = openAs(as);
      const { to } = await browser.post(
        "/console/sign-out",
        await browser.formOn(PASSKEY, "/console/sign-out"),
      );
      expect(to).toBe("/console/sign-in");
      expect((await service.get("/auth/session", { as })).status).toBe(401);
    }
  });

  test("and nobody else sees that page; it leads to no other site", async () => {
    await turnOn();
    const { viewer, admin } = home.people;
    for (const [as, next, to] of [
      [viewer.as, "/console/agents", "/console/agents"],
      [viewer.as, "https://evil.example", "/console"],
      [{}, "/console/agents", "/console/sign-in?next=%2Fconsole%2Fagents"],
      [{}, "//evil.example", "/console/sign-in?next=%2Fconsole"],
    ] as const)
      expect([next, (await openAs(as).get(`${PASSKEY}?next=${encodeURIComponent(next)}`)).to]).toEqual([
        next,
        to,
      ]);
    const { html } = await openAs(admin.as).get(
      `${PASSKEY}?next=${encodeURIComponent("https://evil.example")}`,
    );
    expect(html).not.toContain('evil.example"');
  });
});
