import { describe, expect, test } from "bun:test";
import { ExactEvmScheme } from "@x402/evm/exact/client";
import { ExactEvmScheme as ExactEvmSeller } from "@x402/evm/exact/server";
import { EVM_NETWORK_CHAIN_ID_MAP, NETWORKS } from "@x402/evm/v1";
import fc from "fast-check";
import { privateKeyToAccount } from "viem/accounts";
import { isRefusal, type Refusal } from "../../../src/core/errors.ts";
import { AMOUNT_MAX } from "../../../src/core/money.ts";
import { MODES } from "../../../src/core/roles.ts";
import { type AssetRule, findAsset, KNOWN_ASSETS } from "../../../src/core/x402/assets.ts";
import { chainOfCaip2, chainOfNetwork, isTestNetwork } from "../../../src/core/x402/chains.ts";
import { type Challenge, parseChallenge } from "../../../src/core/x402/challenge.ts";
import { type Buyer, chooseEntry, type Quote } from "../../../src/core/x402/quote.ts";

const PAY_TO = "0x209693Bc6afc0C5328bA36FaF03C514EF312287C";
const usdcOf = (chainId: number): AssetRule => KNOWN_ASSETS.find((rule) => rule.chainId === chainId)!;
const LOCAL: AssetRule = {
  chainId: 31_337,
  contract: "0x5fbdb2315678afecb367f032d93f642f64180aa3",
  asset: "TEST",
  tokenName: "USDC",
  tokenVersion: "2",
};

const v2 = (chainId: number, amount: string, changed: object = {}) => ({
  scheme: "exact",
  network: `eip155:${chainId}`,
  amount,
  asset: findAsset([LOCAL, ...KNOWN_ASSETS], chainId, LOCAL.contract)?.contract ?? usdcOf(chainId)?.contract,
  payTo: PAY_TO,
  maxTimeoutSeconds: 300,
  extra: {},
  ...changed,
});
const v1 = (network: string, chainId: number, changed: object = {}) => {
  const { amount, ...entry } = v2(chainId, "100");
  return { ...entry, network, maxAmountRequired: amount, ...changed };
};
const read = (value: object): Challenge => {
  const parsed = parseChallenge({ headers: {}, body: JSON.stringify(value) });
  if (isRefusal(parsed)) throw new Error(parsed.message);
  return parsed;
};
const ofV2 = (...accepts: readonly object[]) =>
  read({ x402Version: 2, resource: { url: "https://seller.example/" }, accepts });
const ofV1 = (...accepts: readonly object[]) => read({ x402Version: 1, accepts });

const buyer = (changed: Partial<Buyer> = {}): Buyer => ({
  mode: "sandbox",
  maxAmount: 1_000n,
  asset: "USDC",
  payable: { hasWallet: true, assets: [LOCAL, ...KNOWN_ASSETS] },
  ...changed,
});
const LIVE = buyer({ mode: "live" });
const chosen = (challenge: Challenge, by: Buyer): Quote => {
  const quote = chooseEntry(challenge, by);
  if (isRefusal(quote)) throw new Error(quote.message);
  return quote;
};
const refused = (challenge: Challenge, by: Buyer): Refusal => {
  const quote = chooseEntry(challenge, by);
  if (!isRefusal(quote)) throw new Error("it was chosen");
  return quote;
};

describe("a simple challenge", () => {
  const challenge = read({ amount: "1000", asset: "EURC", payee: "acme" });

  for (const mode of MODES) {
    test(`is a voucher in ${mode}, without a wallet too`, () => {
      const by = buyer({ mode, asset: "EURC", payable: { hasWallet: false, assets: [] } });
      expect(chosen(challenge, by)).toEqual({
        amount: 1_000n,
        asset: "EURC",
        payee: "acme",
        timeoutSeconds: null,
        pays: { kind: "voucher" },
      });
    });

    test(`above the ceiling is refused in ${mode}`, () => {
      expect(refused(challenge, buyer({ mode, asset: "EURC", maxAmount: 999n }))).toEqual({
        refused: "x402_quote_above_max",
        message: "The seller asks 1000 EURC, above 999.",
      });
      const huge = read({ amount: "9223372036854775808", asset: "USDC", payee: "acme" });
      expect(refused(huge, buyer({ mode, maxAmount: AMOUNT_MAX })).refused).toBe("x402_quote_above_max");
    });
  }
});

