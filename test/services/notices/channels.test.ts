import { afterEach, expect, test } from "bun:test";
import { CHANNELS, type Channel, newNotice } from "../../../src/core/notice.ts";
import { deliverNotices } from "../../../src/services/notices/deliver.ts";
import { createDeliverySlots } from "../../../src/services/webhooks/slots.ts";
import { tellingBy } from "../../support/channels.ts";
import { createTestContext, type TestContext } from "../../support/context.ts";
import { noFault } from "../../support/no-fault.ts";
import { createStage, SCRIPTED, type Stage } from "../../support/stage.ts";
import { attemptsOf } from "../../support/telling.ts";

/** Every channel sends for itself (docs/notices, "Notices"). */

let ctx: TestContext;
afterEach(() => ctx.close());

/** Writes so many notices of trouble to the owner, one a millisecond. */
async function tellOwner({ organisationId, owner }: Stage, channel: Channel, count: number) {
  const scope = { organisationId, mode: "live" } as const;
  const about = { kind: "trouble", name: "disk", message: "full" } as const;
  const rows = Array.from({ length: count }, (_, index) =>
    newNotice({
      ...{ id: `ntc_${channel}${String(index).padStart(2, "0")}`, ...scope, userId: owner.userId, channel },
      ...{ subject: "trouble disk", about, createdAt: ctx.now() - count + index },
    }),
  );
  await ctx.store.execute({
    scope,
    needs: {},
    decide: () => ({
      answer: null,
      change: { put: rows.map((row) => ({ kind: "notice", before: null, row })) },
    }),
  });
}

/** Links a chat with the owner. */
const linkOwner = ({ organisationId, owner: { userId } }: Stage) =>
  ctx.store.execute({
    scope: { organisationId, mode: "live" },
    needs: {},
    decide: () => ({
      answer: null,
      change: {
        put: [
          {
            kind: "messagingAccount",
            before: null,
            row: { userId, organisationId, chatId: "1", username: null, linkedAt: 0 },
          },
        ],
      },
    }),
  });

const taken = { outcome: "delivered", answer: "201", durationMs: 1 } as const;

test("a mail server that hangs with many mails due delays no message to a chat", async () => {
  const sent: string[] = [];
  const hangs = Promise.withResolvers<typeof taken>();
  const telling = tellingBy({
    email: () => hangs.promise,
    messaging: async ({ id }) => {
      sent.push(id);
      return taken;
    },
  });
  // As few as an instance has for a channel.
  const notices = {
    email: { ...telling.email, slots: createDeliverySlots(16, 2) },
    push: telling.push,
    messaging: { ...telling.messaging, slots: createDeliverySlots(16, 2) },
  };
  ctx = createTestContext({ ...SCRIPTED, notices });
  const stages: Stage[] = [];
  for (let count = 0; count < 8; count++) stages.push(await createStage(ctx));
  const [first] = stages;
  await tellOwner(first!, "email", 40);
  await linkOwner(first!);
  await tellOwner(first!, "messaging", 1);
  await deliverNotices(ctx, noFault);
  await Promise.all(notices.messaging.slots.underWay());
  expect(sent).toEqual(["ntc_messaging00"]);
  expect(notices.email.slots.underWay()).toHaveLength(2);
  expect(ctx.reader.notices.nextAttemptAt()).toBeLessThan(ctx.now());
  hangs.resolve(taken);
  await attemptsOf(notices);
});

test("a notice by a channel that the instance no longer has is dropped, and waits for nothing", async () => {
  ctx = createTestContext(SCRIPTED);
  const stage = await createStage(ctx);
  for (const channel of CHANNELS) await tellOwner(stage, channel, 1);
  await deliverNotices(ctx, noFault);
  await attemptsOf(ctx.notices);
  expect(ctx.reader.notices.ofUser(stage.owner.userId, 9).map(({ status }) => status)).toEqual(
    CHANNELS.map(() => "dropped"),
  );
  expect(ctx.reader.notices.nextAttemptAt()).toBeNull();
});

test("who chose before there was messaging or push has them on, and no row says neither", async () => {
  ctx = createTestContext(SCRIPTED);
  const { organisationId, owner } = await createStage(ctx);
  const insert = (columns: string, values: string) =>
    ctx.ledger.change(
      `INSERT INTO notice_settings (rowid, user_id, organisation_id, email, sandbox, time_zone${columns}) VALUES (1, ?, ?, 0, 0, 'UTC'${values})`,
      ...[owner.userId, organisationId],
    );
  for (const channel of ["messaging", "push"])
    expect(() => insert(`, ${channel}`, ", NULL")).toThrow(
      new RegExp(`not.null.*${channel}|${channel}.*not.null`, "i"),
    );
  insert("", "");
  expect(ctx.reader.notices.settingsOf(owner.userId)).toMatchObject({
    ...{ email: false, messaging: true, push: true },
  });
});
