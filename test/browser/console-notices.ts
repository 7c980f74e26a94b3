/**
 * `bun run browser`: a person chooses in headless Chromium how they hear of things, and links a chat. axe looks at the pages, light
 * and dark, and finds nothing serious.
 */
import { afterAll, expect, test } from "bun:test";
import { claimNotice, endNotice, newNotice } from "../../src/core/notice.ts";
import { openAtConsole } from "../support/at-console.ts";
import { BOT_NAME, BOT_TOKEN, startBotApi } from "../support/bot-api.ts";
import { BY_BOT, CHAT, createUpdates, NOTICES as PATH, SECRET, WEBHOOK } from "../support/chats.ts";
import { expectCareOn, WALK_MS } from "../support/chromium.ts";
import { PASSWORD } from "../support/organisations.ts";

const bot = startBotApi();
afterAll(bot.stop);
const { service, home, page, chromium, problems, signIn, expectCare } = await openAtConsole(
  { MESSAGING_URL: bot.url },
  { messagingToken: BOT_TOKEN, messagingSecret: SECRET },
);

/** Writes two notices to the owner: one was delivered, and one is tried again. */
async function wereTold(): Promise<void> {
  const { id: userId } = home.people.owner;
  const scope = { organisationId: home.id, mode: "live" } as const;
  const createdAt = Date.now();
  const about = { kind: "escalations", escalationIds: ["esc_1"], count: 1, waitedHours: 24 } as const;
  const made = newNotice({ id: "ntc_1", ...scope, userId, channel: "email", subject: "", about, createdAt });
  const delivered = { outcome: "delivered", answer: "250 2.0.0 Ok: queued as 4F1A2", durationMs: 9 } as const;
  const failed = { outcome: "failed", answer: "421 4.7.0 Try again later", durationMs: 9 } as const;
  const rows = [
    endNotice(claimNotice(made, createdAt)!, delivered, createdAt),
    {
      ...endNotice(claimNotice(made, createdAt)!, failed, createdAt + 86_400_000),
      ...{ id: "ntc_2", about: { kind: "trouble", name: "disk", message: "" } as const },
    },
  ];
  await service.ctx.store.execute({
    scope,
    needs: {},
    decide: () => ({
      answer: null,
      change: { put: rows.map((row) => ({ kind: "notice", before: null, row })) },
    }),
  });
}

test(
  "a person chooses their hours, and sees what they were told",
  async () => {
    await signIn(page, "owner", PATH);
    await page.getByRole("heading", { name: "Notices", exact: true }).waitFor();
    await page.getByText("No notice yet").waitFor();
    await wereTold();
    await page.reload();
    await page.getByText("An escalation, after 24 hours").waitFor();
    await expectCare(PATH);
    await page.fill("#from", "08:00");
    await page.fill("#until", "18:30");
    await page.fill("#time_zone", "Europe/Nowhere");
    await page.click("button:has-text('Save')");
    await page.locator("#time_zone-problem").waitFor();
    expect(await page.inputValue("#until")).toBe("18:30");
    await page.fill("#time_zone", "Europe/Berlin");
    await page.uncheck("input[name=sandbox]");
    await page.click("button:has-text('Save')");
    await page.getByText("This is how you hear of things from now on.").waitFor();
    const { id } = home.people.owner;
    expect(service.ctx.reader.notices.settingsOf(id)).toMatchObject({
      ...{
        email: true,
        push: true,
        sandbox: false,
        fromMinute: 480,
        untilMinute: 1110,
        timeZone: "Europe/Berlin",
      },
    });
    expect(problems).toEqual([]);
  },
  WALK_MS,
);

test(
  "a person links a chat by a code, and unlinks it",
  async () => {
    const desk = await chromium.openPage();
    await signIn(desk, "admin", PATH);
    await desk.click("text=Link a chat");
    await expectCare(CHAT);
    await desk.fill("#password", "wrong password");
    await desk.click("text=Make a code");
    await desk.locator("#password-problem").waitFor();
    await desk.fill("#password", PASSWORD);
    await desk.click("text=Make a code");
    const code = await desk.inputValue("#secret");
    await desk.getByText(`@${BOT_NAME}`).waitFor();
    await expectCareOn(desk, `${CHAT}/code`);
    await desk.click("text=I have sent it");
    const update = createUpdates().message(7, `/start ${code}`, { username: "ada" });
    expect((await service.post(WEBHOOK, update, { headers: BY_BOT, key: null })).status).toBe(200);
    await desk.getByText("@ada").waitFor();
    await expectCareOn(desk, `${PATH}/linked`);
    await desk.click("text=Unlink it");
    await desk.getByRole("link", { name: "Link a chat" }).waitFor();
    expect(problems).toEqual([]);
  },
  WALK_MS,
);
