import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createOrganisation } from "../../src/services/admin/organisations.ts";
import { offerSetUp } from "../../src/services/admin/set-up.ts";
import { offerSignIn } from "../../src/services/auth/sign-in-link.ts";
import { type Fields, fieldsOf, openConsole, type Shown } from "../support/console.ts";
import { must } from "../support/organisations.ts";
import { type Service, startTestServer } from "../support/server.ts";

/** The first run: a link makes the first organisation and its owner, and the first steps end with a warrant that works. */

const PASSWORD = "velvet harbour ginger notion";
const OWNER = { organisation: "Acme", name: "Ada Lovelace", email: "ada@example.com", password: PASSWORD };

let service: Service;
let token: string;
beforeAll(async () => {
  service = await startTestServer();
  token = service.setUpUrl?.split("#")[1] ?? "";
});
afterAll(() => service?.close());

const stranger = () => openConsole(service, {});
const send = (fields: Fields): Promise<Shown> => stranger().post("/console/set-up", fields);
const cookieOf = ({ headers }: Shown) => ({ Cookie: headers.get("set-cookie")?.split(";")[0] ?? "" });
const organisations = async () =>
  (await service.ctx.store.read((reader) => reader.organisations.list())).length;
/** What the audit log of the only organisation has, oldest first. */
async function auditLog() {
  const entries = await service.ctx.store.read(async (reader) => {
    const [only] = await reader.organisations.list();
    return reader.auditEntries.list(only?.id ?? "", null, 100);
  });
  return [...entries].reverse();
}

test("a link leads to a page of the console; its token follows the #, and only its hash is kept", async () => {
  const origin = `http://localhost:${new URL(service.url).port}`;
  expect(service.setUpUrl).toMatch(new RegExp(`^${origin}/console/set-up#[A-Za-z0-9_-]{43}$`));
  const page = await stranger().get("/console/set-up");
  expect(page.status).toBe(200);
  expect(page.html).not.toContain(token);
  expect(Object.keys(fieldsOf(page.html, "/console/set-up"))).toEqual([
    ...["token", "organisation", "name", "email", "password"],
  ]);
});

test("before there is an organisation, the sign-in says where the link is", async () => {
  const { text } = await stranger().get("/console/sign-in");
  expect(text).toContain("Holdfast is not set up yet");
  expect(text).not.toContain("Password");
});

describe("nothing is made", () => {
  const WITHOUT: readonly (readonly [string, Fields, number, string])[] = [
    ["without the code", { ...OWNER, token: "" }, 401, "unknown, used or out of date"],
    ["with another code", { ...OWNER, token: "A".repeat(43) }, 401, "unknown, used or out of date"],
    ["with a weak password", { ...OWNER, password: "password1234" }, 400, "must be harder to guess"],
    [
      "with a password of words that are known",
      { ...OWNER, password: "ada lovelace acme" },
      400,
      "must be harder to guess",
    ],
    ["with a short password", { ...OWNER, password: "short" }, 400, "must be a string of 12 to 256"],
    ["without a name of the organisation", { ...OWNER, organisation: " " }, 400, "1 to 200 characters"],
    ["without a name", { ...OWNER, name: "" }, 400, "1 to 200 characters"],
    ["with a bad e-mail", { ...OWNER, email: "ada" }, 400, "must be an e-mail address"],
  ];
  test.each(WITHOUT)("%s", async (_, fields, status, said) => {
    const reply = await send({ token, ...fields });
    expect([reply.status, reply.headers.get("set-cookie")]).toEqual([status, null]);
    expect(reply.text).toContain(said);
    expect(reply.html).not.toContain(fields.password ?? "");
    expect(await organisations()).toBe(0);
  });

  test("what was written stays in the form, but for the password", async () => {
    const { html } = await send({ token, ...OWNER, password: "short" });
    expect(fieldsOf(html, "/console/set-up")).toEqual({ token, ...OWNER, password: "" });
    expect(html).toMatch(/<p class="problem" id="password-problem">/);
  });
});

