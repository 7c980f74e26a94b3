import { afterEach, beforeEach, expect, test } from "bun:test";
import type { Refusal } from "../../../src/core/errors.ts";
import type { JudgeQuestion } from "../../../src/platform/password-judge.ts";
import { MACHINE } from "../../../src/services/admin/authority.ts";
import { createOrganisation } from "../../../src/services/admin/organisations.ts";
import { issuePasswordReset } from "../../../src/services/admin/password-resets.ts";
import { createUser } from "../../../src/services/admin/users.ts";
import { signedInBy } from "../../../src/services/auth/callers.ts";
import { changePassword, resetPassword } from "../../../src/services/auth/password.ts";
import { signIn } from "../../../src/services/auth/sign-in.ts";
import { OPEN_PASSWORDS } from "../../support/cheap-passwords.ts";
import { callerAt } from "../../support/client.ts";
import { createTestContext, type TestContext } from "../../support/context.ts";
import { must } from "../../support/stage.ts";

/** Wherever a password is set it is judged, with what others know of the person. */

const WEAK = "weak and long enough";
const STRONG = "strong and long enough";
const ADDRESS = callerAt("192.0.2.1");
const GUESSED = "must be harder to guess. Add a word.";

let ctx: TestContext;
let asked: JudgeQuestion[];
let organisationId: string;
beforeEach(async () => {
  asked = [];
  ctx = createTestContext({
    passwords: {
      ...OPEN_PASSWORDS,
      async weaknessOf(question) {
        asked.push(question);
        return question.password === WEAK ? GUESSED : null;
      },
    },
  });
  const made = must(await createOrganisation(ctx, organisation(STRONG)));
  organisationId = made.organisation.id;
  asked = [];
});
afterEach(() => ctx.close());

const organisation = (password: string, email = "ada.lovelace@acme.example") => ({
  name: "Acme Works",
  owner_email: email,
  owner_password: password,
});
const OWNER = [
  "ada.lovelace@acme.example",
  "ada.lovelace",
  "acme works",
  "ada",
  "lovelace",
  "acme",
  "example",
  "works",
].sort();

const knownOf = (question: JudgeQuestion | undefined) => [...(question?.known ?? [])].sort();
const refused = (field: string): Refusal => ({
  refused: "validation_failed",
  message: `${field}: ${GUESSED}`,
});
const ownerSignsIn = (password: string) =>
  signIn(ctx, { email: "ada.lovelace@acme.example", password }, ADDRESS);

test("the first owner of an organisation", async () => {
  expect(await createOrganisation(ctx, organisation(WEAK))).toEqual(refused("owner_password"));
  expect(knownOf(asked[0])).toEqual(OWNER);
});

test("a person", async () => {
  const input = {
    organisation_id: organisationId,
    email: "Bob@mail.example",
    name: "Robert O'Neil",
    role: "viewer",
  } as const;
  expect(await createUser(ctx, MACHINE, { ...input, password: WEAK })).toEqual(refused("password"));
  expect(knownOf(asked[0])).toEqual(
    ["bob@mail.example", "robert o'neil", "acme works"]
      .concat(["bob", "mail", "example", "robert", "neil", "acme", "works"])
      .sort(),
  );
  expect(ctx.reader.users.byEmail("bob@mail.example")).toBeNull();
  must(await createUser(ctx, MACHINE, { ...input, password: STRONG }));
});

test("a change, and nobody's who does not know the current one", async () => {
  const { token } = must(await ownerSignsIn(STRONG));
  const person = (await signedInBy(ctx, token))!;
  const change = (current_password: string) =>
    changePassword(ctx, person, { current_password, new_password: WEAK }, ADDRESS);
  expect(await change("wrong")).toMatchObject({ refused: "not_authenticated" });
  expect(asked).toEqual([]);
  expect(await change(STRONG)).toEqual(refused("new_password"));
  expect(knownOf(asked[0])).toEqual(OWNER);
  must(await ownerSignsIn(STRONG));
});

test("a reset by link, which stays good; and nobody's who has no link", async () => {
  const owner = ctx.reader.users.byEmail("ada.lovelace@acme.example")!;
  const { url } = must(await issuePasswordReset(ctx, MACHINE, { user_id: owner.id }));
  const token = url.split("#")[1] ?? "";
  const reset = (new_password: string, of = token) =>
    resetPassword(ctx, { token: of, new_password }, ADDRESS);
  expect(await reset(WEAK, "no link")).toMatchObject({ refused: "not_authenticated" });
  expect(asked).toEqual([]);
  expect(await reset(WEAK)).toEqual(refused("new_password"));
  expect(knownOf(asked[0])).toEqual(OWNER);
  expect(await reset(`${STRONG} too`)).toBeNull();
  must(await ownerSignsIn(`${STRONG} too`));
});

test("an older password that would be refused now still signs in", async () => {
  const owner = ctx.reader.users.byEmail("ada.lovelace@acme.example")!;
  await ctx.store.execute({
    scope: { organisationId, mode: "live" },
    needs: { user: owner.id },
    decide({ user }) {
      if (!user) throw new Error("no owner");
      const row = { ...user, passwordHash: "test:1234" };
      return { answer: null, change: { put: [{ kind: "user", before: user, row }] } };
    },
  });
  must(await ownerSignsIn("1234"));
  expect(asked).toEqual([]);
});
