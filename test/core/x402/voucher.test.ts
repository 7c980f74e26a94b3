import { expect, test } from "bun:test";
import { type Promised, voucherClaims, voucherHeader } from "../../../src/core/x402/voucher.ts";

const PROMISED: Promised = {
  mode: "sandbox",
  warrantId: "wrt_1",
  amount: 9_223_372_036_854_775_807n,
  asset: "USDC",
  payee: "acme",
  url: "https://seller.example/report?day=1",
};
const NOW = Date.UTC(2030, 0, 15, 12, 0, 0, 999);

test("a voucher's claims say what is promised, in seconds and digit strings", () => {
  expect(voucherClaims(PROMISED, "https://holdfast.example", NOW, NOW + 600_000)).toEqual({
    iss: "https://holdfast.example",
    jti: "wrt_1",
    iat: Date.UTC(2030, 0, 15, 12) / 1_000,
    exp: Date.UTC(2030, 0, 15, 12, 10) / 1_000,
    mode: "sandbox",
    warrant: "wrt_1",
    amount: "9223372036854775807",
    asset: "USDC",
    payee: "acme",
    url: "https://seller.example/report?day=1",
    receipt: "https://holdfast.example/t/wrt_1",
  });
});

test("its URL is as the seller sees it", () => {
  const urlOf = (url: string) => voucherClaims({ ...PROMISED, url }, "https://h.example", NOW, NOW).url;
  expect(urlOf("https://Seller.example")).toBe("https://seller.example/");
  expect(urlOf("https://seller.example:443/a b#part")).toBe("https://seller.example/a%20b");
});

test("its header is base64 of the JSON that sellers read", () => {
  const header = voucherHeader("ins_1", "head.claims.signature");
  expect(header).toMatch(/^[A-Za-z0-9+/]+=*$/);
  expect(JSON.parse(atob(header))).toEqual({
    x402Version: 1,
    scheme: "warrant",
    network: "holdfast:ins_1",
    payload: { voucher: "head.claims.signature" },
  });
});
