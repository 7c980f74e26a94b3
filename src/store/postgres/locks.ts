import { MODES, type Mode } from "../../core/roles.ts";
import type { AnyCommand } from "../batch.ts";
import type { Write } from "../change.ts";
import type { NeedName, Needs, NeedTable } from "../needs.ts";
import type { Scope } from "../scope.ts";
import type { Answer, Statement } from "./client.ts";
import { type AgentOf, ownerOf } from "./owners.ts";
import { arrayOf } from "./values.ts";

/**
 * Which rows a batch locks before it reads anything, so that what its commands read stands still until it commits: of each organisation
 * its row, and of each mode of one that is named its row of `scopes`. What belongs to no organisation has rows of `locks`, by names.
 */
export type Locks = {
  readonly names: ReadonlySet<string>;
  readonly organisations: ReadonlySet<string>;
  /** Whether rows that belong to a whole organisation are written: nobody else may then read them. */
  readonly isWhole: boolean;
  /** Modes of organisations, as `scopeKey` writes them. */
  readonly scopes: ReadonlySet<string>;
};

/** What belongs to the instance, and to no organisation. */
const INSTANCE = "instance";

/**
 * What stands still while a command reads it: "own", since the organisation and the mode are locked; "unique", where an index refuses a
 * second row, and the batch begins again; or a row of `locks`.
 */
type Holds<Name extends NeedName> =
  | "own"
  | "unique"
  | "instance"
  | ((ask: Exclude<NeedTable[Name]["ask"], null>) => string);

const NEEDS: { readonly [Name in NeedName]: Holds<Name> } = {
  callerKey: "own",
  callerAgent: "own",
  callerUser: "own",
  callerSession: "own",
  callerChat: "own",
  idempotencyKey: "own",
  replayedWarrant: "own",
  replayedStep: "own",
  heldKey: "own",
  warrant: "own",
  warrantAgent: "own",
  warrantOpener: "own",
  warrantSession: "own",
  warrantPolicy: "own",
  warrantPurchase: "own",
  warrantEscalation: "own",
  escalationOrWarrant: "own",
  webhooks: "own",
  purchase: "own",
  agent: "own",
  agentSession: "own",
  sessionWindows: "own",
  agentPolicy: "own",
  callerAgentPolicy: "own",
  organisationPolicy: "own",
  policy: "own",
  newestOfPolicy: "own",
  verifier: "own",
  verifierSchema: "own",
  schemas: "own",
  balance: "own",
  hasPasskey: "own",
  contentBytes: "own",
  oldestFree: "own",
  // Purchases of all organisations are paid from one wallet.
  openAuthorizations: ({ chainId, contract, payer }) => `authorizations ${chainId} ${contract} ${payer}`,
  sourceKeys: "own",
  oldestCapsules: "own",
  capsule: "own",
  newestCapsule: "own",
  hasOrganisation: "instance",
  user: "own",
  userByEmail: "unique",
  hasOtherOwner: "own",
  hasSecondPerson: "own",
  passkey: "unique",
  passkeys: "own",
  passkeyApproval: "own",
  userSessions: "own",
  passwordReset: "own",
  unusedPasswordResets: "own",
  apiKey: "own",
  spendSession: "own",
  policyNamed: "own",
  depositReferenced: "own",
  deposit: "own",
  correction: "own",
  depositCorrection: "own",
  payeeBalances: "own",
  payout: "own",
  newestPayout: "own",
  payoutTransaction: "own",
  payoutChainTransaction: "instance",
  payoutWaits: "own",
  sentInDay: "own",
  railStates: "instance",
  webhook: "own",
  delivery: "own",
  notice: "own",
  escalationPlan: "own",
  plannedNotices: "own",
  noticeSettings: "own",
  pushSubscriptions: "own",
  pushSubscriptionAt: "unique",
  readers: "own",
  newestNotice: "own",
  messagingAccount: "own",
  messagingAccountOfChat: "unique",
  messagingCode: "own",
  witnessedLog: "instance",
  cosignature: "instance",
  chainTransaction: "instance",
  newestTransaction: "instance",
  treasuryWatch: "instance",
  chainTransfer: "instance",
  chainTransfers: "instance",
  depositSender: "instance",
};

export const scopeKey = ({ organisationId, mode }: Scope): string => `${organisationId} ${mode}`;

export const NO_LOCKS: Locks = {
  names: new Set(),
  organisations: new Set(),
  isWhole: false,
  scopes: new Set(),
};

export const together = (one: Locks, other: Locks): Locks => ({
  names: one.names.union(other.names),
  organisations: one.organisations.union(other.organisations),
  isWhole: one.isWhole || other.isWhole,
  scopes: one.scopes.union(other.scopes),
});

/** What commands name. */
export function locksOf(commands: readonly AnyCommand[]): Locks {
  const [names, organisations, scopes] = [new Set<string>(), new Set<string>(), new Set<string>()];
  for (const { scope, needs } of commands) {
    if (scope === null) names.add(INSTANCE);
    else {
      organisations.add(scope.organisationId);
      scopes.add(scopeKey(scope));
    }
    for (const name in needs) {
      const lock = nameOf(name as NeedName, needs);
      if (lock !== null) names.add(lock);
    }
  }
  return { names, organisations, isWhole: false, scopes };
}

function nameOf<Name extends NeedName>(name: Name, needs: Needs): string | null {
  const holds: Holds<Name> = NEEDS[name];
  if (holds === "own" || holds === "unique") return null;
  const ask: unknown = needs[name];
  // Nothing of it is asked for.
  if (Array.isArray(ask) && ask.length === 0) return null;
  if (holds === "instance") return INSTANCE;
  return ask == null ? null : holds(ask as never);
}

