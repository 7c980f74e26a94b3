import { describe, expect, test } from "bun:test";
import { ExactEvmScheme } from "@x402/evm";
import { ExactEvmSchemeV1 } from "@x402/evm/v1";
import fc from "fast-check";
import { privateKeyToAccount } from "viem/accounts";
import { isTestNetwork } from "../../src/core/x402/chains.ts";
import { AUTHORIZATION_MS_MAX, type ExactPayment } from "../../src/core/x402/quote.ts";
import { createEvmPayer, type PaymentOrder, SigningRefused } from "../../src/platform/evm-payer.ts";
import { type ExactScheme, officialScheme } from "../../src/platform/exact-scheme.ts";

const KEY = `0x${"4c".repeat(32)}` as const;
const ACCOUNT = privateKeyToAccount(KEY);
const NOW = 1_800_000_000_000;
const BASE_SEPOLIA = 84_532;
const BASE = 8_453;

/** As a seller of version 2 asks. */
const ENTRY = {
  scheme: "exact",
  network: "eip155:84532",
  amount: "10000",
  asset: "0x036CbD53842c5426634e7929541eC2318f3dCF7e",
  payTo: "0x209693Bc6afc0C5328bA36FaF03C514EF312287C",
  maxTimeoutSeconds: 60,
  extra: { name: "USDC", version: "2" },
};
/** And one of version 1. */
const ENTRY_V1 = {
  ...ENTRY,
  network: "base-sepolia",
  maxAmountRequired: "10000",
  resource: "https://acme.example/report",
  description: "",
  mimeType: "application/json",
  outputSchema: {},
};

const pays = (overrides: Partial<ExactPayment> = {}): ExactPayment => ({
  kind: "exact",
  protocol: 2,
  network: ENTRY.network,
  chainId: BASE_SEPOLIA,
  contract: ENTRY.asset.toLowerCase(),
  payTo: ENTRY.payTo,
  tokenName: "USDC",
  tokenVersion: "2",
  entry: ENTRY,
  resource: { url: "https://acme.example/report" },
  ...overrides,
});

const order = (overrides: Partial<PaymentOrder> = {}): PaymentOrder => ({
  pays: pays(),
  amount: 10_000n,
  validAfter: NOW - 600_000,
  validBefore: NOW + 60_000,
  nonce: `0x${"07".repeat(32)}`,
  ...overrides,
});

const payer = createEvmPayer("sandbox", KEY);
const read = (value: string) => JSON.parse(Buffer.from(value, "base64").toString());

describe("the header", () => {
  const authorization = {
    from: ACCOUNT.address,
    to: ENTRY.payTo,
    value: "10000",
    validAfter: "1799999400",
    validBefore: "1800000060",
    nonce: `0x${"07".repeat(32)}`,
  };

  test("of version 2 sends back the entry and the resource", async () => {
    const { name, value } = await payer.sign(order(), NOW);
    expect(name).toBe("PAYMENT-SIGNATURE");
    expect(read(value)).toEqual({
      x402Version: 2,
      payload: { authorization, signature: expect.stringMatching(/^0x[0-9a-f]{130}$/) },
      resource: { url: "https://acme.example/report" },
      accepted: ENTRY,
    });
  });

  test("of version 2 has no resource where none was given", async () => {
    const { value } = await payer.sign(order({ pays: pays({ resource: null }) }), NOW);
    expect(read(value)).not.toHaveProperty("resource");
  });

  test("of version 1 names the network as the entry does", async () => {
    const asked = pays({ protocol: 1, network: "base-sepolia", entry: ENTRY_V1, resource: null });
    const { name, value } = await payer.sign(order({ pays: asked }), NOW);
    expect(name).toBe("X-PAYMENT");
    expect(read(value)).toEqual({
      x402Version: 1,
      scheme: "exact",
      network: "base-sepolia",
      payload: { authorization, signature: expect.stringMatching(/^0x[0-9a-f]{130}$/) },
    });
  });

  test("is the same for the same order: asking twice does not make a second payment", async () => {
    const [first, second] = await Promise.all([payer.sign(order(), NOW), payer.sign(order(), NOW + 1_000)]);
    expect(second).toEqual(first);
  });

  test("is never valid longer than the order says: its end is rounded down to a second", async () => {
    const { value } = await payer.sign(order({ validAfter: NOW - 1, validBefore: NOW + 1_999 }), NOW);
    expect(read(value).payload.authorization).toMatchObject({
      validAfter: "1799999999",
      validBefore: "1800000001",
    });
  });
});

