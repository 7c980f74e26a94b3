import { checkProof } from "../../core/solvency/proof.ts";
import { statedAssetWire } from "../../core/solvency/statement.ts";
import { isoTime } from "../../core/time.ts";

/** Checks a proof of solvency without a ledger or a network (docs/solvency, "The proof"). */
export async function verifySolvencyFile(text: string, jwks: unknown) {
  const { problems, kid, statement, statementHash, leaves, log } = await checkProof(text, jwks);
  return {
    object: "solvency_verification" as const,
    ok: problems.length === 0,
    problems,
    kid,
    statement: statement && {
      instance_id: statement.instanceId,
      number: statement.number,
      created_at: isoTime(statement.createdAt),
      hash: statementHash,
    },
    /** What the statement says of the assets of these entries. */
    assets: (statement?.assets ?? [])
      .filter(({ mode, asset }) => leaves.some((leaf) => leaf.mode === mode && leaf.asset === asset))
      .map(statedAssetWire),
    entries: leaves.map(({ salt: _, ...leaf }) => leaf),
    log,
  };
}