/**
 * What must be locked besides, for these writes; null where nothing is missing. What is locked gets a new revision, where what other
 * batches keep of it is changed.
 *
 * @throws where something is changed that other batches keep, and nothing says whose it is
 */
export function missingLocks(held: Locks, writes: readonly Write[], agentOf: AgentOf): Locks | null {
  const [names, organisations, scopes] = [new Set<string>(), new Set<string>(), new Set<string>()];
  let isWhole = false;
  for (const write of writes) {
    const owner = ownerOf(write, agentOf);
    if (owner.kind === "instance") names.add(INSTANCE);
    if (owner.kind === "organisation") isWhole = true;
    if ("organisationId" in owner) organisations.add(owner.organisationId);
    if (owner.kind === "scope") scopes.add(scopeKey(owner));
  }
  const locks = { names, organisations, isWhole, scopes };
  return isWithin(locks, held) ? null : locks;
}

/** Whether all of these are held. */
export const isWithin = ({ names, organisations, isWhole, scopes }: Locks, held: Locks): boolean =>
  names.isSubsetOf(held.names) &&
  organisations.isSubsetOf(held.organisations) &&
  scopes.isSubsetOf(held.scopes) &&
  (held.isWhole || !isWhole);

/**
 * The statements that take locks, in an order that is the same for all batches, so that no two of them wait for each other. The last one
 * answers how the organisations stand (`standingOf`).
 *
 * Scopes come before organisations. Many batches may share the lock of an organisation, and who wants it alone would wait for as long as
 * any of them has it: where instances take turns, for ever. Of a scope only one batch has the lock, and the others queue for it. So a
 * batch that writes rows of a whole organisation queues for both of its scopes, and then nobody shares its lock.
 */
export function lockStatements(locks: Locks): readonly Statement[] {
  const { names, organisations } = locks;
  const named = arrayOf("text", sorted(names));
  const owners = arrayOf("text", sorted(organisations));
  return [
    ...(names.size === 0
      ? []
      : [
          {
            text: "INSERT INTO locks (name) SELECT * FROM unnest($1::text[]) ON CONFLICT DO NOTHING",
            params: [named],
          },
          {
            text: "SELECT 1 FROM locks WHERE name = ANY($1::text[]) ORDER BY name FOR UPDATE",
            params: [named],
          },
        ]),
    ...(organisations.size === 0
      ? []
      : [
          {
            text: `SELECT 1 FROM scopes WHERE (organisation_id, mode) IN (SELECT * FROM unnest($1::text[], $2::text[]))
              ORDER BY position FOR NO KEY UPDATE`,
            params: columnsOf(lockedScopes(locks)),
          },
          {
            text: `SELECT 1 FROM organisations WHERE id = ANY($1::text[]) ORDER BY id FOR ${locks.isWhole ? "NO KEY UPDATE" : "SHARE"}`,
            params: [owners],
          },
        ]),
    {
      text: "SELECT organisation_id, mode, recorded_at, revision FROM scopes WHERE organisation_id = ANY($1::text[])",
      params: [owners],
    },
  ];
}

const sorted = (list: ReadonlySet<string>): readonly string[] => [...list].sort();

/** The scopes that are locked: where rows of whole organisations are written, all that these have. */
const lockedScopes = ({ organisations, isWhole, scopes }: Locks): ReadonlySet<string> =>
  isWhole
    ? scopes.union(new Set([...organisations].flatMap((id) => MODES.map((mode) => `${id} ${mode}`))))
    : scopes;

/** Scopes as two parameters: the list of their organisations, and that of their modes. */
const columnsOf = (scopes: ReadonlySet<string>): readonly unknown[] =>
  [0, 1].map((part) =>
    arrayOf(
      "text",
      sorted(scopes).map((key) => key.split(" ")[part]),
    ),
  );

/** How the organisations stand that a batch has locked. */
export type Standing = {
  /** The newest time that they have recorded; 0 where they have none. */
  readonly recordedAt: number;
  /** How often the rows of each scope have changed that are kept between batches (`kept-rows.ts`). */
  readonly revisions: ReadonlyMap<string, bigint>;
};

type StandingRow = Record<"organisation_id", string> &
  Record<"mode", Mode> &
  Record<"recorded_at" | "revision", bigint>;

/** @param answer to the last of `lockStatements` */
export function standingOf(answer: Answer | undefined): Standing {
  const rows = (answer ?? []) as readonly StandingRow[];
  return {
    recordedAt: Math.max(0, ...rows.map(({ recorded_at: at }) => Number(at))),
    revisions: new Map(
      rows.map(({ organisation_id: organisationId, mode, revision }) => [
        scopeKey({ organisationId, mode }),
        revision,
      ]),
    ),
  };
}

/**
 * Notes the time of a batch's records in its scopes; that of records of whole organisations, in all scopes of these.
 *
 * @param changesKept whether it has changed rows that are kept between batches: then these have a new revision
 */
export function recordedStatement(locks: Locks, at: number, changesKept: boolean): Statement {
  return {
    text: `UPDATE scopes SET recorded_at = greatest(recorded_at, $3::int8), revision = revision + $4::int8
      WHERE (organisation_id, mode) IN (SELECT * FROM unnest($1::text[], $2::text[]))
        AND (recorded_at < $3::int8 OR $4::int8 > 0)`,
    params: [...columnsOf(lockedScopes(locks)), BigInt(at), changesKept ? 1n : 0n],
  };
}
