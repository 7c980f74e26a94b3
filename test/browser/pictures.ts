/**
 * `bun run pictures`: takes the pictures that README and the documentation show, of the real console with a month of a made-up
 * organisation, and writes them into src/docs/pictures.
 */
import { rmSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { startServer } from "../../src/app.ts";
import { readConfig } from "../../src/config.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { createUser } from "../../src/services/admin/users.ts";
import { openChromium, signIn } from "../support/chromium.ts";
import { playMonth } from "../support/month.ts";
import { testSettings } from "../support/server.ts";
import { must } from "../support/stage.ts";

const FOLDER = join(import.meta.dir, "../../src/docs/pictures");
const SIZE = { width: 1280, height: 800 };
const ADA = { email: "ada@northwind.example", name: "Ada", password: "a lighthouse keeper's 31 herons" };

async function take(page: Page, name: string): Promise<void> {
  await page.mouse.move(0, 0);
  const shot = await page.screenshot({ animations: "disabled", caret: "hide" });
  // With a palette a picture has a third of the bytes, and looks the same.
  await new Bun.Image(shot)
    .png({ palette: true, colors: 256, compressionLevel: 9 })
    .write(join(FOLDER, `${name}.png`));
  console.log(`${name}.png`);
}

async function takeAll(page: Page, base: string, receipt: string): Promise<void> {
  await page.setViewportSize(SIZE);
  await page.emulateMedia({ colorScheme: "light" });
  await signIn(page, base, ADA);
  await take(page, "overview");

  await page.goto(`${base}/console/escalations`);
  await page.keyboard.press("2");
  await take(page, "escalation");

  await page.goto(`${base}${receipt}`);
  await take(page, "receipt");
}

const { ctx, organisationId, released } = await playMonth(Date.now());
await ctx.store.close();
const problems: string[] = [];
const server = must(await startServer(must(readConfig(testSettings(ctx.folder), {}))));
const chromium = await openChromium(problems);
try {
  must(await createUser(server.ctx, MACHINE, { organisation_id: organisationId, role: "admin", ...ADA }));
  const base = `http://localhost:${new URL(server.url).port}`;
  await takeAll(await chromium.openPage(), base, `/t/${released.id}`);
} finally {
  await chromium.close();
  await server.stop();
  rmSync(ctx.folder, { recursive: true, force: true });
}
if (problems.length > 0) throw new Error(problems.join("\n"));
