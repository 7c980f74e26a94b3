import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { exportJWK, type GenerateKeyPairResult, generateKeyPair, SignJWT } from "jose";
import { voucherHeader } from "../../src/core/x402/voucher.ts";
import { createPaidPage } from "../../src/demo/paid-page.ts";

/** Which vouchers the demo's seller accepts (docs/x402, "Accepting Holdfast vouchers"). */

const ISSUER = "http://holdfast.example";
const URL_OF_PAGE = "http://127.0.0.1:8081/paid";
const TERMS = { amount: "1500000", asset: "USDC", payee: "northwind-weather" };
const CLAIMS = { ...TERMS, iss: ISSUER, mode: "sandbox", url: URL_OF_PAGE, jti: "wrt_1" };

let keys: GenerateKeyPairResult;
let jwks: ReturnType<typeof Bun.serve>;
beforeAll(async () => {
  keys = await generateKeyPair("EdDSA");
  const key = { ...(await exportJWK(keys.publicKey)), kid: "k", alg: "EdDSA" };
  jwks = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => Response.json({ keys: [key] }) });
});
afterAll(() => jwks.stop(true));

type Voucher = { readonly claims?: object; readonly typ?: string; readonly expires?: string };

async function payment({ claims, typ = "holdfast-voucher+jwt", expires = "1m" }: Voucher, key = keys) {
  const voucher = await new SignJWT({ ...CLAIMS, ...claims })
    .setProtectedHeader({ alg: "EdDSA", kid: "k", typ })
    .setExpirationTime(expires)
    .sign(key.privateKey);
  return voucherHeader("ins_1", voucher);
}

const openPage = () =>
  createPaidPage({ issuer: ISSUER, jwksUrl: jwks.url.href }, TERMS, () => ({ sold: true }));
const asking = (header?: string) =>
  new Request(URL_OF_PAGE, { headers: header === undefined ? {} : { "X-PAYMENT": header } });

describe("the paid page", () => {
  test("delivers for a fitting voucher, once for each", async () => {
    const page = openPage();
    const header = await payment({});
    const sold = await page.answer(asking(header), URL_OF_PAGE);
    expect([sold.status, await sold.json()]).toEqual([200, { sold: true }]);
    const again = await page.answer(asking(header), URL_OF_PAGE);
    expect([again.status, await again.json()]).toEqual([402, TERMS]);
    expect(page.vouchers()).toMatchObject([CLAIMS]);
  });

  test("delivers once where the same voucher comes many times at once", async () => {
    const page = openPage();
    const header = await payment({});
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => page.answer(asking(header), URL_OF_PAGE)),
    );
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
  });

  const refused: Record<string, () => Promise<string | undefined>> = {
    "no payment": async () => undefined,
    "a header that is not base64": async () => "%%%",
    "a header that is not JSON": async () => btoa("paid"),
    "no voucher": async () => btoa(JSON.stringify({ payload: {} })),
    "another amount": () => payment({ claims: { amount: "1499999" } }),
    "an amount that is a number": () => payment({ claims: { amount: 1_500_000 } }),
    "another asset": () => payment({ claims: { asset: "EURC" } }),
    "another payee": () => payment({ claims: { payee: "somebody" } }),
    "another page": () => payment({ claims: { url: `${URL_OF_PAGE}/other` } }),
    "the other mode": () => payment({ claims: { mode: "live" } }),
    "another instance": () => payment({ claims: { iss: "http://other.example" } }),
    "no warrant": () => payment({ claims: { jti: undefined } }),
    "a voucher that has expired": () => payment({ expires: "1m ago" }),
    "another token that the key signed": () => payment({ typ: "JWT" }),
    "another key's signature": async () => payment({}, await generateKeyPair("EdDSA")),
  };
  for (const [what, header] of Object.entries(refused)) {
    test(`asks again for ${what}`, async () => {
      const page = openPage();
      const answer = await page.answer(asking(await header()), URL_OF_PAGE);
      expect([answer.status, await answer.json(), page.vouchers()]).toEqual([402, TERMS, []]);
    });
  }
});
