import { parseEndpoints } from "./x402/settings.ts";

/** How the settings of anchors on a chain are read (README, "Configuration"). */

type Problem = { readonly problem: string };

/** One chain and its endpoint, such as `eip155:8453=https://…`. No message repeats it, since the URL may hold a key. */
export function parseEndpoint(text: string): { readonly chainId: number; readonly url: string } | Problem {
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
