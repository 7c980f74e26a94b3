import { describe, expect, test } from "bun:test";
import { encodePaymentResponseHeader } from "@x402/core/http";
import type { ExactPayment } from "../../../src/core/x402/quote.ts";
import { readReceipt } from "../../../src/core/x402/receipt.ts";

const PAYER = "0x857b06519E91e3A54538791bDbb0E22373e36b66";
const TRANSACTION = `0x${"ab".repeat(32)}`;
const PAYS: ExactPayment = {
  kind: "exact",
  protocol: 2,
  network: "eip155:84532",
  chainId: 84_532,
  contract: "0x036cbd53842c5426634e7929541ec2318f3dcf7e",
  payTo: "0x209693Bc6afc0C5328bA36FaF03C514EF312287C",
  tokenName: "USDC",
  tokenVersion: "2",
  entry: {},
  resource: null,
};
const SETTLED = { success: true, transaction: TRANSACTION, network: "eip155:84532", payer: PAYER } as const;

const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64");
const read = (headers: Readonly<Record<string, string>>) => readReceipt(headers, PAYS, 10_000n, PAYER);

describe("a settlement receipt", () => {
  const GOOD: readonly (readonly [name: string, headers: Record<string, string>])[] = [
    ["of version 2", { "payment-response": encodePaymentResponseHeader(SETTLED) }],
    ["of version 1", { "x-payment-response": encode({ ...SETTLED, network: "base-sepolia" }) }],
    [
      "with the payer in lower case",
      { "payment-response": encode({ ...SETTLED, payer: PAYER.toLowerCase() }) },
    ],
    ["without a payer", { "payment-response": encode({ ...SETTLED, payer: undefined }) }],
    ["with the amount", { "payment-response": encode({ ...SETTLED, amount: "10000" }) }],
    ["with more fields", { "payment-response": encode({ ...SETTLED, extensions: {}, extra: null }) }],
    ["in both headers", { "payment-response": encode(SETTLED), "x-payment-response": "nonsense" }],
    ["beside an empty one", { "payment-response": "", "x-payment-response": encode(SETTLED) }],
  ];
  for (const [name, headers] of GOOD) {
    test(`${name} holds`, () => expect(read(headers)).toEqual({ transaction: TRANSACTION }));
  }

  const NOT_SUCCESS = "the settlement receipt does not say success";
  const NETWORK = "the settlement receipt is of another network";
  const PAYER_PROBLEM = "the settlement receipt is of another payer";
  const NO_TRANSACTION = "the settlement receipt names no transaction";
  const CHANGED: readonly (readonly [changed: object, problem: string])[] = [
    [{ success: false, errorReason: "insufficient_funds", transaction: "" }, NOT_SUCCESS],
    [{ success: "true" }, NOT_SUCCESS],
    [{ success: 1 }, NOT_SUCCESS],
    [{ success: undefined }, NOT_SUCCESS],
    [{ network: "eip155:8453" }, NETWORK],
    [{ network: "base" }, NETWORK],
    [{ network: undefined }, NETWORK],
    [{ network: 84_532 }, NETWORK],
    [{ payer: PAYS.payTo }, PAYER_PROBLEM],
    [{ payer: null }, PAYER_PROBLEM],
    [{ payer: "" }, PAYER_PROBLEM],
    [{ amount: "9999" }, "the settlement receipt is of another amount"],
    [{ amount: 10_000 }, "the settlement receipt is of another amount"],
    [{ transaction: "" }, NO_TRANSACTION],
    [{ transaction: undefined }, NO_TRANSACTION],
    [{ transaction: "0x12" }, NO_TRANSACTION],
  ];
  for (const [changed, problem] of CHANGED) {
    test(`with ${JSON.stringify(changed)} proves nothing: ${problem}`, () =>
      expect(read({ "payment-response": encode({ ...SETTLED, ...changed }) })).toEqual({ problem }));
  }

  const BROKEN: readonly (readonly [headers: Record<string, string>, problem: string])[] = [
    [{}, "there is no settlement receipt"],
    [{ "payment-response": "" }, "there is no settlement receipt"],
    [{ "payment-response": "{}" }, "the settlement receipt is not base64"],
    [{ "payment-response": encode("paid") }, "the settlement receipt is not a JSON object"],
    [{ "payment-response": encode([SETTLED]) }, "the settlement receipt is not a JSON object"],
    [{ "payment-response": btoa("paid") }, "the settlement receipt is not JSON"],
    [{ "payment-response": "A".repeat(70_000) }, "the settlement receipt is longer than 64 kB"],
    [
      { "payment-response": encode({ ...SETTLED, success: false }), "x-payment-response": encode(SETTLED) },
      NOT_SUCCESS,
    ],
    [
      { "payment-response": btoa('{"success":false,"success":true}') },
      "the settlement receipt has the same key twice in one object",
    ],
  ];
  for (const [headers, problem] of BROKEN) {
    test(`as ${JSON.stringify(headers).slice(0, 60)} proves nothing: ${problem}`, () =>
      expect(read(headers)).toEqual({ problem }));
  }
});
