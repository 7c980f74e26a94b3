import { sha256Bytes } from "../core/canonical.ts";
import { verifyFile } from "../core/receipt/verify.ts";
import { type NoteKey, parseVerifierKey } from "../core/signed-note.ts";

/** The key of a witness; null for any other text. */
export function parseWitness(text: string): NoteKey | null {
  const key = parseVerifierKey(text, sha256Bytes);
  return key?.type === "cosignature" ? key : null;
}

/** Checks a receipt, or its saved page, without a ledger or a network (docs/security, "What is checked"). */
export async function verifyReceiptFile({
  text,
  ...against
}: {
  readonly text: string;
  /** As parsed JSON; null where none was given. */
  readonly jwks: unknown;
  readonly witnesses: readonly NoteKey[];
}) {
  const verdict = await verifyFile(text, against, sha256Bytes);
  const { problems, keys, kid, receipt, origin, cosigned, unknownCosigners, onChain } = verdict;
  const facts = receipt && { mode: receipt.mode, ...receipt.warrant };
  return {
    object: "receipt_verification" as const,
    ok: problems.length === 0,
    problems,
    keys,
    kid,
    warrant: facts && {
      id: facts.id,
      mode: facts.mode,
      state: facts.state,
      amount: facts.amount,
      asset: facts.asset,
      released_bps: facts.released_bps,
      payee: facts.payee,
      settled_at: facts.settled_at,
    },
    log: origin,
    cosigned,
    unknown_cosigners: unknownCosigners,
    /** What to look for on the chain that the receipt names, which was not asked. */
    on_chain: onChain,
  };
}
