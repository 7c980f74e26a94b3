import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { AUDIT_ACTIONS } from "../../src/core/audit-entry.ts";
import { ROLES, type Role } from "../../src/core/roles.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { createUser } from "../../src/services/admin/users.ts";
import { fieldsOf, openConsole, type Shown } from "../support/console.ts";
import { must, PASSWORD, type TestOrganisation } from "../support/organisations.ts";
import { type Service, startTestServer } from "../support/server.ts";

/** People and the audit log in the console: who may do what to whom, and what is shown once. */

const NEW_PASSWORD = "velvet harbour ginger notion";

let service: Service;
let home: TestOrganisation;
beforeAll(async () => {
  service = await startTestServer();
});
beforeEach(async () => {
  home = await service.organisation(0n);
});
afterAll(() => service?.close());

const as = (role: Role) => openConsole(service, home.people[role].as);
type Browser = ReturnType<typeof openConsole>;

/** Sends the form that a page has for an action, with these values. */
async function send(browser: Browser, page: string, action: string, fields: object = {}): Promise<Shown> {
  return browser.post(action, { ...(await browser.formOn(page, action)), ...fields });
}
/** Sends a form that the page does not show to this person, as somebody who wrote it by hand would. */
async function sendUnasked(browser: Browser, action: string, fields: object = {}): Promise<Shown> {
  const { _mode = "" } = await browser.formOn("/console/settings", "/console/mode");
  return browser.post(action, { _key: crypto.randomUUID(), _mode, ...fields });
}
const person = (role: Role) => `/console/people/${home.people[role].id}`;
const invite = (by: Browser, role: Role, email = `${crypto.randomUUID()}@example.com`) =>
  send(by, "/console/people/new", "/console/people/new", { name: "Grace", email, role });
const linkIn = ({ html }: Shown): string => /\/reset-password#([A-Za-z0-9_-]{43})/.exec(html)?.[1] ?? "";
const choose = (token: string) =>
  service.post("/auth/password/reset", { token, new_password: NEW_PASSWORD }, { key: null });
const entries = () => service.ctx.store.read(({ auditEntries }) => auditEntries.list(home.id, null, 100));
const userOf = (email: string) => service.ctx.store.read(({ users }) => users.byEmail(email));

