import { getAddress, isAddress, isHex } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { AMOUNT_MAX } from "../core/money.ts";
import type { Mode } from "../core/roles.ts";
import { SECOND_MS } from "../core/time.ts";
import { caip2Of, chainOfNetwork, isTestNetwork } from "../core/x402/chains.ts";
import { AUTHORIZATION_MS_MAX, type ExactPayment, maySignUntil } from "../core/x402/quote.ts";
import type { ExactScheme } from "./exact-scheme.ts";

/** The wallet of a mode. It only signs; it has no connection to a chain. */
export type EvmPayer = {
  readonly mode: Mode;
  /** The wallet's address, with its checksum. */
  readonly address: string;
  /**
   * The payment header for one EIP-3009 authorization; the same order gives the same header. Throws `SigningRefused`, with
   * nothing signed, where this wallet may not sign the order at `now` (epoch milliseconds).
   */
  sign(order: PaymentOrder, now: number): Promise<PaymentHeader>;
};

export type PaymentOrder = {
  readonly pays: ExactPayment;
  /** In the token's smallest unit. */
  readonly amount: bigint;
  /** Epoch milliseconds. The chain counts whole seconds, so it is rounded down. */
  readonly validAfter: number;
  /** Epoch milliseconds, at most AUTHORIZATION_MS_MAX ahead. Rounded down to seconds too. */
  readonly validBefore: number;
  /** 32 bytes as `0x` and 64 hex digits. A purchase has one nonce, so the chain takes its payment once. */
  readonly nonce: string;
};

export type PaymentHeader = {
  readonly name: "X-PAYMENT" | "PAYMENT-SIGNATURE";
  readonly value: string;
};

/** The caller asked for a signature that must not exist. */
export class SigningRefused extends Error {}

/** EIP-3009, section "Transfer With Authorization". */
const TYPES = {
  TransferWithAuthorization: [
    { name: "from", type: "address" },
    { name: "to", type: "address" },
    { name: "value", type: "uint256" },
    { name: "validAfter", type: "uint256" },
    { name: "validBefore", type: "uint256" },
    { name: "nonce", type: "bytes32" },
  ],
} as const;

/** x402's packages take 10 ms to load, so only a payment on a chain loads them. By `require`, for the reason in passkeys.ts. */
const packages = (): typeof import("./exact-scheme.ts") => require("./exact-scheme.ts");

/** The wallet of a private key, given as `0x` and 64 hex digits. */
export function createEvmPayer(
  mode: Mode,
  privateKey: `0x${string}`,
  scheme: ExactScheme = (...asked) => packages().officialScheme(...asked),
): EvmPayer {
  const account = privateKeyToAccount(privateKey);
  return {
    mode,
    address: account.address,
    async sign(order, now) {
      const transfer = transferOf(account.address, order, checkOrder(mode, order, now));
      const { message } = transfer;
      const signatures: string[] = [];
      const { pays, amount } = order;
      const terms = { ...pays, amount, timeoutSeconds: AUTHORIZATION_MS_MAX / SECOND_MS };
      const made = await scheme(terms, {
        address: account.address,
        async signTypedData(asked) {
          const { nonce, validAfter, validBefore } = message;
          // The scheme draws its own nonce and times. The order's are already on disk, so they replace these.
          const meant = { ...asked, message: { ...asked.message, nonce, validAfter, validBefore } };
          if (!Bun.deepEquals(meant, transfer, true))
            throw new SigningRefused("the scheme asks for another transfer than the order's");
          const signature = await account.signTypedData(transfer);
          signatures.push(signature);
          return signature;
        },
      });
      return headerOf(pays, payloadOf(made, message, signatures));
    },
  };
}

/** The order as an EIP-3009 transfer: exactly what is signed. */
const transferOf = (
  from: `0x${string}`,
  { pays, amount, validAfter, validBefore }: PaymentOrder,
  { nonce, contract, payTo }: ReturnType<typeof checkOrder>,
) =>
  ({
    domain: {
      name: pays.tokenName,
      version: pays.tokenVersion,
      chainId: pays.chainId,
      verifyingContract: getAddress(contract),
    },
    types: TYPES,
    primaryType: "TransferWithAuthorization",
    message: {
      from,
      to: getAddress(payTo),
      value: amount,
      validAfter: BigInt(Math.floor(validAfter / SECOND_MS)),
      validBefore: BigInt(Math.floor(validBefore / SECOND_MS)),
      nonce,
    },
  }) as const;

type Message = ReturnType<typeof transferOf>["message"];

/** The scheme's payment, with the nonce and the times that were signed. Refused where anything else in it differs. */
function payloadOf(made: unknown, message: Message, signatures: readonly string[]): object {
  const { from, to, nonce } = message;
  const ours = { nonce, validAfter: `${message.validAfter}`, validBefore: `${message.validBefore}` };
  const authorization = { from, to, value: `${message.value}`, ...ours };
  const [signature, ...others] = signatures;
  const { authorization: theirs, ...rest } = made as { readonly authorization?: object };
  const isOrders =
    others.length === 0 &&
    Bun.deepEquals({ ...theirs, ...ours, ...rest }, { ...authorization, signature }, true);
  if (!isOrders) throw new SigningRefused("the scheme made another payment than the order's");
  return { authorization, signature };
}

/** The header, put together as x402's own client does it. */
function headerOf(pays: ExactPayment, payload: object): PaymentHeader {
  const { protocol, network, entry, resource } = pays;
  return protocol === 1
    ? {
        name: "X-PAYMENT",
        value: packages().encodePayment({ x402Version: 1, scheme: "exact", network, payload }),
      }
    : {
        name: "PAYMENT-SIGNATURE",
        value: packages().encodePayment({
          x402Version: 2,
          payload,
          ...(resource === null ? {} : { resource }),
          accepted: entry,
        }),
      };
}

/** Checks an order again before money moves. All of these rules were checked earlier too. */
function checkOrder(mode: Mode, order: PaymentOrder, now: number) {
  const { pays, amount, validAfter, validBefore, nonce } = order;
  const { protocol, network, chainId, contract, payTo } = pays;
  if (!Number.isSafeInteger(chainId) || chainId < 1) throw new SigningRefused("not the id of a chain");
  if (isTestNetwork(chainId) !== (mode === "sandbox")) {
    throw new SigningRefused(`the ${mode} wallet does not sign for ${caip2Of(chainId)}`);
  }
  if (chainOfNetwork(protocol, network) !== chainId) throw new SigningRefused("not the name of that chain");
  if (amount <= 0n || amount > AMOUNT_MAX) throw new SigningRefused("not an amount that can be paid");
  if (!isAddress(contract, { strict: false }) || !isAddress(payTo, { strict: false })) {
    throw new SigningRefused("not the addresses of a token and a payee");
  }
  if (!isHex(nonce) || !/^0x[0-9a-fA-F]{64}$/.test(nonce))
    throw new SigningRefused("not a nonce of 32 bytes");
  if (!maySignUntil(validBefore, now))
    throw new SigningRefused("an authorization holds for a minute at most");
  if (!(validAfter >= 0 && validAfter < validBefore))
    throw new SigningRefused("an authorization that never holds");
  return { nonce, contract, payTo };
}