describe("the signature is that of x402's own client", () => {
  const clients = {
    1: { client: new ExactEvmSchemeV1(ACCOUNT), asked: ENTRY_V1 },
    2: { client: new ExactEvmScheme(ACCOUNT), asked: ENTRY },
  } as const;
  for (const protocol of [1, 2] as const) {
    test(`in version ${protocol}, for the same nonce and times`, async () => {
      const { client, asked } = clients[protocol];
      const { payload } = await client.createPaymentPayload(protocol, asked as never);
      const { authorization } = payload as {
        authorization: Record<"nonce" | "validAfter" | "validBefore", string>;
      };
      const validBefore = Number(authorization.validBefore) * 1_000;
      const { value } = await payer.sign(
        order({
          pays: pays({ protocol, network: asked.network, entry: asked }),
          validAfter: Number(authorization.validAfter) * 1_000,
          validBefore,
          nonce: authorization.nonce,
        }),
        validBefore - AUTHORIZATION_MS_MAX,
      );
      expect(read(value).payload).toEqual(payload);
    });
  }
});

describe("nothing is signed", () => {
  const chain = (chainId: number) => ({ pays: pays({ chainId, network: `eip155:${chainId}` }) });
  const REFUSED: Readonly<Record<string, Partial<PaymentOrder>>> = {
    "for Base by the sandbox's wallet": chain(BASE),
    "for Ethereum by the sandbox's wallet": chain(1),
    "for a chain that nobody knows by the sandbox's wallet": chain(999_999),
    "for another chain than the network's name": { pays: pays({ network: "eip155:31337" }) },
    "for a name that x402's packages do not know": { pays: pays({ protocol: 1, network: "optimism" }) },
    "for no chain": chain(0),
    "for half a chain": chain(84_532.5),
    "of nothing": { amount: 0n },
    "of less than nothing": { amount: -1n },
    "of more than the ledger can hold": { amount: 2n ** 63n },
    "that holds longer than a minute": { validBefore: NOW + AUTHORIZATION_MS_MAX + 1 },
    "that has expired": { validBefore: NOW },
    "without an expiry": { validBefore: Number.NaN },
    "that holds for ever": { validBefore: Number.POSITIVE_INFINITY },
    "that begins when it ends": { validAfter: NOW + 60_000 },
    "that begins before time": { validAfter: -1 },
    "with a short nonce": { nonce: "0x07" },
    "with a nonce without 0x": { nonce: "07".repeat(32) },
    "with a nonce of other letters": { nonce: `0x${"0g".repeat(32)}` },
    "for a payee that is no address": { pays: pays({ payTo: "acme" }) },
    "for a token that is no address": { pays: pays({ contract: "0x036cbd" }) },
  };
  for (const [what, overrides] of Object.entries(REFUSED)) {
    test(what, async () => {
      await expect(payer.sign(order(overrides), NOW)).rejects.toBeInstanceOf(SigningRefused);
    });
  }

  test("for a test network by the live wallet", async () => {
    await expect(createEvmPayer("live", KEY).sign(order(), NOW)).rejects.toBeInstanceOf(SigningRefused);
  });

  test("by both modes' wallets for one chain, whichever it is", async () => {
    const signs = (mode: "sandbox" | "live", chainId: number) =>
      createEvmPayer(mode, KEY)
        .sign(order(chain(chainId)), NOW)
        .then(
          () => true,
          () => false,
        );
    const chains = fc.oneof(
      fc.constantFrom(1, 10, 137, BASE, BASE_SEPOLIA, 31_337, 43_113),
      fc.integer({ min: 1 }),
    );
    await fc.assert(
      fc.asyncProperty(chains, async (chainId) => {
        const [sandbox, live] = [await signs("sandbox", chainId), await signs("live", chainId)];
        expect([sandbox, live]).toEqual([isTestNetwork(chainId), !isTestNetwork(chainId)]);
      }),
      { numRuns: 50 },
    );
  });
});

