import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { didOfAgent, didOfInstance } from "../../src/core/did-web.ts";
import { createTokens, newSigningKey } from "../../src/platform/tokens.ts";
import { instanceDocument } from "../../src/resources/did-document.ts";
import { createAgent, showAgent } from "../../src/services/admin/agents.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { digestedColumns, digestOfStored } from "../../src/store/sql/row-digest.ts";
import { TABLES } from "../support/ledger.ts";
import { must, type TestOrganisation } from "../support/organisations.ts";
import { type ShellService, startTestShell } from "../support/server.ts";

/** `did:web` resolves: the instance's keys, and the agent's where it brought one (docs/witnesses, "Identities"). */

const BASE_URL = "https://holdfast.example:8443";
const DID = "did:web:holdfast.example%3A8443";
const DID_KEY = "did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK";

let service: ShellService;
let home: TestOrganisation;
beforeAll(async () => {
  service = startTestShell({ baseUrl: BASE_URL });
  home = await service.organisation();
});
afterAll(() => service?.close());

/** The address of a did:web's document, by the method's rules. */
function addressOf(did: string): string {
  const [host = "", ...path] = did.slice("did:web:".length).split(":").map(decodeURIComponent);
  return `https://${host}/${path.length === 0 ? ".well-known" : path.join("/")}/did.json`;
}

test.each([
  "https://h.example",
  "https://h.example:8443",
  "https://h.example/pay/a%20b",
  "http://localhost:8080",
])("the identifiers of %s lead to its own addresses", (baseUrl) => {
  const { host, pathname } = new URL(baseUrl);
  const at = (path: string) => `https://${host}${decodeURIComponent(pathname).replace(/\/$/, "")}${path}`;
  expect(addressOf(didOfInstance(baseUrl))).toBe(at("/.well-known/did.json"));
  expect(addressOf(didOfAgent(baseUrl, "agt_1"))).toBe(at("/agents/agt_1/did.json"));
  expect(didOfInstance(baseUrl)).toMatch(/^did:web(:[A-Za-z0-9._%-]+)+$/);
});

describe("the instance's document", () => {
  test("has the keys of the JWKS, and needs no credential", async () => {
    const { status, body } = await service.get("/.well-known/did.json");
    const { body: jwks } = await service.get("/.well-known/jwks.json");
    const [key] = jwks.keys;
    expect([status, body]).toEqual([
      200,
      {
        "@context": ["https://www.w3.org/ns/did/v1", "https://w3id.org/security/suites/jws-2020/v1"],
        id: DID,
        verificationMethod: [
          { id: `${DID}#${key.kid}`, type: "JsonWebKey2020", controller: DID, publicKeyJwk: key },
        ],
        assertionMethod: [`${DID}#${key.kid}`],
      },
    ]);
    expect((await service.get("/.well-known/did.json?x=1")).code).toBe("validation_failed");
  });

  test("has rotated keys too, and no private part of any", () => {
    const { jwks } = createTokens(`${newSigningKey()}\n${newSigningKey()}`);
    const { verificationMethod, assertionMethod } = instanceDocument(BASE_URL, jwks);
    expect(verificationMethod.map(({ publicKeyJwk }) => publicKeyJwk)).toEqual([...jwks.keys]);
    expect(assertionMethod).toEqual(jwks.keys.map(({ kid }) => `${DID}#${kid}`));
    expect(jwks.keys).toHaveLength(2);
    expect(JSON.stringify(verificationMethod)).not.toContain('"d"');
  });
});

describe("an agent's document", () => {
  const path = (id: string) => `/agents/${id}/did.json`;

  test("names the instance that speaks for it, where it brought no key", async () => {
    const { status, body } = await service.get(path(home.sandbox.id));
    expect([status, body]).toEqual([
      200,
      {
        "@context": ["https://www.w3.org/ns/did/v1"],
        id: `${DID}:agents:${home.sandbox.id}`,
        controller: DID,
      },
    ]);
  });

  test("has the key that it brought", async () => {
    const { id } = await home.addAgent({ did_key: DID_KEY });
    const { body } = await service.get(path(id));
    const did = `${DID}:agents:${id}`;
    const method = `${did}#${DID_KEY.slice("did:key:".length)}`;
    expect(body).toEqual({
      "@context": ["https://www.w3.org/ns/did/v1", "https://w3id.org/security/multikey/v1"],
      id: did,
      controller: DID,
      alsoKnownAs: [DID_KEY],
      verificationMethod: [
        {
          id: method,
          type: "Multikey",
          controller: did,
          publicKeyMultibase: DID_KEY.slice("did:key:".length),
        },
      ],
      assertionMethod: [method],
      authentication: [method],
    });
  });

  test("is not there for what is no agent", async () => {
    for (const id of ["agt_none", home.id, "x"]) {
      const { status, code } = await service.get(path(id));
      expect([id, status, code]).toEqual([id, 404, "agent_not_found"]);
    }
  });
});

test("an agent made before the first server has the identity of today's base URL, as has one of an older version", async () => {
  const before = { ...service.ctx, baseUrl: "http://localhost:8080" };
  const input = { organisation_id: home.id, mode: "live", name: "early" } as const;
  const { id, identity } = must(await createAgent(before, MACHINE, input));
  expect(identity).toBe(`did:web:localhost%3A8080:agents:${id}`);
  const nowOf = async () => must(await showAgent(service.ctx, MACHINE, { agent_id: id })).identity;
  expect(await nowOf()).toBe(`${DID}:agents:${id}`);

  const { change, allRows } = service.ctx.ledger;
  change("UPDATE agents SET identity = ? WHERE id = ?", `did:web:localhost%3A8080:agents:${id}`, id);
  const [row] = allRows("agents", "id = ?", id);
  const columns = digestedColumns("agents", [...TABLES.get("agents")!]);
  change("UPDATE agents SET digest = ? WHERE id = ?", digestOfStored("agents", columns, row!), id);
  expect(await nowOf()).toBe(`${DID}:agents:${id}`);
  expect((await service.get(`/agents/${id}/did.json`)).body.id).toBe(`${DID}:agents:${id}`);
});
