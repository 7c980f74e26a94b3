import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { join } from "node:path";
import type { TestOrganisation } from "../support/organisations.ts";
import { type ShellService, startTestShell } from "../support/server.ts";

/** The command line writes to the folder of a running server: what it committed holds from the next request on. */

let service: ShellService;
let home: TestOrganisation;
let other: Database;
beforeEach(async () => {
  service = startTestShell();
  home = await service.organisation();
  other = new Database(join(service.folder, "holdfast.db"));
});
afterEach(async () => {
  other.close();
  await service.close();
});

const revoke = (keyId: string) => other.run("UPDATE api_keys SET revoked_at = 1 WHERE id = ?", [keyId]);

test("a key that was revoked beside a read of the same turn is refused at once", async () => {
  const { reader } = service.ctx.store;
  expect(reader.apiKeys.get(home.live.keyId)?.revokedAt).toBeNull();
  revoke(home.live.keyId);
  const reply = await service.get("/v1/warrants", { as: home.live.as });
  expect([reply.status, reply.code]).toEqual([401, "not_authenticated"]);
});

test("the reads of one turn share a snapshot until a request arrives", () => {
  const { reader } = service.ctx.store;
  reader.refresh();
  expect(reader.apiKeys.get(home.live.keyId)?.revokedAt).toBeNull();
  revoke(home.live.keyId);
  expect(reader.apiKeys.get(home.live.keyId)?.revokedAt).toBeNull();
});

test("whoever has a command's answer reads what it says", async () => {
  const { reader, execute } = service.ctx.store;
  const before = reader.organisations.get("org_new");
  const row = { id: "org_new", name: "New", killSwitch: false, passkeyThreshold: null, createdAt: 1 };
  const answered = execute({
    scope: { organisationId: row.id, mode: "live" },
    needs: {},
    decide: () => ({ answer: true, change: { rows: [{ kind: "organisation", row }] } }),
  });
  const seen = await answered.then(() => reader.organisations.get("org_new"));
  expect([before, seen]).toEqual([null, row]);
});