describe("once the form is right", () => {
  let replies: readonly Shown[];
  let owner: ReturnType<typeof openConsole>;
  beforeAll(async () => {
    // Of two who send it at once, one makes the organisation.
    replies = await Promise.all([send({ token, ...OWNER }), send({ token, ...OWNER })]);
    owner = openConsole(service, cookieOf(replies.find(({ status }) => status === 303)!));
  });

  test("one organisation is made, its owner is signed in to the sandbox, and the link is used up", async () => {
    expect(replies.map(({ status }) => status).sort()).toEqual([303, 401]);
    expect(replies.find(({ status }) => status === 303)?.to).toBe("/console/welcome");
    expect(await organisations()).toBe(1);
    const page = await owner.get("/console/welcome");
    expect([page.status, page.text.includes("Welcome, Ada Lovelace")]).toEqual([200, true]);
    expect(page.text).toContain("SANDBOX");
    expect((await send({ token, ...OWNER, email: "eve@example.com" })).status).toBe(401);
    expect((await stranger().get("/console/set-up")).to).toBe("/console");
    expect((await stranger().get("/console/sign-in")).text).toContain("Password");
  });

  test("the audit log names the owner", async () => {
    const [made, added] = await auditLog();
    expect([made?.action, added?.action]).toEqual(["organisation.created", "user.created"]);
    expect(made?.actor).toEqual({ kind: "user", id: added!.subject });
    expect(added?.after).toMatchObject({ email: OWNER.email, name: OWNER.name, role: "owner" });
  });

  test("a link that was printed before an organisation was made elsewhere makes no second one", async () => {
    const second = await startTestServer();
    try {
      const link = second.setUpUrl!;
      must(
        await createOrganisation(second.ctx, {
          ...{ name: "Elsewhere", owner_email: "bob@example.com", owner_password: PASSWORD },
        }),
      );
      const reply = await openConsole(second, {}).post("/console/set-up", {
        ...OWNER,
        token: link.split("#")[1]!,
      });
      expect([reply.status, reply.text]).toEqual([
        409,
        expect.stringContaining("has an organisation already"),
      ]);
      expect(await offerSetUp(second.ctx)).toBeNull();
    } finally {
      await second.close();
    }
  });

  test("the first steps end with money, an agent, its key and a warrant that was checked and paid", async () => {
    const fields = await owner.formOn("/console/welcome", "/console/welcome");
    const [done, twice] = await Promise.all([
      owner.post("/console/welcome", fields),
      owner.post("/console/welcome", fields),
    ]);
    expect([done.status, done.text.includes("It works Released")]).toEqual([200, true]);
    const [secret = ""] = /hf_test_[0-9A-Za-z]+/.exec(done.html) ?? [];
    expect(twice.html).toContain(secret);
    const { people, ...caller } = await service.ctx.store.read(async (reader) => {
      const [only] = await reader.organisations.list();
      const scope = { organisationId: only!.id, mode: "sandbox" } as const;
      const [agent, ...others] = await reader.agents.list(scope);
      const balances = await reader.balances.list(scope);
      return { agent, others, balances, people: await reader.users.list(only!.id) };
    });
    expect(people).toHaveLength(1);
    expect([caller.agent?.mustBeNamed, caller.others]).toEqual([true, []]);
    expect(caller.balances).toEqual([
      { asset: "USDC", balance: { available: 91_600_000n, held: 0n, paid: 8_400_000n } },
    ]);
    // The key is the agent's: it opened the warrant, whose check fetched something and passed.
    const as = { Authorization: `Bearer ${secret}` };
    const { body } = await service.get("/v1/warrants", { as });
    const [warrant] = body.data;
    expect(warrant).toMatchObject({ state: "released", agent_id: caller.agent?.id, amount: "8400000" });
    const checks = await service.get(`/v1/warrants/${warrant.id}/checks`, { as });
    expect(checks.body.data).toMatchObject([{ passed: true, http_status: 200, score: 10_000 }]);
    expect(checks.body.data[0].source_url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/forecast\.json$/);
    expect((await fetch(`${service.url}/t/${warrant.id}`)).status).toBe(200);
    // Whoever did it is in the audit log, and no other page shows the key.
    const actions = (await auditLog()).filter(({ actor }) => actor.id === people[0]!.id);
    expect(actions.map(({ action }) => action)).toEqual(
      expect.arrayContaining(["balance.funded", "agent.created", "api_key.created"]),
    );
    for (const path of ["/console/welcome", `/console/warrants/${warrant.id}`, "/console/audit-log"])
      expect((await owner.get(path)).html).not.toContain(secret);
  });

  test("taken again they bring another agent, and no second deposit", async () => {
    const fields = await owner.formOn("/console/welcome", "/console/welcome");
    expect((await owner.post("/console/welcome", fields)).text).toContain("It works");
    const { text } = await owner.get("/console");
    expect(text).toContain("Available 83.20 USDC");
  });

  test("they are in the sandbox only", async () => {
    const signIn = await stranger().post("/console/sign-in", { ...OWNER, mode: "live" });
    const live = openConsole(service, cookieOf(signIn));
    const page = await live.get("/console/welcome");
    expect(page.text).toContain("You are in live");
    const key = fieldsOf(page.html, "/console/mode");
    const reply = await live.post("/console/welcome", key);
    expect([reply.status, reply.text]).toEqual([400, expect.stringContaining("in the sandbox only")]);
  });
});

describe("a link that signs in", () => {
  const ownerId = async () => (await auditLog()).find(({ action }) => action === "user.created")!.subject;

  test("does so once, in the sandbox, and the audit log says by what", async () => {
    const link = offerSignIn(service.ctx, await ownerId());
    expect(link).toContain("/console/enter#");
    const fields = { token: link.split("#")[1]! };
    expect((await stranger().get("/console/enter")).html).not.toContain(fields.token);
    const reply = await stranger().post("/console/enter", fields);
    expect([reply.status, reply.to]).toEqual([303, "/console"]);
    expect((await openConsole(service, cookieOf(reply)).get("/console")).text).toContain("SANDBOX");
    expect((await stranger().post("/console/enter", fields)).status).toBe(401);
    const last = (await auditLog()).at(-1);
    expect(last).toMatchObject({ action: "user.signed_in", after: { by: "one-time link" } });
  });

  test("sets nothing up, and the other one signs nobody in", async () => {
    const link = offerSignIn(service.ctx, await ownerId()).split("#")[1]!;
    expect((await send({ ...OWNER, token: link })).status).toBe(401);
    service.ctx.startLinks.add({ kind: "set-up", userId: null }, "code");
    const reply = await stranger().post("/console/enter", { token: "code" });
    expect([reply.status, reply.headers.get("set-cookie")]).toEqual([401, null]);
  });
});
