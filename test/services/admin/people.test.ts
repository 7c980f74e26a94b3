import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { PersonCaller, Role } from "../../../src/core/roles.ts";
import { type Authority, MACHINE } from "../../../src/services/admin/authority.ts";
import { createOrganisation } from "../../../src/services/admin/organisations.ts";
import { createUser, type UserInput } from "../../../src/services/admin/users.ts";
import { createTestContext, TEST_NOW, type TestContext } from "../../support/context.ts";
import { type Expected, expectRefused } from "../../support/refused.ts";
import { must } from "../../support/stage.ts";

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
    expect(organisation).toEqual({ id: organisation.id, object: "organisation", name: "Acme", created_at });
    expect(organisation.id).toStartWith("org_");
    expect(owner).toEqual({
      id: owner.id,
      object: "user",
      organisation_id: organisation.id,
      email: "ada.lovelace@example.com",
      name: "ada.lovelace",
      role: "owner",
      created_at,
    });
    const kept = ctx.store.reader.users.byEmail("ada.lovelace@example.com");
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
    ["a password of 7", { owner_password: "1234567" }, ["validation_failed", "owner_password: "]],
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
    expect(ctx.store.reader.users.get(user.id)?.role).toBe("operator");
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

  const person = (role: Role, of = organisationId): PersonCaller => ({
    kind: "person",
    userId: "usr_caller",
    role,
    organisationId: of,
    mode: "live",
  });
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
      const create = (authority: Authority) =>
        createUser(ctx, authority, { ...input(), email: `${by}-${role}@example.com`, role });
      if (may) expect(must(await create(person(by))).role).toBe(role);
      else await expectRefused(ctx, () => create(person(by)), ["insufficient_role", "This needs the role"]);
    });
  }

  test("an owner of another organisation finds none", () =>
    expectRefused(ctx, () => createUser(ctx, person("owner", "org_other"), input()), [
      "organisation_not_found",
      "",
    ]));
});
