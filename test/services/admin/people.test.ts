import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import type { Passkey } from "../../../src/core/passkey.ts";
import { type PersonCaller, ROLES, type Role } from "../../../src/core/roles.ts";
import { type Authority, MACHINE } from "../../../src/services/admin/authority.ts";
import { createOrganisation } from "../../../src/services/admin/organisations.ts";
import { issuePasswordReset } from "../../../src/services/admin/password-resets.ts";
import {
  createUser,
  listUsers,
  removeUser,
  resetPasskeys,
  setUserRole,
  type UserInput,
} from "../../../src/services/admin/users.ts";
import { resetPassword } from "../../../src/services/auth/password.ts";
import { callerAt } from "../../support/client.ts";
import { createTestContext, TEST_NOW, type TestContext } from "../../support/context.ts";
import { type Expected, expectRefused } from "../../support/refused.ts";
import { must, signedIn } from "../../support/stage.ts";

const PASSWORD = "correct horse";
let ctx: TestContext;
let organisationId: string;

beforeAll(async () => {
  ctx = createTestContext();
  const created = must(
    await createOrganisation(ctx, {
      name: "First",
      owner_email: "first@example.com",
      owner_password: PASSWORD,
    }),
  );
  organisationId = created.organisation.id;
});
afterAll(() => ctx.close());

describe("createOrganisation", () => {
  const input = { name: "Acme", owner_email: " Ada.Lovelace@Example.COM ", owner_password: PASSWORD };

  test("creates the organisation and its owner, whose e-mail is in lower case", async () => {
    const { organisation, owner } = must(await createOrganisation(ctx, input));
    const created_at = new Date(TEST_NOW).toISOString();
    expect(organisation).toEqual({
      id: organisation.id,
      object: "organisation",
      name: "Acme",
      kill_switch: false,
      passkey_threshold: null,
      receipt_specs: "shown",
      second_factor: false,
      messaging_decisions: false,
      created_at,
    });
    expect(organisation.id).toStartWith("org_");
    expect(owner).toEqual({
      id: owner.id,
      object: "user",
      organisation_id: organisation.id,
      email: "ada.lovelace@example.com",
      name: "ada.lovelace",
      role: "owner",
      created_at,
      removed_at: null,
    });
    const kept = ctx.reader.users.byEmail("ada.lovelace@example.com");
    expect(kept?.passwordHash).toBe(`test:${PASSWORD}`);
    expect(JSON.stringify([organisation, owner])).not.toContain(PASSWORD);
  });

  const REFUSED: readonly (readonly [string, Partial<typeof input>, Expected])[] = [
    ["an empty name", { name: "" }, ["validation_failed", "name: "]],
    ["a blank name", { name: "  " }, ["validation_failed", "name: "]],
    ["a name of 201", { name: "x".repeat(201) }, ["validation_failed", "name: "]],
    ["a name of two lines", { name: "a\nb" }, ["validation_failed", "name: "]],
    ["half a character", { name: "\ud83d" }, ["validation_failed", "name: "]],
    ["an e-mail without @", { owner_email: "ada" }, ["validation_failed", "owner_email: "]],
    ["an e-mail with two @", { owner_email: "a@b@c" }, ["validation_failed", "owner_email: "]],
    ["an e-mail with a space", { owner_email: "a b@c.de" }, ["validation_failed", "owner_email: "]],
    ["an e-mail of 255", { owner_email: `${"a".repeat(249)}@b.cde` }, ["validation_failed", "owner_email: "]],
    ["a taken e-mail", { owner_email: "First@example.com" }, ["already_exists", "owner_email: "]],
    ["a password of 11", { owner_password: "12345678901" }, ["validation_failed", "owner_password: "]],
    ["a password of 257", { owner_password: "x".repeat(257) }, ["validation_failed", "owner_password: "]],
  ];
  for (const [what, change, expected] of REFUSED) {
    test(`refuses ${what}: no organisation, no owner`, () =>
      expectRefused(
        ctx,
        () => createOrganisation(ctx, { ...input, owner_email: "new@x.org", ...change }),
        expected,
      ));
  }

  test("of two at once with one e-mail, one is created, whole", async () => {
    const both = await Promise.all(
      [1, 2].map(() => createOrganisation(ctx, { ...input, owner_email: "race@x.org" })),
    );
    expect(both.filter((one) => "refused" in one)).toEqual([
      { refused: "already_exists", message: expect.stringContaining("race@x.org") },
    ]);
  });
});

