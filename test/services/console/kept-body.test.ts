import { afterAll, beforeAll, expect, test } from "bun:test";
import type { PersonCaller } from "../../../src/core/roles.ts";
import { readKeptBody } from "../../../src/services/console/kept-body.ts";
import type { TestOrganisation } from "../../support/organisations.ts";
import { type ShellService, startTestShell } from "../../support/server.ts";

/** The body of a check, as people see it who decide (docs/security, "Capsules"). */

let service: ShellService;
let home: TestOrganisation;
let checkId: string;
beforeAll(async () => {
  service = startTestShell();
  home = await service.organisation();
  const { id } = await service.opened(home);
  const body = { source_url: "http://source.example/" };
  await service.post(`/v1/warrants/${id}/verify`, body, { as: home.live.as });
  checkId = service.ctx.reader.checks.of(id)[0]?.id ?? "";
});
afterAll(() => service?.close());

const callerOf = (organisationId: string, mode: PersonCaller["mode"] = "live"): PersonCaller => ({
  ...{ kind: "person", userId: "usr", role: "operator", organisationId, mode },
  ...{ signInHash: "", owesPasskey: false },
});

test("one that is not what was evaluated is not shown", async () => {
  const caller = callerOf(home.id);
  expect(await readKeptBody(service.ctx, caller, checkId)).toEqual({ kind: "text", text: "{}" });
  const { capsules } = service.ctx;
  // The decoder does not notice that a body was cut off.
  const cut = { ...service.ctx, capsules: { ...capsules, decompress: async () => Buffer.from("{") } };
  expect(await readKeptBody(cut, caller, checkId)).toEqual({ kind: "gone" });
});

test("one of another organisation, or of the other mode, is not shown", async () => {
  const other = await service.organisation();
  for (const caller of [callerOf(other.id), callerOf(home.id, "sandbox")])
    expect(await readKeptBody(service.ctx, caller, checkId)).toEqual({ kind: "gone" });
});
