import { sha256Bytes } from "../../core/canonical.ts";
import { isRefusal, type Refusal, refuse } from "../../core/errors.ts";
import { logNameOf } from "../../core/log.ts";
import type { Mode } from "../../core/roles.ts";
import { noteKey, parseSignedNote } from "../../core/signed-note.ts";
import { pathWire, type SolvencyEntry, type SolvencyProof } from "../../core/solvency/proof.ts";
import type { Reader } from "../../store/reader.ts";
import { type Authority, readableScope } from "../admin/authority.ts";
import type { Context } from "../context.ts";
import { refuseAsset, refuseInteger } from "../fields.ts";
import { fromCopy } from "../from-copy.ts";
import { oneAtATime } from "./one-at-a-time.ts";
import { type FoundStatement, findStatement, statementNotFound } from "./read.ts";
import { rebuild } from "./rebuild.ts";

export type ProofInput = {
  readonly organisation_id: string;
  readonly mode: Mode;
  /** Without it, every asset of which something is owed. */
  readonly asset?: string;
  /** A payee of the organisation; without it, the organisation itself. */
  readonly payee?: string;
  /** The number of the statement; without it, the newest one. */
  readonly statement?: number;
};

/**
 * The proof that what is owed to an organisation, or to a payee of it, is in a statement. The trees of the assets are computed anew,
 * which takes five seconds of a processor for a million payees; one proof at a time, and organisations in turn.
 */
export function proveSolvency(
  ctx: Context,
  authority: Authority,
  input: ProofInput,
): Promise<SolvencyProof | Refusal> {
  return oneAtATime(input.organisation_id, ctx.now, () =>
    fromCopy(ctx).store.read(async (reader) => {
      const scope =
        (input.asset === undefined ? null : refuseAsset("asset", input.asset)) ??
        (input.statement === undefined
          ? null
          : refuseInteger("statement", input.statement, 1, Number.MAX_SAFE_INTEGER)) ??
        (await readableScope(reader, authority, "viewer", input));
      if (isRefusal(scope)) return scope;
      const number = input.statement ?? null;
      const found = await findStatement(reader, number);
      if (!found) return statementNotFound(number);
      const anchor = await anchorOf(reader, found);
      if (!anchor)
        return refuse(
          "statement_not_found",
          "No checkpoint of the log has the statement yet; ask again in a minute.",
        );
      const entries = await entriesOf(reader, found, input);
      if (entries.length > 0)
        return {
          ...{ object: "solvency_proof" as const, statement: found.kept.note, kid: kidOf(ctx, found) },
          ...{ anchor, entries },
        };
      const whom = input.payee === undefined ? "the organisation" : "this payee";
      return refuse(
        "statement_not_found",
        `The statement ${found.kept.number} says that nothing${input.asset === undefined ? "" : ` of ${input.asset}`} is owed to ${whom} in ${input.mode}.`,
      );
    }),
  );
}

async function entriesOf(
  reader: Reader,
  { kept, statement }: FoundStatement,
  { organisation_id: organisationId, mode, asset, payee }: ProofInput,
): Promise<readonly SolvencyEntry[]> {
  const stated = statement.assets.filter(
    (one) => one.mode === mode && (asset === undefined || one.asset === asset),
  );
  const rebuilt = await rebuild(reader, {
    ...{ posting: statement.posting, seed: Uint8Array.fromHex(kept.seed) },
    choose: () => stated,
    of: { organisationId, payee: payee ?? null },
  });
  return rebuilt.flatMap(({ built: { root, path }, leaf, ...of }) => {
    if (leaf === null || path === null) return [];
    if (stated.find((one) => one.asset === of.asset)?.root !== root.hash.toHex())
      throw new Error(`the statement ${kept.number} is not of the ledger's ${of.asset}; run holdfast audit`);
    return [{ leaf, path: pathWire(path) }];
  });
}

/** Where the log has the statement, at the first checkpoint that covers it; null while there is none. */
async function anchorOf(
  { log }: Reader,
  { place: { leafIndex, checkpoint } }: FoundStatement,
): Promise<SolvencyProof["anchor"] | null> {
  const found = leafIndex === null || checkpoint === null ? null : await log.checkpointOf(leafIndex + 1);
  if (leafIndex === null || found === null) return null;
  const proof = await log.inclusionProof(leafIndex, found.size);
  return {
    ...{ leaf_index: leafIndex, tree_size: found.size, root: found.root.toHex() },
    ...{ proof: proof.map((hash) => hash.toHex()), checkpoint: found.note },
  };
}

/** The key that signed a statement. */
function kidOf({ tokens }: Context, { kept, statement }: FoundStatement): string {
  const line = parseSignedNote(kept.note)?.lines[0];
  const signer = tokens.jwks.keys.find(({ x }) => {
    const publicKey = Uint8Array.fromBase64(x, { alphabet: "base64url" });
    return noteKey(logNameOf(statement.instanceId), "ed25519", publicKey, sha256Bytes).id === line?.id;
  });
  if (!signer)
    throw new Error(`no key of this instance signed the statement ${kept.number}; run holdfast audit`);
  return signer.kid;
}
