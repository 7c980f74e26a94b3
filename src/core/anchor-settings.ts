import { type Refusal, refuseField } from "./errors.ts";
import { parseEndpoints } from "./x402/settings.ts";

/** How the settings of anchors on a chain are read (docs/configuration, "Configuration"). */

type Problem = { readonly problem: string };

/** How the log is anchored on an EVM chain. */
export type AnchorPlan = Endpoint & {
  readonly confirmations: number;
  readonly everyMinutes: number;
  /** The most that is paid for each unit of gas, in wei. */
  readonly feeMax: bigint;
};

/** The URL may hold the provider's key, so no log may show it. */
type Endpoint = { readonly chainId: number; readonly url: string };

const ANCHORS = ["local", "evm"] as const;
type Anchor = (typeof ANCHORS)[number];

export const parseAnchor = (text: string): Anchor | Problem =>
  ANCHORS.find((anchor) => anchor === text) ?? { problem: `must be ${ANCHORS.join(" or ")}` };

/** One chain and its endpoint, such as `eip155:8453=https://…`. No message repeats it, since the URL may hold a key. */
export function parseEndpoint(text: string): Endpoint | Problem {
  const endpoints = parseEndpoints(text);
  const [only, ...others] = "problem" in endpoints ? [] : endpoints;
  return only === undefined || others.length > 0
    ? { problem: "must be one chain and its JSON-RPC URL, such as eip155:8453=https://rpc.example" }
    : { chainId: only[0], url: only[1] };
}

const DECIMALS = 9;
export const WEI_OF_GWEI = 10n ** BigInt(DECIMALS);

/** An amount of gwei, in wei. */
export function parseGwei(text: string): bigint | Problem {
  const [, whole, fraction = ""] = /^([0-9]{1,9})(?:\.([0-9]{1,9}))?$/.exec(text) ?? [];
  const wei = whole === undefined ? 0n : BigInt(whole + fraction.padEnd(DECIMALS, "0"));
  return wei > 0n ? wei : { problem: "must be gwei for each unit of gas, above zero, such as 100 or 0.05" };
}

/** The settings by their names; those that are left out have defaults, except for the endpoint. Null where the log is not anchored on a chain. */
export function anchorPlanOf({
  ANCHOR: anchor = "local",
  ANCHOR_RPC: rpc,
  ANCHOR_CONFIRMATIONS: confirmations = 12,
  ANCHOR_MINUTES: everyMinutes = 60,
  ANCHOR_FEE_MAX: feeMax = 100n * WEI_OF_GWEI,
}: {
  readonly ANCHOR?: Anchor;
  readonly ANCHOR_RPC?: Endpoint;
  readonly ANCHOR_CONFIRMATIONS?: number;
  readonly ANCHOR_MINUTES?: number;
  readonly ANCHOR_FEE_MAX?: bigint;
}): AnchorPlan | null | Refusal {
  if (anchor === "local") return null;
  return rpc === undefined
    ? refuseField(
        "HOLDFAST_ANCHOR_RPC",
        "must be set where HOLDFAST_ANCHOR is evm, such as eip155:8453=https://rpc.example",
      )
    : { ...rpc, confirmations, everyMinutes, feeMax };
}
