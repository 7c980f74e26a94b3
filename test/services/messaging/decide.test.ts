import { afterEach, beforeEach, expect, test } from "bun:test";
import type { MessagingAccount } from "../../../src/core/messaging.ts";
import type { ChatCaller } from "../../../src/core/roles.ts";
import { MACHINE } from "../../../src/services/admin/authority.ts";
import { setMessagingDecisions } from "../../../src/services/admin/switches.ts";
import { removeUser, setUserRole } from "../../../src/services/admin/users.ts";
import { unlinkChat } from "../../../src/services/messaging/link.ts";
import { resolveEscalation } from "../../../src/services/warrants/resolve.ts";
import { createTestContext, type TestContext } from "../../support/context.ts";
import { expectRefused } from "../../support/refused.ts";
import {
  createStage,
  idempotencyOf,
  must,
  NONE_PASS,
  open,
  SCRIPTED,
  type Stage,
  verify,
  warrantIn,
} from "../../support/stage.ts";

/** A decision in a chat looks again in its commit: what the press was allowed may have ended meanwhile. */

let ctx: TestContext;
let stage: Stage;
let account: MessagingAccount;
let caller: ChatCaller;
let id: string;
beforeEach(async () => {
  ctx = createTestContext(SCRIPTED);
  stage = await createStage(ctx);
  const { organisationId } = stage;
  const { userId, role, mode } = stage.operator;
  must(await setMessagingDecisions(ctx, MACHINE, { organisation_id: organisationId, on: true }));
  const row: MessagingAccount = { userId, organisationId, chatId: "42", username: null, linkedAt: 0 };
  account = row;
  await ctx.store.execute({
    scope: { organisationId, mode },
    needs: {},
    decide: () => ({ answer: null, change: { put: [{ kind: "messagingAccount", before: null, row }] } }),
  });
  caller = { kind: "chat", chatId: "42", userId, role, organisationId, mode, owesPasskey: false };
  ({ id } = warrantIn(await open(stage, stage.operator)));
  expect(warrantIn(await verify(stage, stage.operator, id, NONE_PASS)).state).toBe("escalated");
});
afterEach(() => ctx.close());

const decides = (as: ChatCaller = caller, ifMatch = 3) =>
  resolveEscalation(
    ctx,
    as,
    { id, decision: "release", releasedBps: null, note: null, ifMatch },
    idempotencyOf(),
  );

test("it is made as the person whose chat it is", async () => {
  must(await decides());
  expect(ctx.reader.warrants.find(id)?.state).toBe("released");
});

test("it is refused where the chat was unlinked, or is another", async () => {
  const gone = ["not_authenticated", "This chat is not linked to you any more."] as const;
  await expectRefused(ctx, () => decides({ ...caller, chatId: "43" }), gone);
  expect(await unlinkChat(ctx, { ...account, chatId: "43" })).toBe(false);
  expect(await unlinkChat(ctx, account)).toBe(true);
  await expectRefused(ctx, () => decides(), gone);
});

test("it is refused with the role that the person has now, and to who was removed", async () => {
  must(await setUserRole(ctx, MACHINE, { user_id: caller.userId, role: "viewer" }));
  await expectRefused(ctx, () => decides(), ["insufficient_role", "This needs the role operator"]);
  must(await removeUser(ctx, MACHINE, { user_id: caller.userId }));
  await expectRefused(ctx, () => decides(), ["not_authenticated", ""]);
});

test("it is refused on another version", async () => {
  await expectRefused(ctx, () => decides(caller, 2), ["version_conflict", ""]);
});
