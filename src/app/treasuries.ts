import type { Config, Secrets } from "../config.ts";
import { type Refusal, refuseField } from "../core/errors.ts";
import type { Mode } from "../core/roles.ts";
import type { Treasury } from "../core/treasury.ts";
import type { PrivateKey } from "../core/wallet-key.ts";
import { caip2Of } from "../core/x402/chains.ts";
import type { HoldingReader } from "../platform/treasury-holding.ts";

/** The wallets that hold the money on chains (docs/money, "On a chain"). */

/** viem takes 20 ms to load, so it is loaded when an address is first asked for. By `require`, for the reason in `platform/passkeys.ts`. */
const evmWallet = (): typeof import("../platform/evm-wallet.ts") => require("../platform/evm-wallet.ts");

export const treasuryKeyOf = (
  { treasurySandboxKey, treasuryLiveKey }: Secrets,
  mode: Mode,
): PrivateKey | null => (mode === "sandbox" ? treasurySandboxKey : treasuryLiveKey);

/** A mode whose key is not in this process's environment has none: a command may run without it. */
export function treasuriesWith({ treasury }: Config, secrets: Secrets): readonly Treasury[] {
  const addresses: { [M in Mode]?: string } = {};
  return treasury.tokens.flatMap((token): Treasury[] => {
    const key = treasuryKeyOf(secrets, token.mode);
    if (key === null) return [];
    return [
      {
        ...token,
        get address() {
          addresses[token.mode] ??= evmWallet().addressOf(key);
          return addresses[token.mode] as string;
        },
      },
    ];
  });
}

const holdings = (): typeof import("../platform/treasury-holding.ts") =>
  require("../platform/treasury-holding.ts");

/** Asks the chains what the wallets hold. */
export function holdingsWith({ treasury, evmRpc }: Config): HoldingReader {
  let made: HoldingReader | null = null;
  return (asked) => {
    made ??= holdings().createHoldingReader(evmRpc, treasury.rules.confirmations);
    return made(asked);
  };
}

/** Refused where a treasury lacks its key or the endpoint of its chain, or shares the wallet of the log's anchors. */
export function refuseTreasuries({ treasury, evmRpc, anchor }: Config, secrets: Secrets): Refusal | null {
  for (const { mode, chainId } of treasury.tokens) {
    const setting = `HOLDFAST_TREASURY_${mode.toUpperCase()}_KEY`;
    const key = treasuryKeyOf(secrets, mode);
    if (key === null) {
      return refuseField(
        setting,
        `must be set where HOLDFAST_TREASURY_${mode.toUpperCase()} is, or ${setting}_FILE: the private key of the wallet that holds the money`,
      );
    }
    // Each of the two owns the nonces of its wallet.
    if (anchor !== null && anchor.chainId === chainId && secrets.anchorKey === key)
      return refuseField(
        setting,
        "must be another wallet than that of HOLDFAST_ANCHOR_KEY on the same chain",
      );
    if (!evmRpc.has(chainId)) {
      const chain = caip2Of(chainId);
      return refuseField(
        "HOLDFAST_EVM_RPC",
        `must have an endpoint of ${chain}, the chain of HOLDFAST_TREASURY_${mode.toUpperCase()}, such as ${chain}=https://rpc.example`,
      );
    }
  }
  return null;
}