describe("another asset than the ceiling's cannot be paid, however little of it is asked", () => {
  const WBTC = { ...LOCAL, contract: `0x${"b7".repeat(20)}`, asset: "WBTC" };
  const listed = { hasWallet: true, assets: [WBTC, ...KNOWN_ASSETS] };
  const inToken = v2(WBTC.chainId, "1", { asset: WBTC.contract });
  const inUsdc = v2(84_532, "900");
  const none = "Nothing that the seller accepts can be paid in sandbox: ";

  test("by a voucher", () => {
    expect(refused(read({ amount: "1", asset: "WBTC", payee: "acme" }), buyer())).toEqual({
      refused: "x402_scheme_unsupported",
      message: `${none}the price is in WBTC, and max_amount in USDC.`,
    });
  });

  test("on a chain", () => {
    expect(refused(ofV2(inToken), buyer({ payable: listed }))).toEqual({
      refused: "x402_scheme_unsupported",
      message: `${none}accepts.0: the price is in WBTC, and max_amount in USDC.`,
    });
    expect(refused(ofV2(inUsdc), buyer({ asset: "WBTC" })).message).toContain(
      "accepts.0: the price is in USDC, and max_amount in WBTC",
    );
  });

  test("the first entry in the ceiling's asset is taken", () => {
    const challenge = ofV2(inToken, inUsdc);
    expect(chosen(challenge, buyer({ payable: listed }))).toMatchObject({ asset: "USDC", amount: 900n });
    const inBtc = buyer({ payable: listed, asset: "WBTC" });
    expect(chosen(challenge, inBtc)).toMatchObject({ asset: "WBTC", amount: 1n });
  });
});

describe("exact", () => {
  test("of version 2 is quoted in the ledger's asset, with the entry as given", () => {
    const entry = v2(84_532, "100", { asset: "0x036CbD53842c5426634e7929541eC2318f3dCF7e" });
    expect(chosen(ofV2(entry), buyer())).toEqual({
      amount: 100n,
      asset: "USDC",
      payee: PAY_TO,
      timeoutSeconds: 300,
      pays: {
        kind: "exact",
        protocol: 2,
        network: "eip155:84532",
        chainId: 84_532,
        contract: "0x036cbd53842c5426634e7929541ec2318f3dcf7e",
        payTo: PAY_TO,
        tokenName: "USDC",
        tokenVersion: "2",
        entry,
        resource: { url: "https://seller.example/" },
      },
    });
  });

  test("of version 1 is of the chain that its name means", () => {
    const entry = v1("base-sepolia", 84_532);
    expect(chosen(ofV1(entry), buyer()).pays).toMatchObject({
      kind: "exact",
      ...{ protocol: 1, network: "base-sepolia", chainId: 84_532, entry, resource: null },
    });
    expect(chosen(ofV1(v1("base", 8_453)), LIVE).pays).toMatchObject({ chainId: 8_453 });
  });

  test("of a configured token is of the asset that the configuration says", () =>
    expect(chosen(ofV2(v2(31_337, "7")), buyer({ asset: "TEST" }))).toMatchObject({
      asset: "TEST",
      amount: 7n,
    }));

  test("takes the rule that comes first, so that a configured one wins over a known one", () => {
    const own: AssetRule = { ...usdcOf(84_532), asset: "USDC.base" };
    const payable = { hasWallet: true, assets: [own, ...KNOWN_ASSETS] };
    expect(chosen(ofV2(v2(84_532, "1")), buyer({ payable, asset: "USDC.base" })).asset).toBe("USDC.base");
  });

  const TABLE: readonly (readonly [name: string, challenge: Challenge, by: Buyer, reason: string])[] = [
    ["another scheme", ofV2(v2(84_532, "1", { scheme: "upto" })), buyer(), "the scheme upto is not known"],
    [
      "the scheme in capitals",
      ofV2(v2(84_532, "1", { scheme: "Exact" })),
      buyer(),
      "the scheme Exact is not known",
    ],
    [
      "Solana",
      ofV2(v2(84_532, "1", { network: "solana:devnet" })),
      buyer(),
      "the network solana:devnet is not known",
    ],
    [
      "a wildcard",
      ofV2(v2(84_532, "1", { network: "eip155:*" })),
      buyer(),
      "the network eip155:* is not known",
    ],
    [
      "a name of version 1 in version 2",
      ofV2(v2(84_532, "1", { network: "base-sepolia" })),
      buyer(),
      "the network base-sepolia is not known",
    ],
    [
      "CAIP-2 in version 1",
      ofV1(v1("eip155:84532", 84_532)),
      buyer(),
      "the network eip155:84532 is not known",
    ],
    ["an unknown name", ofV1(v1("constructor", 84_532)), buyer(), "the network constructor is not known"],
    ["a main network in the sandbox", ofV2(v2(8_453, "1")), buyer(), "eip155:8453 is not a test network"],
    [
      "a main network in the sandbox, by name",
      ofV1(v1("base", 8_453)),
      buyer(),
      "base is not a test network",
    ],
    ["a test network in live", ofV2(v2(84_532, "1")), LIVE, "eip155:84532 is a test network"],
    ["a local chain in live", ofV2(v2(31_337, "1")), LIVE, "eip155:31337 is a test network"],
    [
      "a token that is not listed",
      ofV2(v2(84_532, "1", { asset: PAY_TO })),
      buyer(),
      `the token ${PAY_TO} of eip155:84532 is not one that Holdfast pays with`,
    ],
    [
      "another chain's token",
      ofV2(v2(84_532, "1", { asset: usdcOf(8_453).contract })),
      buyer(),
      `the token ${usdcOf(8_453).contract} of eip155:84532 is not one that Holdfast pays with`,
    ],
    [
      "a chain that is not configured",
      ofV2(v2(59_144, "1", { asset: LOCAL.contract })),
      LIVE,
      `the token ${LOCAL.contract} of eip155:59144 is not one that Holdfast pays with`,
    ],
    [
      "no wallet",
      ofV2(v2(84_532, "1")),
      buyer({ payable: { hasWallet: false, assets: KNOWN_ASSETS } }),
      "there is no wallet for sandbox",
    ],
    [
      "a payTo that is no address",
      ofV2(v2(84_532, "1", { payTo: "acme" })),
      buyer(),
      "payTo is not an address of the network",
    ],
    [
      "a payTo that is too short",
      ofV2(v2(84_532, "1", { payTo: "0x20" })),
      buyer(),
      "payTo is not an address of the network",
    ],
    [
      "Permit2",
      ofV2(v2(84_532, "1", { extra: { assetTransferMethod: "permit2" } })),
      buyer(),
      "the transfer is not one by EIP-3009",
    ],
    [
      "an escrow",
      ofV2(v2(84_532, "1", { extra: { paymentFlow: "escrow" } })),
      buyer(),
      "the payment flow is not known",
    ],
    [
      "another domain's name",
      ofV2(v2(84_532, "1", { extra: { name: "USD Coin", version: "2" } })),
      buyer(),
      "the token's EIP-712 domain is USDC 2, and the seller says another",
    ],
    [
      "another domain's version",
      ofV2(v2(84_532, "1", { extra: { name: "USDC", version: 2 } })),
      buyer(),
      "the token's EIP-712 domain is USDC 2, and the seller says another",
    ],
  ];
  for (const [name, challenge, by, reason] of TABLE) {
    test(`with ${name} cannot be paid: ${reason}`, () => {
      expect(refused(challenge, by)).toEqual({
        refused: "x402_scheme_unsupported",
        message: `Nothing that the seller accepts can be paid in ${by.mode}: accepts.0: ${reason}.`,
      });
    });
  }

  test("takes terms that repeat the defaults", () => {
    const extra = { name: "USDC", version: "2", assetTransferMethod: "eip3009", paymentFlow: "upfront" };
    expect(chosen(ofV2(v2(84_532, "1", { extra })), buyer()).amount).toBe(1n);
  });
});

