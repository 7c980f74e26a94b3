import { sha256Bytes } from "../core/canonical.ts";
import { formatVerifierKey, type NoteKey, parseVerifierKey } from "../core/signed-note.ts";
import { verifyEd25519 } from "../platform/note-keys.ts";
import type { Context } from "../services/context.ts";
import { auditSignatures, type Signers, signersOf } from "../services/log/audit.ts";
import { auditQuickly } from "../store/sqlite/audit-threads.ts";
import { ledgerFile } from "../store/sqlite/ledger-file.ts";
import { connect } from "../store/sqlite/open.ts";
import { createReadSnapshots } from "../store/sqlite/read-snapshots.ts";

/**
 * The longest file that the server checks itself, which takes about two seconds. `holdfast audit` checks
 * longer ones, and every backup checks its copy.
 */
const FILE_BYTES_MAX = 256 * 1_024 * 1_024;

/** The server's own audit, each hour, in a child. It gets public keys alone. */
export async function auditBesideServer(dataFolder: string, keys: string): Promise<readonly string[]> {
  const problems = await auditQuickly(dataFolder, { fileBytesMax: FILE_BYTES_MAX });
  const snapshots = createReadSnapshots(() => connect(ledgerFile(dataFolder), { readonly: true }));
  try {
    return [...problems, ...(await auditSignatures(snapshots, signersIn(keys), () => {}))];
  } finally {
    snapshots.close();
  }
}

type PublicKeys = {
  readonly own: ReturnType<Signers["own"]>;
  readonly witnesses: readonly string[];
  readonly logs: readonly { readonly origin: string; readonly keys: readonly string[] }[];
};

/** The public keys by which the child verifies signatures, as the text that it is started with. */
export function publicKeysOf(ctx: Context): string {
  const { own, witnesses, logs } = signersOf(ctx);
  return JSON.stringify({
    own: { jwks: own().jwks },
    witnesses: witnesses.map(formatVerifierKey),
    logs: logs.map(({ origin, keys }) => ({ origin, keys: keys.map(formatVerifierKey) })),
  } satisfies PublicKeys);
}

function signersIn(text: string): Signers {
  const { own, witnesses, logs } = JSON.parse(text) as PublicKeys;
  return {
    own: () => own,
    witnesses: witnesses.map(keyOf),
    logs: logs.map(({ origin, keys }) => ({ origin, keys: keys.map(keyOf) })),
    verify: verifyEd25519,
  };
}

function keyOf(text: string): NoteKey {
  const key = parseVerifierKey(text, sha256Bytes);
  if (!key) throw new Error(`${text} is no key of signed notes`);
  return key;
}
