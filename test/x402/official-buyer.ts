import { x402Client, x402HTTPClient } from "@x402/core/client";
import type { Network, SettleResponse } from "@x402/core/types";
import { ExactEvmScheme } from "@x402/evm/exact/client";
import { ExactEvmSchemeV1 } from "@x402/evm/exact/v1/client";
import { privateKeyToAccount } from "viem/accounts";
import { NETWORK_V1, type Wallet } from "./chain.ts";

/** x402's own client. A seller that works must be able to sell to it. */
export type OfficialBuyer = {
  /** Asks for the price, and makes the header of the payment, but does not send it. */
  sign(url: string): Promise<Readonly<Record<string, string>>>;
  /** Asks again with a payment. */
  send(url: string, headers: Readonly<Record<string, string>>, signal?: AbortSignal): Promise<Sold>;
  /** Signs and sends. */
  buy(url: string, signal?: AbortSignal): Promise<Sold>;
};

export type Sold = {
  readonly status: number;
  readonly body: string;
  readonly receipt: SettleResponse | null;
};

export function createOfficialBuyer({ key }: Wallet): OfficialBuyer {
  const account = privateKeyToAccount(key);
  const client = new x402HTTPClient(
    new x402Client()
      // By default it pays with known tokens only, and the token of these tests is not known.
      .setSpendControls(false)
      .register("eip155:*", new ExactEvmScheme(account))
      .registerV1(NETWORK_V1 as Network, new ExactEvmSchemeV1(account)),
  );
  const sign: OfficialBuyer["sign"] = async (url) => {
    const asked = await fetch(url);
    const body = asked.status === 402 ? await asked.json() : null;
    const required = client.getPaymentRequiredResponse((name) => asked.headers.get(name), body);
    return client.encodePaymentSignatureHeader(await client.createPaymentPayload(required));
  };
  const send: OfficialBuyer["send"] = async (url, headers, signal) => {
    const paid = await fetch(url, { headers, redirect: "manual", ...(signal ? { signal } : {}) });
    const receipt = readReceipt(client, paid);
    return { status: paid.status, body: await paid.text(), receipt };
  };
  return { sign, send, buy: async (url, signal) => send(url, await sign(url), signal) };
}

function readReceipt(client: x402HTTPClient, { headers }: Response): SettleResponse | null {
  try {
    return client.getPaymentSettleResponse((name) => headers.get(name));
  } catch {
    return null;
  }
}
