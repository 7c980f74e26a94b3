import type { ApiKey } from "../../core/api-key.ts";
import type { Scope } from "../../store/scope.ts";
import type { Decision, Store } from "../../store/store.ts";

/** When a key last called. */
export type KeyUse = { readonly scope: Scope; readonly keyId: string; readonly at: number };

/**
 * The last use of each key, in process memory until a job writes it, so that no request waits for the disk.
 */
export type KeyUses = {
  record(key: ApiKey, now: number): void;
  /** Takes out the uses that are to be written. */
  take(): readonly KeyUse[];
  /** Puts back uses that could not be written, except where the key was used again meanwhile. */
  putBack(uses: readonly KeyUse[]): void;
};

export function createKeyUses(): KeyUses {
  let uses = new Map<string, KeyUse>();
  return {
    record(key, now) {
      uses.set(key.id, { scope: key, keyId: key.id, at: now });
    },
    take() {
      const taken = [...uses.values()];
      uses = new Map();
      return taken;
    },
    putBack(taken) {
      for (const use of taken) if (!uses.has(use.keyId)) uses.set(use.keyId, use);
    },
  };
}

/** Writes one use. A use that is older than the recorded one changes nothing. */
export async function writeKeyUse(
  { store }: { readonly store: Store },
  { scope, keyId, at }: KeyUse,
): Promise<void> {
  await store.execute({
    scope,
    needs: { apiKey: keyId },
    decide({ apiKey }): Decision<null> {
      if (!apiKey || at <= (apiKey.lastUsedAt ?? 0)) return { answer: null };
      const row = { ...apiKey, lastUsedAt: at };
      return { answer: null, change: { put: [{ kind: "apiKey", before: apiKey, row }] } };
    },
  });
}
