import assert from "node:assert/strict";
import { sha256Bytes } from "../../src/core/canonical.ts";
import { anchorAddressOf } from "../../src/core/chain-anchor.ts";
import { type DecodedTransaction, decodeTransaction } from "../../src/platform/evm-wallet.ts";
import { openLeft } from "./checks.ts";
import type { Json } from "./program.ts";
import type { Random } from "./random.ts";

/** A made-up chain that the log is anchored on. It answers late, so that the server is killed between any two of its questions. */

const CHAIN_ID = 84_532;
const CONFIRMATIONS = 2;
const BLOCK_MS = 150;
const SLOW_MS = 250;
const GWEI = 10n ** 9n;

type InBlock = DecodedTransaction & { readonly block: number };

export type Chain = {
  /** Settings of a server that anchors its log here. */
  readonly settings: Readonly<Record<string, string>>;
  /** What is in its blocks, in their order. */
  taken(): readonly InBlock[];
  stop(): Promise<void>;
};

export function startChain(random: Random): Chain {
  const startedAt = performance.now();
  const sent: InBlock[] = [];
  const newest = () => 100 + Math.floor((performance.now() - startedAt) / BLOCK_MS);
  const takenUpTo = (block: number) => sent.filter((one) => one.block <= block);
  const hex = (value: number | bigint): string => `0x${value.toString(16)}`;
  const blockOf = (tag: string): number => (tag.startsWith("0x") ? Number(tag) : newest());

  /** As a node does: it takes one transaction of a nonce, and says so of one that it has. */
  async function send(raw: string): Promise<string> {
    const decoded = await decodeTransaction(raw);
    assert.ok(decoded?.chainId === CHAIN_ID, `no transaction of this chain: ${raw}`);
    if (sent.some(({ hash }) => hash === decoded.hash)) throw new Error("already known");
    if (decoded.nonce !== sent.length)
      throw new Error(decoded.nonce < sent.length ? "nonce too low" : "nonce too high");
    sent.push({ ...decoded, block: newest() + 1 });
    return decoded.hash;
  }

  async function answerTo(method: string, params: Json): Promise<unknown> {
    switch (method) {
      case "eth_chainId":
        return hex(CHAIN_ID);
      case "eth_getBlockByNumber": {
        const number = blockOf(params[0]);
        return { number: hex(number), timestamp: hex(number), baseFeePerGas: hex(GWEI), transactions: [] };
      }
      case "eth_maxPriorityFeePerGas":
        return hex(GWEI);
      case "eth_estimateGas":
        return hex(30_000);
      case "eth_getTransactionCount":
        return hex(takenUpTo(blockOf(params[1])).length);
      case "eth_getTransactionReceipt": {
        const found = takenUpTo(newest()).find(({ hash }) => hash === params[0]);
        return found ? { transactionHash: found.hash, blockNumber: hex(found.block), status: "0x1" } : null;
      }
      case "eth_sendRawTransaction":
        return send(params[0]);
      default:
        throw new Error(`the method ${method} does not exist`);
    }
  }

  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const { id, method, params }: Json = await request.json();
      await Bun.sleep(random.below(SLOW_MS));
      const answer = await answerTo(method, params).then(
        (result) => ({ result }),
        ({ message }: Error) => ({ error: { code: -32_000, message } }),
      );
      return Response.json({ jsonrpc: "2.0", id, ...answer });
    },
  });
  return {
    settings: {
      HOLDFAST_ANCHOR: "evm",
      HOLDFAST_ANCHOR_RPC: `eip155:${CHAIN_ID}=http://127.0.0.1:${server.port}`,
      HOLDFAST_ANCHOR_KEY: `0x${"22".repeat(32)}`,
      HOLDFAST_ANCHOR_CONFIRMATIONS: String(CONFIRMATIONS),
      HOLDFAST_ANCHOR_MINUTES: "1",
    },
    taken: () => takenUpTo(newest()),
    stop: () => server.stop(true),
  };
}

type Kept = {
  readonly state: string;
  readonly block: number | null;
  readonly signings: string;
  readonly note: string;
};

/**
 * Every anchor that is in a block was on disk before, brings its checkpoint as it was signed, and is there once; and what the
 * ledger calls confirmed is in that block.
 *
 * @param taken what was in blocks at a time before that of the ledger: it was kept before it was sent
 * @returns the checkpoints that are on the chain, and how many anchors the ledger knows to be confirmed
 */
export function checkAnchors(
  folder: string,
  chain: Chain,
  taken: ReturnType<Chain["taken"]>,
): { notes: readonly string[]; confirmed: number } {
  const database = openLeft(folder);
  try {
    const kept = database
      .query<Kept, []>(
        `SELECT state, block, signings, note FROM chain_transactions JOIN log_anchors USING (chain_id, wallet, nonce)
         JOIN log_checkpoints ON log_checkpoints.number = checkpoint ORDER BY nonce`,
      )
      .all();
    const notes = taken.map(({ hash, data, to }, nonce) => {
      const { signings = "", note = "" } = kept[nonce] ?? {};
      assert.ok(signings.includes(hash), `an anchor in a block that was not kept: ${hash}`);
      const text = Buffer.from(data.slice(2), "hex").toString("utf8");
      assert.equal(text, note, `the checkpoint of the anchor ${nonce}`);
      const [name = ""] = text.split("\n");
      assert.equal(to.toLowerCase(), anchorAddressOf(name, sha256Bytes), "where an anchor goes to");
      return text;
    });
    assert.equal(new Set(notes).size, notes.length, "checkpoints that were brought to the chain, each once");
    const confirmed = [...kept.entries()].filter(([, { state }]) => state === "confirmed");
    for (const [nonce, { block }] of confirmed)
      assert.equal(chain.taken()[nonce]?.block, block, `the block of the anchor ${nonce}`);
    assert.ok(
      kept.every(({ state }) => state !== "given_up"),
      "an anchor that was given up",
    );
    return { notes, confirmed: confirmed.length };
  } finally {
    database.close();
  }
}
