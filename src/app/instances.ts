import type { Config, Secrets } from "../config.ts";
import { sha256 } from "../core/canonical.ts";
import type { ReadReplicaState } from "../core/database.ts";
import type { Refusal } from "../core/errors.ts";
import { MODES } from "../core/roles.ts";
import { logInfo, logWarning } from "../platform/log.ts";
import type { Context } from "../services/context.ts";
import type { SharedSettings } from "../store/instances.ts";
import type { Standing } from "../store/postgres/membership.ts";
import { refuseOtherSigner } from "./keys.ts";

/** The instances that serve one ledger (docs/operating, "Several instances"). */

/** Logs whether this instance reaches the database. */
export function logStanding(standing: Standing): void {
  if (standing === "renewed") logInfo("this instance has reached the database again, and goes on");
  else if (standing === "not_renewed")
    logWarning("this instance does not reach the database: its jobs have stopped");
  else logWarning("this instance has lost the database: it refuses what writes, and others may do its jobs");
}

const REPLICA_WORDS: Readonly<Record<ReadReplicaState, string>> = {
  in_use: "reads go to this replica",
  late: "reads do not go to this replica: it lacks too much of what was committed, or is no copy of this database",
  away: "reads do not go to this replica: it does not answer",
};

/** Logs whether reads go to a replica. */
export function logReplica(replica: string, state: ReadReplicaState): void {
  if (state === "in_use") logInfo(REPLICA_WORDS[state], { replica });
  else logWarning(REPLICA_WORDS[state], { replica });
}

/**
 * Joins the instances that serve the ledger. Refused where a setting differs from theirs, or where the log does not know the signing key;
 * not for the ledger of a folder, whose files keep the keys, and where a new key is made when one is lost.
 */
export const joinInstances = async (
  config: Config,
  secrets: Secrets,
  ctx: Context,
): Promise<Refusal | null> =>
  ctx.instances.alone
    ? null
    : ((await ctx.instances.join(await sharedSettings(config, secrets, ctx))) ??
      (await refuseOtherSigner(ctx)));

/** The settings that all instances of a ledger must have in common, by their names. Keys stand as hashes. */
export async function sharedSettings(
  config: Config,
  secrets: Secrets,
  { baseUrl, tokens, webPush, witness, x402 }: Context,
): Promise<SharedSettings> {
  const { key: witnessKey } = await witness.signer();
  const keys = {
    HOLDFAST_MASTER_KEY: secrets.masterKey,
    HOLDFAST_X402_SANDBOX_KEY: secrets.x402SandboxKey,
    HOLDFAST_X402_LIVE_KEY: secrets.x402LiveKey,
    HOLDFAST_ANCHOR_KEY: secrets.anchorKey,
    HOLDFAST_TREASURY_SANDBOX_KEY: secrets.treasurySandboxKey,
    HOLDFAST_TREASURY_LIVE_KEY: secrets.treasuryLiveKey,
  };
  const treasuries = MODES.map((mode) => [
    `HOLDFAST_TREASURY_${mode.toUpperCase()}`,
    textOf(config.treasury.tokens.filter((token) => token.mode === mode)),
  ]);
  return {
    HOLDFAST_BASE_URL: baseUrl,
    HOLDFAST_EVM_RPC: x402.chains.ids.join(),
    HOLDFAST_RATE_READ: `${config.rateLimits.read}`,
    HOLDFAST_RATE_WRITE: `${config.rateLimits.write}`,
    HOLDFAST_RATE_BENCH: `${config.rateLimits.bench}`,
    HOLDFAST_IDEMPOTENCY_DAYS: `${config.idempotencyDays}`,
    HOLDFAST_CAPSULE_DAYS: `${config.capsuleDays}`,
    HOLDFAST_CONTENT_BYTES: `${config.contentBytes}`,
    HOLDFAST_TREASURY_CONFIRMATIONS: `${config.treasury.rules.confirmations}`,
    HOLDFAST_X402_ASSETS: textOf(config.x402Assets),
    HOLDFAST_SIGNING_KEY: sha256(textOf(tokens.jwks)),
    HOLDFAST_PUSH_KEY: sha256(webPush.publicKey),
    HOLDFAST_WITNESS_KEY: sha256(witnessKey.publicKey),
    ...Object.fromEntries(treasuries),
    ...Object.fromEntries(Object.entries(keys).map(([name, key]) => [name, markOf(name, key)])),
  };
}

/** A hash of a private key that says nothing of it, since all of these have 32 random bytes. */
const markOf = (name: string, key: string | Uint8Array | null): string =>
  key === null ? "none" : new Bun.CryptoHasher("sha256", key).update(`holdfast ${name}`).digest("hex");

const textOf = (value: unknown): string =>
  JSON.stringify(value, (_, part) => (typeof part === "bigint" ? `${part}` : part));
