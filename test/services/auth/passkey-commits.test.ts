import { afterEach, beforeEach, expect, test } from "bun:test";
import { hashSecret } from "../../../src/core/api-key.ts";
import type { Passkey, PasskeyApproval } from "../../../src/core/passkey.ts";
import type { PersonCaller } from "../../../src/core/roles.ts";
import { countRunningTime, forgetOld } from "../../../src/jobs/retention.ts";
import type { AssertionResponse } from "../../../src/platform/passkeys.ts";
import { MACHINE } from "../../../src/services/admin/authority.ts";
import { setPasskeyThreshold } from "../../../src/services/admin/switches.ts";
import { signedInBy } from "../../../src/services/auth/callers.ts";
import { approveDecision, challengeDecision } from "../../../src/services/auth/passkeys/approve.ts";
import { removePasskey } from "../../../src/services/auth/passkeys/remove.ts";
import { beginPasskeySignIn, signInByPasskey } from "../../../src/services/auth/passkeys/sign-in.ts";
import { signIn } from "../../../src/services/auth/sign-in.ts";
import type { Context } from "../../../src/services/context.ts";
import { settleWarrant } from "../../../src/services/warrants/settle.ts";
import type { Change } from "../../../src/store/change.ts";
import { callerAt } from "../../support/client.ts";
import { createTestContext, TEST_NOW, type TestContext } from "../../support/context.ts";
import {
  codeOf,
  createStage,
  idempotencyOf,
  must,
  open,
  type Stage,
  type WarrantBody,
  warrantIn,
} from "../../support/stage.ts";
import { together } from "../../support/together.ts";

/** Whether a passkey's signature counts is decided in the commit, not when the request came. */

const DAY_MS = 86_400_000;

let ctx: TestContext;
let stage: Stage;
let caller: PersonCaller;
let passkey: Passkey;
let warrant: WarrantBody;
/** Runs while a signature is verified. */
let meanwhile: () => void;

beforeEach(async () => {
  meanwhile = () => {};
  ctx = createTestContext({
    passkeys: {
      verifyRegistration: async () => ({ problem: "none is registered here" }),
      async verifyAssertion() {
        meanwhile();
        return { counter: 1 };
      },
    },
  });
  stage = await createStage(ctx);
  const email = ctx.reader.users.get(stage.operator.userId)?.email ?? "";
  const { token } = must(
    await signIn(ctx, { email, password: "correct horse battery staple" }, callerAt("192.0.2.1")),
  );
  caller = (await signedInBy(ctx, token))!.caller;
  passkey = {
    id: "cGFzc2tleQ",
    organisationId: stage.organisationId,
    userId: caller.userId,
    name: "Laptop",
    publicKey: "",
    counter: 0,
    transports: [],
    countsForThreshold: true,
    createdAt: TEST_NOW,
    lastUsedAt: null,
  };
  await writes({ put: [{ kind: "passkey", before: null, row: passkey }] });
  warrant = warrantIn(
    await open(stage, stage.admin, { deadline: new Date(TEST_NOW + 3 * DAY_MS).toISOString() }),
  );
  must(await setPasskeyThreshold(ctx, MACHINE, { organisation_id: stage.organisationId, amount: "1" }));
});
afterEach(() => ctx.close());

const writes = (change: Change) =>
  ctx.store.execute({
    scope: { organisationId: stage.organisationId, mode: stage.mode },
    needs: {},
    decide: () => ({ answer: null, change }),
  });

const approvalOf = (token: string): PasskeyApproval => ({
  tokenHash: hashSecret(token),
  userId: caller.userId,
  passkeyId: passkey.id,
  subject: warrant.id,
  version: warrant.version,
  decision: "release",
  releasedBps: null,
  assertion: "{}",
  createdAt: TEST_NOW,
  expiresAt: TEST_NOW + 60_000,
  usedAt: null,
});

const release = (passkeyToken: string) =>
  settleWarrant(
    ctx,
    caller,
    { warrantId: warrant.id, decision: "release", releasedBps: null, ifMatch: null, passkeyToken },
    idempotencyOf(),
  );

const remove = (by: PersonCaller) =>
  removePasskey(ctx, by, { id: passkey.id, password: "correct horse battery staple" }, callerAt("192.0.2.1"));

test("a decision queued behind the removal of the passkey that signed it moves nothing", async () => {
  await writes({ put: [{ kind: "passkeyApproval", before: null, row: approvalOf("signed") }] });
  const [removed, released] = await together(
    () => remove(caller),
    () => release("signed"),
  );
  expect(removed).toBeNull();
  expect(codeOf(released)).toBe("passkey_unavailable");
  expect(ctx.reader.warrants.find(warrant.id)?.state).toBe("held");
});

