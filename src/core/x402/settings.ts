import { checkSourceUrl } from "../source-url.ts";
import { type AssetRule, findAsset } from "./assets.ts";
import { chainOfCaip2 } from "./chains.ts";

/** How the settings of purchases are read (docs/configuration, "Configuration"). */

type Problem = { readonly problem: string };

const ASSET = /^(eip155:[0-9]+)\/(0x[0-9a-fA-F]{40})=([A-Za-z0-9._-]{1,32}):([^:]{1,64}):([^:]{1,16})$/;

/** Entries such as `eip155:84532/0x…=USDC:USD Coin:2`: chain and contract, asset in the ledger, EIP-712 name and version. */
export function parseAssets(text: string): readonly AssetRule[] | Problem {
  const rules: AssetRule[] = [];
  for (const entry of text.split(",").map((entry) => entry.trim())) {
    const [, chain = "", address = "", asset = "", tokenName = "", tokenVersion = ""] =
      ASSET.exec(entry) ?? [];
    const chainId = chainOfCaip2(chain);
    if (chainId === null) {
      return { problem: `must be tokens such as eip155:84532/0x…=USDC:USD Coin:2; ${entry} is not a token` };
    }
    const contract = address.toLowerCase();
    if (findAsset(rules, chainId, contract))
      return { problem: `must be tokens, each named once; ${entry} is named twice` };
    rules.push({ chainId, contract, asset, tokenName, tokenVersion });
  }
  return rules;
}

/** Entries such as `eip155:84532=https://…`. No message repeats one, since the URL may hold a key. */
export function parseEndpoints(text: string): ReadonlyMap<number, string> | Problem {
  const urls = new Map<number, string>();
  for (const entry of text.split(",").map((entry) => entry.trim())) {
    const [, chain = "", url = ""] = /^([^=]+)=(.+)$/.exec(entry) ?? [];
    const chainId = chainOfCaip2(chain);
    if (chainId === null || checkSourceUrl(url) !== null) {
      return { problem: "must be chains and their JSON-RPC URLs, such as eip155:84532=https://rpc.example" };
    }
    if (urls.has(chainId)) return { problem: `must be chains, each named once; ${chain} is named twice` };
    urls.set(chainId, url);
  }
  return urls;
}
