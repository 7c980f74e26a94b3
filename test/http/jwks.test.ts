import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Value } from "@sinclair/typebox/value";
import {
  VOUCHER_TYPE,
  type VoucherClaims,
  voucherClaims,
  voucherHeader,
} from "../../src/core/x402/voucher.ts";
import { createTokens, newSigningKey } from "../../src/platform/tokens.ts";
import { jsonWebKeySetForm } from "../../src/resources/json-web-keys.ts";
import { type Service, startTestServer } from "../support/server.ts";

/** `GET /.well-known/jwks.json`, and the seller of docs/x402, "Accepting Holdfast vouchers", who needs nothing else from Holdfast. */

const REPOSITORY = join(import.meta.dir, "../..");

type Terms = Readonly<Record<string, string>>;
type CreateSeller = (
  holdfast: string,
  terms: Terms,
  deliver: (voucher: VoucherClaims) => Response,
) => (request: Request) => Promise<Response>;

let service: Service;
let folder: string;
let createSeller: CreateSeller;
beforeAll(async () => {
  service = await startTestServer();
  // The code as it stands in the documentation, in a folder of its own, as a seller would have it.
  const section = readFileSync(join(REPOSITORY, "src/docs/x402.md"), "utf8").split(
    "## Accepting Holdfast vouchers",
  )[1]!;
  folder = mkdtempSync(join(tmpdir(), "holdfast-seller-"));
  symlinkSync(join(REPOSITORY, "node_modules"), join(folder, "node_modules"));
  writeFileSync(join(folder, "seller.mjs"), /```js\n([\s\S]+?)```/.exec(section)![1]!);
  ({ createSeller } = await import(join(folder, "seller.mjs")));
});
afterAll(async () => {
  await service?.close();
  rmSync(folder, { recursive: true, force: true });
});

test("the keys need no credential, and show no secret", async () => {
  const { status, body, headers } = await service.get("/.well-known/jwks.json");
  expect([status, headers.get("content-type")]).toEqual([200, "application/json;charset=utf-8"]);
  expect([...Value.Errors(jsonWebKeySetForm(), body)]).toEqual([]);
  expect(body).toEqual(service.ctx.tokens.jwks);
  expect(body.keys).toHaveLength(1);
  expect(body.keys[0].d).toBeUndefined();
  expect((await service.get("/.well-known/jwks.json?kid=1")).code).toBe("validation_failed");
  expect((await service.post("/.well-known/jwks.json")).code).toBe("route_not_found");
});

describe("the seller of the documentation", () => {
  const URL_BOUGHT = "http://seller.example/report";
  const PROMISED = {
    mode: "live",
    warrantId: "wrt_1",
    amount: 250_000n,
    asset: "USDC",
    payee: "acme",
    url: `${URL_BOUGHT}#part`,
  } as const;
  const TERMS: Terms = { mode: "live", amount: "250000", asset: "USDC", payee: "acme", url: URL_BOUGHT };
  const start = () =>
    createSeller(service.ctx.baseUrl, TERMS, ({ warrant }) => Response.json({ report: "done", warrant }));
  const voucherOf = (promised: object = {}, { baseUrl = service.ctx.baseUrl, expiresIn = 600_000 } = {}) => {
    const now = service.ctx.now();
    return voucherClaims({ ...PROMISED, ...promised }, baseUrl, now, now + expiresIn);
  };
  const ask = (seller: ReturnType<CreateSeller>, payment?: string) =>
    seller(new Request(URL_BOUGHT, payment === undefined ? {} : { headers: { "X-PAYMENT": payment } }));
  const signed = async (claims: object, { tokens = service.ctx.tokens, type = VOUCHER_TYPE } = {}) =>
    voucherHeader("ins_1", await tokens.sign(JSON.stringify(claims), type));

  test("asks, takes a voucher once, and delivers", async () => {
    const seller = start();
    const asked = await ask(seller);
    expect([asked.status, await asked.json()]).toEqual([
      402,
      { amount: "250000", asset: "USDC", payee: "acme" },
    ]);
    const payment = await signed(voucherOf());
    const paid = await ask(seller, payment);
    expect([paid.status, await paid.json()]).toEqual([200, { report: "done", warrant: "wrt_1" }]);
    expect((await ask(seller, payment)).status).toBe(402);
    expect((await ask(seller, await signed(voucherOf({ warrantId: "wrt_2" })))).status).toBe(200);
  });

  test("refuses a voucher that promises something else", async () => {
    const seller = start();
    const others: readonly object[] = [
      { mode: "sandbox" },
      { amount: 249_999n },
      { asset: "EURC" },
      { payee: "other" },
      { url: "http://seller.example/other" },
    ];
    for (const other of others) {
      const { status } = await ask(seller, await signed(voucherOf(other)));
      expect([other, status]).toEqual([other, 402]);
    }
    const elsewhere = voucherOf({}, { baseUrl: "https://elsewhere.example" });
    expect((await ask(seller, await signed(elsewhere))).status).toBe(402);
    const late = voucherOf({}, { expiresIn: -1_000 });
    expect((await ask(seller, await signed(late))).status).toBe(402);
    const { exp, ...endless } = voucherOf();
    expect((await ask(seller, await signed(endless))).status).toBe(402);
    expect((await ask(seller, await signed(voucherOf()))).status).toBe(200);
  });

  test("refuses a voucher that another key signed, of another type, or without a signature", async () => {
    const seller = start();
    const forged = await signed(voucherOf(), { tokens: createTokens(newSigningKey()) });
    expect((await ask(seller, forged)).status).toBe(402);
    const receipt = await signed(voucherOf(), { type: "holdfast-receipt+jws" });
    expect((await ask(seller, receipt)).status).toBe(402);
    const jws = await service.ctx.tokens.sign(JSON.stringify(voucherOf()), VOUCHER_TYPE);
    const [head, claims, signature] = jws.split(".") as [string, string, string];
    const none = Buffer.from(JSON.stringify({ alg: "none", typ: VOUCHER_TYPE })).toString("base64url");
    const dear = Buffer.from(JSON.stringify({ ...voucherOf(), jti: "wrt_3" })).toString("base64url");
    for (const voucher of [
      `${none}.${claims}.`,
      `${head}.${dear}.${signature}`,
      `${head}.${claims}.`,
      "",
      "x",
    ]) {
      expect((await ask(seller, voucherHeader("ins_1", voucher))).status).toBe(402);
    }
    for (const payment of ["", "x", "bnVsbA==", "e30=", btoa('{"payload":{}}'), "é"]) {
      expect((await ask(seller, payment)).status).toBe(402);
    }
    expect((await ask(seller, voucherHeader("ins_1", jws))).status).toBe(200);
  });
});
