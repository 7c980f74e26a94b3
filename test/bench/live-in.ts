/**
 * Adds to a filled folder what pages of the console list besides warrants, by the service's own commands: `bun live-in.ts <data
 * folder> <file of the facts>`.
 */
import { readFileSync } from "node:fs";
import { openForCommands } from "../../src/app/ledger.ts";
import { readConfig } from "../../src/config.ts";
import type { PersonCaller, Role } from "../../src/core/roles.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { createUser } from "../../src/services/admin/users.ts";
import { createWebhook, disableWebhook, listWebhooks } from "../../src/services/admin/webhooks.ts";
import type { Context } from "../../src/services/context.ts";
import { liveIn } from "../support/lived-in.ts";
import { openMarket } from "../support/market.ts";
import { must, SCRIPTED, signedIn } from "../support/stage.ts";
import type { Facts } from "./parties.ts";

const AMOUNTS = {
  ...{ agents: 3_000, people: 400, policies: 300, versions: 300, clauses: 300, deposits: 2_000 },
  ...{ endpoints: 8, purchases: 1_000, warrants: 2_000, keys: 300 },
};
const ENDPOINT = "https://127.0.0.1:9";

const [, , folder = "", factsFile = ""] = process.argv;
const { organisationId, mode } = JSON.parse(readFileSync(factsFile, "utf8")) as Facts;
const { ctx: present, close } = await openForCommands(must(readConfig({ DATA: folder }, {})));
const market = openMarket();
const ctx: Context = { ...present, ...SCRIPTED, x402: market.x402 };
const person = async (role: Role): Promise<PersonCaller> => {
  const own = { organisation_id: organisationId, email: `${role}@bench.example`, role } as const;
  const { id } = must(await createUser(ctx, MACHINE, { ...own, password: "correct horse battery staple" }));
  return signedIn(ctx, { kind: "person", userId: id, role, organisationId, mode });
};
const people = {
  operator: await person("operator"),
  admin: await person("admin"),
  owner: await person("owner"),
};
await liveIn({ ctx, organisationId, mode, ...people }, market, ENDPOINT, AMOUNTS);
// The server that is measured sends nothing: of the endpoints that are left, nothing has happened yet.
const inMode = { organisation_id: organisationId, mode };
for (const { id } of must(await listWebhooks(ctx, MACHINE, inMode)).data)
  must(await disableWebhook(ctx, MACHINE, { webhook_id: id }));
must(await createWebhook(ctx, MACHINE, { ...inMode, url: ENDPOINT }));
await close();