describe("of many entries", () => {
  test("the first that can be paid and is within the ceiling is taken", () => {
    const challenge = ofV2(
      v2(84_532, "1", { scheme: "upto" }),
      v2(8_453, "2"),
      v2(84_532, "1001"),
      v2(84_532, "1000"),
      v2(84_532, "1"),
    );
    expect(chosen(challenge, buyer()).amount).toBe(1_000n);
    expect(chosen(challenge, LIVE).amount).toBe(2n);
  });

  test("payable ones only above the ceiling are refused by the first's amount", () => {
    const challenge = ofV2(v2(8_453, "1"), v2(84_532, "1002"), v2(31_337, "1001"));
    expect(refused(challenge, buyer())).toEqual({
      refused: "x402_quote_above_max",
      message: "The seller asks 1002 USDC, above 1000.",
    });
  });

  test("where no entry can be paid, the message has the reason of each", () => {
    expect(refused(ofV2(v2(8_453, "1"), v2(1, "1", { scheme: "upto" })), buyer()).message).toBe(
      "Nothing that the seller accepts can be paid in sandbox: " +
        "accepts.0: eip155:8453 is not a test network; accepts.1: the scheme upto is not known.",
    );
  });
});

describe("networks", () => {
  test("whatever is listed and asked, the sandbox pays only on test networks, and live never does", () => {
    const assets = [{ ...LOCAL, asset: "USDC" }, ...KNOWN_ASSETS];
    const chains = assets.map(({ chainId }) => chainId);
    const entry = fc.record({
      chainId: fc.constantFrom(...chains),
      amount: fc.integer({ min: 1, max: 2_000 }),
    });
    fc.assert(
      fc.property(
        fc.array(entry, { minLength: 1, maxLength: 8 }),
        fc.constantFrom(...MODES),
        (entries, mode) => {
          const challenge = ofV2(...entries.map(({ chainId, amount }) => v2(chainId, String(amount))));
          const quote = chooseEntry(challenge, buyer({ mode, payable: { hasWallet: true, assets } }));
          const payable = entries.filter(({ chainId }) => isTestNetwork(chainId) === (mode === "sandbox"));
          const within = payable.filter(({ amount }) => amount <= 1_000);
          if (!isRefusal(quote)) {
            const { pays, amount } = quote;
            expect([pays.kind === "exact" && pays.chainId, amount]).toEqual([
              within[0]!.chainId,
              BigInt(within[0]!.amount),
            ]);
            return;
          }
          expect(within).toEqual([]);
          expect(quote.refused).toBe(payable.length > 0 ? "x402_quote_above_max" : "x402_scheme_unsupported");
        },
      ),
    );
  });

  test("that are not known count as real money", () => {
    for (const chainId of [1, 8_453, 137, 43_114, 42_161, 59_144, 7_777_777]) {
      expect([chainId, isTestNetwork(chainId)]).toEqual([chainId, false]);
    }
    for (const chainId of [84_532, 43_113, 80_002, 421_614, 11_155_111, 31_337, 1_337]) {
      expect([chainId, isTestNetwork(chainId)]).toEqual([chainId, true]);
    }
  });

  test("of version 1 are those of @x402/evm, by the same chain ids", () => {
    for (const [name, chainId] of Object.entries(EVM_NETWORK_CHAIN_ID_MAP)) {
      expect([name, chainOfNetwork(1, name)]).toEqual([name, chainId]);
    }
    for (const name of ["", "Base", "solana", "toString", "eip155:8453"]) {
      expect(chainOfNetwork(1, name)).toBeNull();
    }
  });

  test("whose name says test are test networks", () => {
    const named = NETWORKS.filter((name) => /sepolia|testnet|fuji|amoy/.test(name));
    for (const name of NETWORKS) {
      expect([name, isTestNetwork(chainOfNetwork(1, name)!)]).toEqual([name, named.includes(name)]);
    }
  });

  const CAIP: readonly (readonly [network: string, chainId: number | null])[] = [
    ["eip155:1", 1],
    ["eip155:31337", 31_337],
    ["eip155:9007199254740991", Number.MAX_SAFE_INTEGER],
    ["eip155:9007199254740993", null],
    ["eip155:99999999999999999999", null],
    ["eip155:0", null],
    ["eip155:01", null],
    ["eip155:-1", null],
    ["eip155:", null],
    ["eip155:1e3", null],
    ["eip155: 1", null],
    ["EIP155:1", null],
    ["eip155:1\n", null],
    ["solana:1", null],
    ["1", null],
  ];
  for (const [network, chainId] of CAIP) {
    test(`${JSON.stringify(network)} is the chain ${chainId}`, () =>
      expect(chainOfCaip2(network)).toBe(chainId));
  }
});

