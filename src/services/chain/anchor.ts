import { sha256Bytes } from "../../core/canonical.ts";
import { anchorAddressOf, anchorDataOf } from "../../core/chain-anchor.ts";
import { logNameOf } from "../../core/log.ts";
import type { Context } from "../context.ts";
import { beginTransaction, type Sending } from "./wallet.ts";

/**
 * Begins to bring the newest checkpoint of the log to a chain (docs/witnesses, "Anchors on a chain").
 *
 * @returns null where the chain has it already
 */
export async function beginAnchor(ctx: Context, sending: Sending) {
  const { chainId, address: wallet } = sending.wallet;
  const { id, newest, anchored } = await ctx.store.read(async ({ instance, log, logAnchors }) => ({
    id: (await instance.get()).id,
    newest: await log.newestCheckpoint(),
    anchored: await logAnchors.sizeOn(chainId),
  }));
  if (newest === null || newest.size <= anchored) return null;
  const { number: checkpoint, size, root, note } = newest;
  const call = { to: anchorAddressOf(logNameOf(id), sha256Bytes), data: anchorDataOf(note) };
  return beginTransaction(ctx, sending, call, (nonce) => ({
    kind: "logAnchor",
    row: { chainId, wallet, nonce, checkpoint, size, root: root.toHex() },
  }));
}