test("a decision queued behind the registration of a passkey finds it", async () => {
  must((await remove(caller)) ?? {});
  const [, released] = await together(
    () =>
      writes({
        put: [
          { kind: "passkey", before: null, row: passkey },
          { kind: "passkeyApproval", before: null, row: approvalOf("signed") },
        ],
      }),
    () => release("signed"),
  );
  expect(codeOf(released)).toBe(200);
});

test("of two removals of one passkey at once, one removes it", async () => {
  const removals = await Promise.all([0, 1].map(() => remove(caller)));
  expect(removals).toMatchObject([null, { refused: "passkey_not_found" }]);
  expect(ctx.reader.passkeys.of(caller.userId)).toEqual([]);
});

test("a passkey of somebody else is not removed", async () => {
  expect(await remove(stage.admin)).toMatchObject({ refused: "passkey_not_found" });
  expect(ctx.reader.passkeys.of(caller.userId)).toEqual([passkey]);
});

/** Signs the release with as much as the verifier above checks. */
async function signs() {
  const decision = { warrantId: warrant.id, version: warrant.version, decision: "release" as const };
  const { challenge } = must(await challengeDecision(ctx, caller, { ...decision, releasedBps: null }));
  const clientDataJSON = Buffer.from(JSON.stringify({ challenge })).toString("base64url");
  const response = { id: passkey.id, response: { clientDataJSON, authenticatorData: "", signature: "" } };
  return approveDecision(ctx, caller, { response: response as unknown as AssertionResponse });
}

test("a signature is good for 120 seconds from when it was verified", async () => {
  meanwhile = () => {
    ctx.clock.now += 5_000;
  };
  const { expires_at } = must(await signs());
  expect(expires_at).toBe(new Date(TEST_NOW + 125_000).toISOString());
});

test("of two answers at once with the same counter, one is refused as a copy", async () => {
  const answers = await Promise.all([signs(), signs()]);
  expect(answers.map((answer) => ("refused" in answer ? answer.message : "approved")).sort()).toEqual([
    "approved",
    "response: its signature counter did not rise: a copy may be in use",
  ]);
  expect(ctx.reader.passkeys.get(passkey.id)).toMatchObject({ counter: 1, lastUsedAt: TEST_NOW });
});

test("who signed is never forgotten; a signature that nobody used is, after a day", async () => {
  const put = ["used", "unused"].map((token) => ({
    kind: "passkeyApproval" as const,
    before: null,
    row: approvalOf(token),
  }));
  await writes({ put });
  expect(codeOf(await release("used"))).toBe(200);
  for (const ms of [DAY_MS, 365 * DAY_MS]) {
    ctx.clock.now += ms;
    await countRunningTime(ctx, ms, 30);
  }
  await forgetOld(ctx);
  const find = (token: string) =>
    ctx.store.execute({
      scope: null,
      needs: { passkeyApproval: hashSecret(token) },
      decide: ({ passkeyApproval }) => ({ answer: passkeyApproval }),
    });
  expect(await find("used")).toMatchObject({ ...approvalOf("used"), usedAt: TEST_NOW });
  expect(await find("unused")).toBeNull();
});

test("a sign-in that ends while a signature is verified gets no token for it", async () => {
  meanwhile = () => {
    ctx.clock.now += DAY_MS;
  };
  expect(await signs()).toMatchObject({ refused: "not_authenticated" });
  expect(ctx.reader.passkeys.of(caller.userId)).toEqual([passkey]);
});

test("a sign-in by passkey decides only on what the commit has loaded", async () => {
  let isDeciding = false;
  const strict: Context = {
    ...ctx,
    store: {
      ...ctx.store,
      execute: ((command: { readonly decide: (snapshot: never, now: number) => unknown }) =>
        ctx.store.execute({
          ...command,
          decide(snapshot: never, now: number) {
            isDeciding = true;
            try {
              return command.decide(snapshot, now);
            } finally {
              isDeciding = false;
            }
          },
        } as never)) as Context["store"]["execute"],
      read: (use) => {
        expect(isDeciding).toBeFalse();
        return ctx.store.read(use);
      },
    },
  };
  const { challenge } = must(beginPasskeySignIn(strict, "192.0.2.1"));
  const clientDataJSON = Buffer.from(JSON.stringify({ challenge })).toString("base64url");
  const userHandle = Buffer.from(caller.userId).toString("base64url");
  const response = { id: passkey.id, response: { clientDataJSON, userHandle } };
  const input = { response: response as unknown as AssertionResponse };
  const { resource } = must(await signInByPasskey(strict, input, callerAt("192.0.2.1")));
  expect(resource).toMatchObject({ user: { id: caller.userId }, organisation: { name: "Stage" } });
});
