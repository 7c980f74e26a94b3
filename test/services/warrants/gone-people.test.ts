import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { PersonCaller } from "../../../src/core/roles.ts";
import { MACHINE } from "../../../src/services/admin/authority.ts";
import { removeUser, setUserRole } from "../../../src/services/admin/users.ts";
import { signedInBy } from "../../../src/services/auth/callers.ts";
import { signIn, signOut, signOutEverywhere } from "../../../src/services/auth/sign-in.ts";
import type { Answer, Idempotency } from "../../../src/services/idempotency.ts";
import { resolveEscalation } from "../../../src/services/warrants/resolve.ts";
import { callerAt } from "../../support/client.ts";
import { createTestContext, type TestContext } from "../../support/context.ts";
import {
  codeOf,
  createStage,
  idempotencyOf,
  must,
  NONE_PASS,
  open,
  SCRIPTED,
  type Stage,
  settle,
  verify,
  warrantIn,
} from "../../support/stage.ts";

/** Requests whose person is removed or demoted before their commit: the commit checks them again. */

let ctx: TestContext;
let stage: Stage;
/** The operator as a request knows them: by a sign-in. */
let caller: PersonCaller;
let token: string;
beforeEach(async () => {
  ctx = createTestContext(SCRIPTED);
  stage = await createStage(ctx);
  const email = ctx.reader.users.get(stage.operator.userId)?.email ?? "";
  ({ token } = must(
    await signIn(ctx, { email, password: "correct horse battery staple" }, callerAt("192.0.2.1")),
  ));
  caller = (await signedIn()).caller;
});
afterEach(() => ctx.close());

async function signedIn() {
  const found = await signedInBy(ctx, token);
  if (!found) throw new Error("not signed in");
  return found;
}

type Going = readonly [name: string, code: string, go: () => Promise<unknown>];
const GOINGS: readonly Going[] = [
  ["removed", "not_authenticated", () => removeUser(ctx, MACHINE, { user_id: caller.userId })],
  [
    "made a viewer",
    "insufficient_role",
    () => setUserRole(ctx, MACHINE, { user_id: caller.userId, role: "viewer" }),
  ],
  [
    "signed out",
    "not_authenticated",
    () => signedIn().then((found) => signOut(ctx, found, callerAt("192.0.2.1"))),
  ],
  [
    "signed out everywhere",
    "not_authenticated",
    () => signedIn().then(({ user }) => signOutEverywhere(ctx, user, callerAt("192.0.2.1"))),
  ],
];

const escalated = async (): Promise<string> => {
  const { id } = warrantIn(await open(stage, stage.admin));
  expect(warrantIn(await verify(stage, stage.admin, id, NONE_PASS)).state).toBe("escalated");
  return id;
};
const held = async (): Promise<string> => warrantIn(await open(stage, stage.admin)).id;

type Move = readonly [
  name: string,
  prepare: () => Promise<string>,
  send: (warrantId: string, idempotency: Idempotency) => ReturnType<typeof settle>,
];
const MOVES: readonly Move[] = [
  ["opens", held, (_, idempotency) => open(stage, caller, {}, idempotency)],
  ["verifies", held, (id, idempotency) => verify(stage, caller, id, undefined, idempotency)],
  ["releases", held, (id, idempotency) => settle(stage, caller, id, "release", { idempotency })],
  ["refunds", escalated, (id, idempotency) => settle(stage, caller, id, "refund", { idempotency })],
  [
    "resolves",
    escalated,
    (id, idempotency) =>
      resolveEscalation(
        ctx,
        caller,
        { id, decision: "release", releasedBps: null, note: null, ifMatch: null },
        idempotency,
      ),
  ],
];

for (const [how, code, go] of GOINGS) {
  describe(`who is ${how} while the request is on its way`, () => {
    for (const [name, prepare, send] of MOVES) {
      test(`${name} nothing`, async () => {
        const id = await prepare();
        const before = ctx.reader.warrants.find(id);
        const balances = ctx.reader.balances.list(stage);
        await go();
        expect(codeOf(await send(id, idempotencyOf()))).toBe(code as never);
        expect(ctx.reader.warrants.find(id)).toEqual(before);
        expect(ctx.reader.balances.list(stage)).toEqual(balances);
      });

      test(`${name}: the earlier answer is not replayed`, async () => {
        const id = await prepare();
        const idempotency = idempotencyOf();
        const first: Answer = must(await send(id, idempotency));
        expect(first.replayed).toBeFalse();
        expect(must(await send(id, idempotency)).replayed).toBeTrue();
        await go();
        expect(codeOf(await send(id, idempotency))).toBe(code as never);
      });
    }
  });
}

test("a removed person moves nothing, however the request was authenticated", async () => {
  const id = await held();
  must(await removeUser(ctx, MACHINE, { user_id: caller.userId }));
  expect(codeOf(await settle(stage, stage.operator, id, "release"))).toBe("not_authenticated");
  expect(ctx.reader.warrants.find(id)?.state).toBe("held");
});

test("a role that was lowered but is still high enough moves the warrant", async () => {
  const id = await held();
  must(await setUserRole(ctx, MACHINE, { user_id: caller.userId, role: "admin" }));
  expect(warrantIn(await settle(stage, caller, id, "release")).state).toBe("released");
});

test("a dispute is decided by a person who is an admin at the commit, whatever they were at the request", async () => {
  const id = await escalated();
  const dispute = { id, decision: "dispute", releasedBps: null, note: null, ifMatch: null } as const;
  must(await resolveEscalation(ctx, caller, dispute, idempotencyOf()));
  must(await setUserRole(ctx, MACHINE, { user_id: stage.admin.userId, role: "operator" }));
  expect(codeOf(await settle(stage, stage.admin, id, "release"))).toBe("insufficient_role");
  expect(ctx.reader.warrants.find(id)?.state).toBe("disputed");
  must(await setUserRole(ctx, MACHINE, { user_id: stage.admin.userId, role: "admin" }));
  expect(warrantIn(await settle(stage, stage.admin, id, "release")).state).toBe("released");
});
