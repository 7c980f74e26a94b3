import { afterAll, beforeAll, expect, test } from "bun:test";
import { createAgent } from "../../src/services/admin/agents.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { createOrganisation } from "../../src/services/admin/organisations.ts";
import type { Json } from "../support/client.ts";
import { must, PASSWORD } from "../support/organisations.ts";
import { openServerFolder, type ServerFolder } from "../support/server-process.ts";

/** `did:web` from outside: identifiers are resolved by the method's rules, of a server that is reached at one address after the other. */

const TEST_MS = 60_000;

let served: ServerFolder;
/** Made before any server ran on the folder. */
let early: string;
beforeAll(async () => {
  served = await openServerFolder();
  const input = { name: "Acme", owner_email: "ada@example.com", owner_password: PASSWORD };
  const { organisation } = must(await createOrganisation(served.ctx, input));
  const agent = { organisation_id: organisation.id, mode: "live", name: "early" } as const;
  early = must(await createAgent(served.ctx, MACHINE, agent)).id;
});
afterAll(() => served?.close());

/**
 * Where the document of a `did:web` is, as its method says: colons are slashes, the port's colon is written `%3A`, and a host alone
 * has its document under `.well-known`.
 */
function addressOf(did: string): string {
  expect(did).toStartWith("did:web:");
  const [host = "", ...path] = did.slice("did:web:".length).split(":");
  const folder = path.length === 0 ? ".well-known" : path.join("/");
  return `https://${host.replace("%3A", ":")}/${folder}/did.json`;
}

test.each([
  ["https://pay.example", "did:web:pay.example"],
  ["https://pay.example:8443/", "did:web:pay.example%3A8443"],
  ["https://pay.example/under/it%20all", "did:web:pay.example:under:it%20all:.well-known"],
])(
  "at %s every identifier leads to its document",
  async (baseUrl, instance) => {
    const server = await served.start("1", { BASE_URL: baseUrl });
    const { keys } = (await server.client.get("/.well-known/jwks.json")).body;
    /** What a resolver gets from the address, where a proxy takes the base URL's path away. */
    const resolve = async (did: string): Promise<Json> => {
      const address = addressOf(did);
      const base = baseUrl.replace(/\/$/, "");
      expect(address).toStartWith(`${base}/`);
      const { status, headers, body } = await server.client.get(address.slice(base.length));
      expect([status, headers.get("content-type")?.split(";")[0]]).toEqual([200, "application/json"]);
      expect(body.id).toBe(did);
      return body;
    };
    const found = await resolve(instance);
    expect(found.verificationMethod.map((method: Json) => method.publicKeyJwk)).toEqual(keys);
    for (const { id, controller } of found.verificationMethod)
      expect([id.split("#")[0], controller]).toEqual([instance, instance]);
    const agent = await resolve(`${instance.replace(/:.well-known$/, "")}:agents:${early}`);
    expect((await resolve(agent.controller)).id).toBe(instance);
    await server.end("SIGTERM");
  },
  TEST_MS,
);