describe("x402's packages are not trusted: no payment is made where they", () => {
  const asking = (changed: Partial<Parameters<ExactScheme>[0]>): ExactScheme => {
    return (terms, signer) => officialScheme({ ...terms, ...changed }, signer);
  };
  const signing = (change: (asked: Asked) => object): ExactScheme => {
    return (terms, { address, signTypedData }) =>
      officialScheme(terms, {
        address,
        signTypedData: (asked) => signTypedData({ ...asked, ...change(asked) }),
      });
  };
  const making = (change: (made: Made) => unknown): ExactScheme => {
    return async (terms, signer) => change((await officialScheme(terms, signer)) as Made);
  };
  type Asked = Parameters<Parameters<ExactScheme>[1]["signTypedData"]>[0];
  type Made = { readonly authorization: object; readonly signature: string };
  const other = `0x${"a1".repeat(20)}` as const;
  const WRONG: Readonly<Record<string, ExactScheme>> = {
    "ask to sign another amount": asking({ amount: 10_001n }),
    "ask to sign for another payee": asking({ payTo: other }),
    "ask to sign for another token": asking({ contract: other }),
    "ask to sign for another chain": asking({ network: "eip155:31337" }),
    "ask to sign for another domain's name": asking({ tokenName: "USD Coin" }),
    "ask to sign for another domain's version": asking({ tokenVersion: "1" }),
    "ask to sign with a salt": signing(({ domain }) => ({ domain: { ...domain, salt: other } })),
    "ask to sign for another payer": signing(({ message }) => ({ message: { ...message, from: other } })),
    "ask to sign something else": signing(() => ({ primaryType: "Permit" })),
    "ask to sign in other types": signing(({ types }) => ({ types: { ...types, Permit: [] } })),
    "make another amount": making(({ authorization, signature }) => ({
      authorization: { ...authorization, value: "1" },
      signature,
    })),
    "make another signature": making((made) => ({ ...made, signature: `0x${"00".repeat(65)}` })),
    "make more than a payment": making((made) => ({ ...made, permit2Authorization: {} })),
    "make no authorization": making(({ signature }) => ({ signature })),
    "ask for a signature twice": async (terms, signer) => {
      await officialScheme(terms, signer);
      return officialScheme(terms, signer);
    },
    "ask for no signature": async () => ({ authorization: {}, signature: "0x" }),
  };
  for (const [what, scheme] of Object.entries(WRONG)) {
    test(what, async () => {
      const wallet = createEvmPayer("sandbox", KEY, scheme);
      await expect(wallet.sign(order(), NOW)).rejects.toBeInstanceOf(SigningRefused);
    });
  }

  test("but a payment is made where they do what the order says", async () => {
    const wallet = createEvmPayer("sandbox", KEY, asking({}));
    expect(await wallet.sign(order(), NOW)).toEqual(await payer.sign(order(), NOW));
  });
});

test("a live wallet signs for a main network", async () => {
  const { value } = await createEvmPayer("live", KEY).sign(
    order({ pays: pays({ chainId: BASE, network: "eip155:8453", tokenName: "USD Coin" }) }),
    NOW,
  );
  expect(read(value).payload.authorization.from).toBe(ACCOUNT.address);
});