describe("createUser", () => {
  const input = (): UserInput => ({
    organisation_id: organisationId,
    email: "new@example.com",
    password: PASSWORD,
    role: "viewer",
  });

  test("creates a person under a given name", async () => {
    const user = must(
      await createUser(ctx, MACHINE, {
        ...input(),
        email: "Grace@example.com",
        name: "Grace",
        role: "operator",
      }),
    );
    expect(user).toMatchObject({
      organisation_id: organisationId,
      email: "grace@example.com",
      name: "Grace",
    });
    expect(ctx.reader.users.get(user.id)?.role).toBe("operator");
  });

  const REFUSED: readonly (readonly [string, Partial<UserInput>, Expected])[] = [
    ["an unknown role", { role: "god" as Role }, ["validation_failed", "role: must be one of viewer"]],
    ["a bad e-mail", { email: "@" }, ["validation_failed", "email: "]],
    ["a short password", { password: "short" }, ["validation_failed", "password: "]],
    ["a bad name", { name: "\u0000" }, ["validation_failed", "name: "]],
    ["an unknown organisation", { organisation_id: "org_none" }, ["organisation_not_found", ""]],
    ["a taken e-mail", { email: "FIRST@example.com" }, ["already_exists", "email: "]],
  ];
  for (const [what, change, expected] of REFUSED) {
    test(`refuses ${what}: no person`, () =>
      expectRefused(ctx, () => createUser(ctx, MACHINE, { ...input(), ...change }), expected));
  }

  /** A person of the organisation; where another organisation is named, they claim to belong to that. */
  async function person(role: Role, of = organisationId): Promise<PersonCaller> {
    const email = `caller-${crypto.randomUUID()}@example.com`;
    const { id } = must(await createUser(ctx, MACHINE, { ...input(), email, role }));
    const caller = await signedIn(ctx, { kind: "person", userId: id, role, organisationId, mode: "live" });
    return { ...caller, organisationId: of };
  }
  const BY_ROLE: readonly (readonly [Role, Role, boolean])[] = [
    ["viewer", "viewer", false],
    ["operator", "viewer", false],
    ["admin", "operator", true],
    ["admin", "admin", false],
    ["admin", "owner", false],
    ["owner", "admin", true],
    ["owner", "owner", true],
  ];
  for (const [by, role, may] of BY_ROLE) {
    test(`${by} ${may ? "creates" : "may not create"} ${role}`, async () => {
      const authority = await person(by);
      const create = () =>
        createUser(ctx, authority, { ...input(), email: `${by}-${role}@example.com`, role });
      if (may) expect(must(await create()).role).toBe(role);
      else await expectRefused(ctx, create, ["insufficient_role", "This needs the role"]);
    });
  }

  test("an owner of another organisation finds nobody", async () => {
    const owner = await person("owner", "org_other");
    await expectRefused(ctx, () => createUser(ctx, owner, input()), ["organisation_not_found", ""]);
  });
});