describe("the list", () => {
  test("has everybody with role, last sign-in and passkeys, and nobody of another organisation", async () => {
    const other = await service.organisation(0n);
    const { text } = await as("admin").get("/console/people");
    for (const role of ROLES) expect(text).toContain(home.people[role].email);
    expect(text).not.toContain(other.people.owner.email);
    expect(text).toContain("(you)");
    const bob = must(
      await createUser(service.ctx, MACHINE, {
        ...{ organisation_id: home.id, email: "bob@example.com", password: PASSWORD, role: "viewer" },
      }),
    );
    const { html } = await as("admin").get("/console/people");
    const row = html.split("<tr>").find((part) => part.includes(bob.id));
    expect(row).toContain("not lately");
  });

  test("is paged", async () => {
    for (let count = 0; count < 25; count++) {
      must(
        await createUser(service.ctx, MACHINE, {
          ...{ organisation_id: home.id, email: `p${count}-${home.id}@example.com` },
          ...{ password: PASSWORD, role: "viewer", name: `Person ${count}` },
        }),
      );
    }
    const first = await as("owner").get("/console/people");
    const next = /href="(\/console\/people\?after=usr_\w+)"/.exec(first.html)?.[1] ?? "";
    const second = await as("owner").get(next);
    const names = (html: string) => [...html.matchAll(/\/console\/people\/(usr_\w+)"/g)].map(([, id]) => id);
    expect([names(first.html).length, names(second.html).length]).toEqual([25, 4]);
    expect(new Set([...names(first.html), ...names(second.html)]).size).toBe(29);
  });

  test.each(["viewer", "operator"] as const)("a %s sees no way to it", async (role) => {
    const { html } = await as(role).get("/console");
    expect(html).not.toContain('href="/console/people"');
  });
});

describe("an invitation", () => {
  test("is a link, shown once, by which somebody chooses a password and signs in", async () => {
    const email = "grace@example.com";
    const made = await invite(as("admin"), "operator", email);
    expect([made.status, made.text.includes("Grace is invited")]).toEqual([200, true]);
    const token = linkIn(made);
    const user = await userOf(email);
    const page = `/console/people/${user?.id}`;
    expect((await as("admin").get(page)).text).toContain("Invited");
    for (const path of [page, "/console/people", "/console/audit-log"])
      expect((await as("admin").get(path)).html).not.toContain(token);
    // Nobody knows a password of theirs before they chose one.
    const early = await service.post("/auth/session", { email, password: "" }, { key: null });
    expect(early.status).not.toBe(201);
    expect((await choose(token)).status).toBe(204);
    expect((await choose(token)).status).toBe(401);
    const session = await service.post("/auth/session", { email, password: NEW_PASSWORD }, { key: null });
    expect(session.body.user).toMatchObject({ name: "Grace", role: "operator" });
    expect((await as("admin").get(page)).text).not.toContain("Invited");
    // A first password is no reset: a passkey that is enrolled now counts.
    expect((await userOf(email))?.passwordResetAt).toBeNull();
  });

  test("is good for seven days, and the audit log names who made it", async () => {
    await invite(as("owner"), "admin", "hal@example.com");
    const [link, created] = await entries();
    expect([created?.action, link?.action]).toEqual(["user.created", "user.password_reset_issued"]);
    for (const entry of [created, link])
      expect(entry?.actor).toEqual({ kind: "user", id: home.people.owner.id });
    const { expires_at } = { expires_at: "", ...link?.after };
    const days = (Date.parse(expires_at) - service.ctx.now()) / 86_400_000;
    expect(Math.abs(days - 7)).toBeLessThan(0.1);
  });

  test("can be made again while nobody has used it; then the one before is void", async () => {
    const first = linkIn(await invite(as("owner"), "owner", "ivy@example.com"));
    const { id = "" } = (await userOf("ivy@example.com")) ?? {};
    const page = `/console/people/${id}`;
    // They have nothing yet that a link could take over, so whoever may invite an owner may do it again.
    const second = linkIn(await send(as("owner"), page, `${page}/reset-link`));
    expect((await choose(first)).status).toBe(401);
    expect((await choose(second)).status).toBe(204);
    const third = await sendUnasked(as("owner"), `${page}/reset-link`);
    expect([third.status, linkIn(third)]).toEqual([403, ""]);
  });

  test.each([
    ["admin", "admin"],
    ["admin", "owner"],
  ] as const)("of an %s as %s is refused, and not offered", async (by, role) => {
    const page = await as(by).get("/console/people/new");
    expect(page.html).not.toContain(`<option value="${role}"`);
    const reply = await invite(as(by), role, "eve@example.com");
    expect([reply.status, reply.text]).toEqual([403, expect.stringContaining("needs the role owner")]);
    expect(await userOf("eve@example.com")).toBeNull();
  });

  test.each([
    ["a taken e-mail", { email: "" }, 400, "email"],
    ["no e-mail", { email: "grace" }, 400, "email"],
    ["no name", { name: " " }, 400, "name"],
    ["no such role", { role: "king" }, 400, "role"],
  ])("with %s shows the form again, with what is wrong beside the field", async (_, wrong, status, field) => {
    const fields = { name: "Grace", email: "grace@x.example", role: "viewer", ...wrong };
    const reply = await send(as("owner"), "/console/people/new", "/console/people/new", fields);
    expect([reply.status, reply.html.includes(`id="${field}-problem"`)]).toEqual([status, true]);
  });

  test("of somebody who is here already is refused", async () => {
    const reply = await invite(as("owner"), "viewer", home.people.viewer.email);
    expect([reply.status, reply.text]).toEqual([409, expect.stringContaining("exists already")]);
  });
});

describe("a role", () => {
  test("is changed, at once, and the audit log has it in words", async () => {
    const reply = await send(as("admin"), person("viewer"), `${person("viewer")}/role`, { role: "operator" });
    expect(reply.to).toBe(`${person("viewer")}?done=role`);
    expect((await as("viewer").get("/console/warrants/new")).status).toBe(200);
    const { text } = await as("admin").get("/console/audit-log?what=user");
    expect(text).toContain("changed the role of viewer-");
    expect(text).toContain("role viewer → operator");
  });

  /** Whom a person may give which role. Everything else is refused, and changes nothing. */
  const MAY: readonly (readonly [by: Role, whom: Role, to: Role, status: number])[] = [
    ["admin", "operator", "viewer", 303],
    ["admin", "viewer", "admin", 403],
    ["admin", "owner", "viewer", 403],
    ["admin", "admin", "viewer", 403],
    ["owner", "admin", "owner", 303],
    ["owner", "owner", "viewer", 409],
    ["operator", "viewer", "operator", 403],
  ];
  test.each(MAY)("by %s for a %s to %s: %d", async (by, whom, to, status) => {
    const reply = await sendUnasked(as(by), `${person(whom)}/role`, { role: to });
    expect(reply.status).toBe(status);
    const user = await userOf(home.people[whom].email);
    expect(user?.role).toBe(status === 303 ? to : whom);
  });

  test("is judged as it is at the commit: somebody who was demoted meanwhile changes nothing", async () => {
    const fields = {
      ...(await as("admin").formOn(person("viewer"), `${person("viewer")}/role`)),
      role: "operator",
    };
    await sendUnasked(as("owner"), `${person("admin")}/role`, { role: "viewer" });
    expect((await as("admin").post(`${person("viewer")}/role`, fields)).status).toBe(403);
  });
});

describe("a removal", () => {
  test("says what ends, and then ends it", async () => {
    const page = await as("admin").get(`${person("operator")}/remove`);
    expect(page.text).toContain("Sign-ins that end now: 1");
    const reply = await send(as("admin"), `${person("operator")}/remove`, `${person("operator")}/remove`);
    expect(reply.to).toBe("/console/people?done=removed");
    expect((await as("operator").get("/console")).to).toContain("/console/sign-in");
    expect((await as("admin").get(person("operator"))).status).toBe(404);
  });

  test.each([
    ["admin", "owner", 403],
    ["owner", "owner", 409],
  ] as const)("by %s of an %s: %d", async (by, whom, status) => {
    expect((await sendUnasked(as(by), `${person(whom)}/remove`)).status).toBe(status);
    expect(await userOf(home.people[whom].email)).not.toBeNull();
  });

  test("of somebody of another organisation is as if they were not there", async () => {
    const other = await service.organisation(0n);
    const path = `/console/people/${other.people.viewer.id}`;
    expect((await as("owner").get(path)).status).toBe(404);
    for (const action of ["role", "remove", "reset-link", "sign-out"])
      expect((await sendUnasked(as("owner"), `${path}/${action}`, { role: "viewer" })).status).toBe(404);
  });
});

describe("a reset link", () => {
  test.each([
    ["admin", "operator", 200],
    ["admin", "admin", 403],
    ["admin", "owner", 403],
    ["owner", "admin", 200],
    ["owner", "owner", 403],
  ] as const)("by %s for a %s: %d", async (by, whom, status) => {
    const reply = await sendUnasked(as(by), `${person(whom)}/reset-link`);
    expect([reply.status, linkIn(reply) !== ""]).toEqual([status, status === 200]);
    if (status !== 200) return;
    expect((await choose(linkIn(reply))).status).toBe(204);
    // A passkey that is enrolled within a day does not count for the threshold.
    expect((await userOf(home.people[whom].email))?.passwordResetAt).not.toBeNull();
  });

  test("is the operator's alone for passkeys: the page says how", async () => {
    const { text } = await as("owner").get(person("admin"));
    expect(text).toContain(`holdfast users reset-passkeys ${home.people.admin.id}`);
  });
});

describe("sign-ins", () => {
  test("are listed, one is ended, and all are", async () => {
    for (const _ of [1, 2]) await home.signIn(home.people.viewer);
    const page = await as("admin").get(person("viewer"));
    const ids = [...page.html.matchAll(/name="sign_in" value="(sgn_\w+)"/g)].map(([, id = ""]) => id);
    expect(ids).toHaveLength(3);
    const action = `${person("viewer")}/sign-out`;
    const one = await sendUnasked(as("admin"), action, { sign_in: ids[0] });
    expect(one.to).toBe(`${person("viewer")}?done=ended`);
    expect((await as("admin").get(person("viewer"))).html).not.toContain(ids[0]!);
    expect((await sendUnasked(as("admin"), action)).status).toBe(303);
    expect((await as("viewer").get("/console")).to).toContain("/console/sign-in");
    expect((await as("admin").get(person("viewer"))).text).toContain("Nobody is signed in as this person.");
  });

  test("of admins are an owner's business", async () => {
    const { html, text } = await as("admin").get(person("owner"));
    expect(html).not.toContain('name="sign_in"');
    expect(text).toContain("Only an owner manages admins and owners.");
    expect((await sendUnasked(as("admin"), `${person("owner")}/sign-out`)).status).toBe(403);
    expect((await as("owner").get("/console")).status).toBe(200);
  });
});

describe("the audit log", () => {
  const linesOf = ({ html }: Shown) =>
    html.split('<ul class="steps entries"')[1]?.split("<li>").slice(1) ?? [];

  test("is filtered by who, what and which; what the address says wrongly is left out", async () => {
    await send(as("admin"), person("viewer"), `${person("viewer")}/role`, { role: "operator" });
    await sendUnasked(as("owner"), `${person("admin")}/role`, { role: "operator" });
    const owner = home.people.owner.id;
    const log = (query: string) => as("owner").get(`/console/audit-log?${query}`);
    const byOwner = linesOf(await log(`who=${owner}&what=user&about=${home.people.admin.id}`));
    expect(byOwner).toHaveLength(1);
    expect(byOwner[0]).toContain("changed the role of");
    const byMachine = linesOf(await log("who=machine"));
    expect(byMachine.length).toBeGreaterThan(3);
    for (const line of byMachine) expect(line).toContain("The machine&#39;s operator");
    expect((await log("what=policy")).text).toContain("No entry is like that");
    expect((await log("what=nothing&who=x&after=%27")).status).toBe(200);
  });

  test("is paged to its end, without a gap", async () => {
    for (let count = 0; count < 30; count++) await home.signIn(home.people.viewer);
    let path = "/console/audit-log";
    const seen: string[] = [];
    for (let page = 0; page < 10 && path !== ""; page++) {
      const shown = await as("admin").get(path);
      seen.push(...[...shown.html.matchAll(/<\/time><\/li>/g)].map(([end]) => end));
      path = /href="([^"]+)" rel="next"/.exec(shown.html)?.[1]?.replaceAll("&amp;", "&") ?? "";
    }
    expect(seen).toHaveLength((await entries()).length);
  });

  test("shows amounts and times of what changed as people read them, and the rest as it is", async () => {
    const browser = as("owner");
    await send(browser, "/console/settings", "/console/settings/passkey-threshold", { amount: "8.40" });
    const { html, text } = await browser.get("/console/audit-log");
    expect(text).toContain("passkey threshold 8.40 USDC");
    expect(html).toContain('title="8400000 in the smallest unit of USDC"');
  });

  test("shows nothing of another organisation, and escapes what others wrote", async () => {
    const other = await service.organisation(0n);
    const page = await send(as("owner"), "/console/people/new", "/console/people/new", {
      ...{ name: "<script>alert(1)</script>", email: "mallory@example.com", role: "viewer" },
    });
    const log = await as("owner").get("/console/audit-log");
    for (const { html } of [page, log]) expect(html).not.toContain("<script>alert");
    expect(log.html).not.toContain(other.people.owner.id);
    expect(log.html).not.toContain(other.people.owner.email);
  });

  test("has words for each action", async () => {
    expect(AUDIT_ACTIONS.length).toBeGreaterThan(40);
    const { html } = await as("owner").get("/console/audit-log");
    expect(linesOf({ html } as Shown).join("")).not.toContain("undefined");
    expect(fieldsOf(html, "/console/audit-log")).toHaveProperty("about");
  });
});