describe("the known assets", () => {
  const { findDefaultAsset } = new ExactEvmScheme(privateKeyToAccount(`0x${"1".repeat(64)}`));
  const official = (chainId: number, contract: string) => findDefaultAsset(contract, `eip155:${chainId}`);

  test("are @x402/evm's USDC by EIP-3009, to the digit, and two test networks more", () => {
    const others = KNOWN_ASSETS.filter(({ chainId, contract }) => !official(chainId, contract));
    expect(others.map(({ chainId }) => chainId)).toEqual([43_113, 80_002]);
    for (const rule of KNOWN_ASSETS.filter((known) => !others.includes(known))) {
      const { asset = "", ...rest } = official(rule.chainId, rule.contract) ?? {};
      expect([asset.toLowerCase(), rest]).toEqual([
        rule.contract,
        { name: rule.tokenName, version: rule.tokenVersion, decimals: 6, symbol: "USDC" },
      ]);
    }
  });

  test("include all that @x402/evm has on the networks of version 1", async () => {
    for (const chainId of Object.values(EVM_NETWORK_CHAIN_ID_MAP)) {
      const price = new ExactEvmSeller().parsePrice("$1", `eip155:${chainId}`);
      const { asset } = await price.catch(() => ({ asset: "" }));
      const found = official(chainId, asset);
      if (found?.symbol !== "USDC" || found.assetTransferMethod) continue;
      expect(KNOWN_ASSETS).toContainEqual(
        expect.objectContaining({ chainId, contract: asset.toLowerCase() }),
      );
    }
  });

  test("are one for each chain, in lower case", () => {
    expect(new Set(KNOWN_ASSETS.map(({ chainId }) => chainId)).size).toBe(KNOWN_ASSETS.length);
    for (const { contract, asset } of KNOWN_ASSETS) {
      expect(contract).toMatch(/^0x[0-9a-f]{40}$/);
      expect(asset).toBe("USDC");
    }
  });
});
