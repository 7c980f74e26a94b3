import { x402Facilitator } from "@x402/core/facilitator";
import type { Network, PaymentPayload, PaymentRequirements } from "@x402/core/types";
import { toFacilitatorEvmSigner } from "@x402/evm";
import { ExactEvmScheme } from "@x402/evm/exact/facilitator";
import { ExactEvmSchemeV1 } from "@x402/evm/exact/v1/facilitator";
import { type Chain, facilitatorWallet, NETWORK_V1, NETWORK_V2 } from "./chain.ts";
import { type Answer, listen } from "./listener.ts";

/** What a facilitator does with the payments of a seller. The path that the seller calls chooses it. */
export const FACILITATOR_FAULTS = [
  /** Says that the payment is not valid. */
  "verify-refuses",
  "verify-500",
  "verify-hangs",
  /** Says that it did not settle, which is true. */
  "settle-refuses",
  "settle-500",
  "settle-hangs",
  "settle-drops",
  /** These settle, and then lose the answer, in three ways. */
  "settled-then-500",
  "settled-then-hangs",
  "settled-then-drops",
] as const;
export type FacilitatorFault = (typeof FACILITATOR_FAULTS)[number];

export type Facilitator = {
  /** The URL of a facilitator that works, or has this fault, for a seller. */
  urlOf(fault?: FacilitatorFault): string;
  /** How many payments were settled on the chain through it. */
  readonly settled: number;
  /** Resolves when one more request was left without an answer. */
  leavesOne(): Promise<void>;
  close(): Promise<void>;
};

type Handed = {
  readonly paymentPayload: PaymentPayload;
  readonly paymentRequirements: PaymentRequirements;
};

/** The official facilitator code, versions 1 and 2, on the local chain, over HTTP. */
export async function startFacilitator(chain: Chain): Promise<Facilitator> {
  const official = officialFacilitator(chain);
  let settled = 0;
  const settle = async ({ paymentPayload, paymentRequirements }: Handed) => {
    const result = await official.settle(paymentPayload, paymentRequirements);
    if (result.success) settled++;
    return result;
  };
  const listener = await listen(async (request) => {
    const [, fault = "", verb = ""] = new URL(request.url).pathname.split("/");
    if (verb === "supported") return Response.json(official.getSupported());
    const handed = (await request.json()) as Handed;
    const { paymentPayload, paymentRequirements } = handed;
    if (verb === "verify") {
      const verify = () => official.verify(paymentPayload, paymentRequirements);
      return verifyFault(fault) ?? Response.json(await verify());
    }
    return settleFault(fault, paymentPayload) ?? afterSettling(fault, await settle(handed));
  });
  return {
    urlOf: (fault) => `${listener.url}/${fault ?? "works"}`,
    get settled() {
      return settled;
    },
    leavesOne: listener.leavesOne,
    close: listener.close,
  };
}

const failed = () => Response.json({ error: "out of order" }, { status: 500 });

function verifyFault(fault: string): Answer | null {
  if (fault === "verify-refuses") return Response.json({ isValid: false, invalidReason: "invalid_payload" });
  if (fault === "verify-500") return failed();
  return fault === "verify-hangs" ? "never" : null;
}

function settleFault(fault: string, payload: PaymentPayload): Answer | null {
  if (fault === "settle-refuses") {
    const network = payload.accepted?.network ?? NETWORK_V1;
    return Response.json({ success: false, errorReason: "unexpected_error", transaction: "", network });
  }
  if (fault === "settle-500") return failed();
  if (fault === "settle-hangs") return "never";
  return fault === "settle-drops" ? "dropped" : null;
}

function afterSettling(fault: string, result: object): Answer {
  if (fault === "settled-then-500") return failed();
  if (fault === "settled-then-hangs") return "never";
  return fault === "settled-then-drops" ? "dropped" : Response.json(result);
}

/** Tests also use it, to find out whether the official code accepts a header. */
export function officialFacilitator(chain: Chain): x402Facilitator {
  const wallet = facilitatorWallet(chain);
  let last: Promise<unknown> = Promise.resolve();
  /** One transaction after the other, since the wallet's next nonce follows from those on the chain. */
  const inTurn = <Result>(send: () => Promise<Result>): Promise<Result> => {
    const sent = last.then(send, send);
    last = sent.catch(() => {});
    return sent;
  };
  const signer = toFacilitatorEvmSigner({
    address: wallet.account.address,
    getCode: (args) => wallet.getCode(args),
    readContract: (args) => wallet.readContract({ ...args, args: args.args ?? [] }),
    verifyTypedData: (args) => wallet.verifyTypedData(args as Parameters<typeof wallet.verifyTypedData>[0]),
    writeContract: (args) => inTurn(() => wallet.writeContract({ ...args, gas: args.gas ?? GAS } as never)),
    sendTransaction: (args) => inTurn(() => wallet.sendTransaction(args as never)),
    waitForTransactionReceipt: (args) => wallet.waitForTransactionReceipt(args),
  });
  return new x402Facilitator()
    .register(NETWORK_V2, new ExactEvmScheme(signer))
    .registerV1(NETWORK_V1 as Network, new ExactEvmSchemeV1(signer));
}

/** More gas than a transfer takes. A payment that the chain refuses must fail in a block, as on a real chain. */
const GAS = 200_000n;