describe("who manages whom", () => {
  let people: Record<Role, string>;
  let callers: Record<Role, PersonCaller>;
  let second: string;
  let stranger: string;
  let count = 0;

  beforeEach(async () => {
    const organisation = async () => {
      const email = `owner-${++count}@manage.example`;
      return must(
        await createOrganisation(ctx, { name: "Managed", owner_email: email, owner_password: PASSWORD }),
      );
    };
    const { organisation: own, owner } = await organisation();
    organisationId = own.id;
    const create = async (role: Role) =>
      must(
        await createUser(ctx, MACHINE, {
          organisation_id: own.id,
          email: `${role}-${++count}@manage.example`,
          password: PASSWORD,
          role,
        }),
      ).id;
    people = {
      viewer: await create("viewer"),
      operator: await create("operator"),
      admin: await create("admin"),
      owner: owner.id,
    };
    const as = (role: Role) =>
      signedIn(ctx, { kind: "person", userId: people[role], role, organisationId, mode: "live" });
    callers = {
      viewer: await as("viewer"),
      operator: await as("operator"),
      admin: await as("admin"),
      owner: await as("owner"),
    };
    second = await create("owner");
    stranger = (await organisation()).owner.id;
  });

  const as = (role: Role): PersonCaller => callers[role];
  const roleOf = (id: string) => ctx.reader.users.get(id)?.role;
  const LOW: readonly Role[] = ["viewer", "operator"];
  /** Admins manage people below admin; owners manage everybody. */
  const manages = (by: Role, role: Role) => by === "owner" || (by === "admin" && LOW.includes(role));

  for (const by of ROLES) {
    for (const from of ROLES) {
      const targets = ROLES.filter((to) => to !== from);
      test(`${by} gives ${from} another role`, async () => {
        for (const to of targets) {
          const set = () => setUserRole(ctx, as(by), { user_id: people[from], role: to });
          if (manages(by, from) && manages(by, to)) {
            expect(must(await set())).toMatchObject({ id: people[from], role: to });
            expect(roleOf(people[from])).toBe(to);
            must(await setUserRole(ctx, MACHINE, { user_id: people[from], role: from }));
          } else {
            await expectRefused(ctx, set, ["insufficient_role", "This needs the role"]);
            expect(roleOf(people[from])).toBe(from);
          }
        }
      });
    }

    test(`${by} removes`, async () => {
      for (const role of ROLES) {
        const remove = () => removeUser(ctx, as(by), { user_id: people[role] });
        if (manages(by, role)) {
          const created = ctx.reader.users.get(people[role]);
          expect(must(await remove())).toMatchObject({
            id: people[role],
            role,
            removed_at: new Date(TEST_NOW).toISOString(),
          });
          expect(ctx.reader.users.byEmail(created?.email ?? "")).toBeNull();
        } else {
          await expectRefused(ctx, remove, ["insufficient_role", "This needs the role"]);
          expect(ctx.reader.users.get(people[role])?.removedAt).toBeNull();
        }
      }
    });
  }

  const list = (authority: Authority) => listUsers(ctx, authority, { organisation_id: organisationId });

  test("the machine manages everybody, and lists those who are there", async () => {
    must(await setUserRole(ctx, MACHINE, { user_id: people.viewer, role: "owner" }));
    must(await removeUser(ctx, MACHINE, { user_id: people.operator }));
    const listed = must(await list(MACHINE));
    expect(listed.object).toBe("list");
    expect(listed.data.map(({ id, role }) => [id, role])).toEqual([
      [people.owner, "owner"],
      [people.viewer, "owner"],
      [people.admin, "admin"],
      [second, "owner"],
    ]);
    expect(JSON.stringify(listed)).not.toMatch(/hash|test:/);
  });

  test("the list is for admins of the organisation", async () => {
    for (const by of ["admin", "owner"] as const) expect(must(await list(as(by))).data).toHaveLength(5);
    for (const by of LOW) expect(await list(as(by))).toMatchObject({ refused: "insufficient_role" });
    const foreign = { ...as("owner"), organisationId: "org_other" };
    expect(await list(foreign)).toMatchObject({ refused: "organisation_not_found" });
  });

  test("a person who is unknown, removed or of another organisation is not found", async () => {
    must(await removeUser(ctx, MACHINE, { user_id: people.viewer }));
    for (const user_id of ["usr_none", people.viewer, stranger]) {
      const verbs = [
        () => setUserRole(ctx, as("owner"), { user_id, role: "operator" as const }),
        () => removeUser(ctx, as("owner"), { user_id }),
      ];
      for (const verb of verbs) await expectRefused(ctx, verb, ["user_not_found", "There is no person"]);
    }
    expect(roleOf(stranger)).toBe("owner");
    await expectRefused(
      ctx,
      () => setUserRole(ctx, MACHINE, { user_id: people.admin, role: "god" as Role }),
      ["validation_failed", "role: must be one of viewer"],
    );
  });

  test("the last owner stays an owner, whoever asks", async () => {
    must(await removeUser(ctx, as("owner"), { user_id: second }));
    for (const authority of [MACHINE, as("owner")]) {
      for (const role of ["viewer", "operator", "admin"] as const) {
        const demote = () => setUserRole(ctx, authority, { user_id: people.owner, role });
        await expectRefused(ctx, demote, ["last_owner", ""]);
      }
      const remove = () => removeUser(ctx, authority, { user_id: people.owner });
      await expectRefused(ctx, remove, ["last_owner", ""]);
      expect(must(await setUserRole(ctx, authority, { user_id: people.owner, role: "owner" })).role).toBe(
        "owner",
      );
    }
    expect(roleOf(people.owner)).toBe("owner");
  });

  for (const [who, authorities, refused] of [
    ["the other", () => [as("owner"), { ...as("owner"), userId: second }], "insufficient_role"],
    ["the machine", () => [MACHINE, MACHINE], "last_owner"],
  ] as const) {
    test(`of two owners whom ${who} would demote and remove at once, one stays`, async () => {
      const [first, other] = [people.owner, second];
      const [one, two] = authorities() as [Authority, Authority];
      const answers = await Promise.all([
        setUserRole(ctx, one, { user_id: other, role: "admin" }),
        removeUser(ctx, two, { user_id: first }),
      ]);
      expect(answers.filter((answer) => "refused" in answer)).toEqual([
        { refused, message: expect.any(String) },
      ]);
      const owners = ctx.reader.users.list(organisationId).filter(({ role }) => role === "owner");
      expect(owners).toHaveLength(1);
    });
  }

  test("a passkey that is registered just before is deleted with its person", async () => {
    const removing = people.viewer;
    const passkey = passkeyOf(removing, "just-before");
    const [, removed] = await Promise.all([
      keeps(passkey),
      removeUser(ctx, as("owner"), { user_id: removing }),
    ]);
    must(removed);
    const { auditEntries, passkeys } = ctx.reader;
    expect(passkeys.of(removing)).toEqual([]);
    const [entry] = auditEntries.list(organisationId, null, 1);
    expect(entry).toMatchObject({
      action: "user.removed",
      subject: removing,
      before: { id: removing, passkeys: [{ id: passkey.id, name: passkey.name }] },
      after: { passkeys: [] },
    });
  });

  test("a passkey that is registered just before is deleted with the others", async () => {
    const [old, last] = [passkeyOf(people.viewer, "old"), passkeyOf(people.viewer, "last")];
    await keeps(old);
    const [, reset] = await Promise.all([keeps(last), resetPasskeys(ctx, { user_id: people.viewer })]);
    must(reset);
    const { auditEntries, passkeys } = ctx.reader;
    expect(passkeys.of(people.viewer)).toEqual([]);
    const [entry] = auditEntries.list(organisationId, null, 1);
    expect(entry?.before).toEqual({ passkeys: [last, old].map(({ id, name }) => ({ id, name })) });
  });

  const passkeyOf = (userId: string, name: string): Passkey => ({
    id: `${userId}-${name}`,
    organisationId,
    userId,
    name,
    publicKey: "",
    counter: 0,
    transports: [],
    countsForThreshold: true,
    createdAt: ctx.now(),
    lastUsedAt: null,
  });
  const keeps = (row: Passkey) =>
    ctx.store.execute({
      scope: { organisationId, mode: "live" },
      needs: {},
      decide: () => ({ answer: null, change: { put: [{ kind: "passkey", before: null, row }] } }),
    });

  test("a change of role voids the reset links that nobody used", async () => {
    const link = must(await issuePasswordReset(ctx, as("admin"), { user_id: people.viewer }));
    const token = link.url.split("#")[1]!;
    const use = () => resetPassword(ctx, { token, new_password: "another long one" }, callerAt("192.0.2.1"));
    must(await setUserRole(ctx, as("owner"), { user_id: people.viewer, role: "owner" }));
    const before = ctx.reader.users.get(people.viewer);
    await expectRefused(ctx, use, ["not_authenticated", "The link is unknown, used or out of date."]);
    expect(ctx.reader.users.get(people.viewer)).toEqual(before);
    // A change to the same role voids no link.
    const next = must(await issuePasswordReset(ctx, MACHINE, { user_id: people.viewer }));
    must(await setUserRole(ctx, as("owner"), { user_id: people.viewer, role: "owner" }));
    const input = { token: next.url.split("#")[1]!, new_password: "another long one" };
    expect(await resetPassword(ctx, input, callerAt("192.0.2.1"))).toBeNull();
  });

  test("an e-mail is free again once its person was removed; the id is another", async () => {
    const email = ctx.reader.users.get(people.viewer)?.email ?? "";
    must(await removeUser(ctx, MACHINE, { user_id: people.viewer }));
    const again = must(await createUser(ctx, MACHINE, { ...input(), email }));
    expect(again.id).not.toBe(people.viewer);
    expect(ctx.reader.users.byEmail(email)?.id).toBe(again.id);
  });

  const input = (): UserInput => ({
    organisation_id: organisationId,
    email: "x@manage.example",
    password: PASSWORD,
    role: "viewer",
  });
});
