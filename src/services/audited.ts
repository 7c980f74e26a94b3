import type { Administrator, AuditAction } from "../core/audit-entry.ts";
import type { Refusal } from "../core/errors.ts";
import type { Deletion, Put } from "../store/change.ts";
import type { Always, Complete, Found, Needs, Snapshot } from "../store/needs.ts";
import type { Scope } from "../store/scope.ts";
import type { Decision } from "../store/store.ts";
import type { Context } from "./context.ts";

/** What a command changed, for the audit log: resources as the API shows them, so no secret is in them. */
export type Entry = {
  readonly action: AuditAction;
  /** The id of what was changed. */
  readonly subject: string;
  /** Null where the subject did not exist before, or does not exist afterwards. */
  readonly before: object | null;
  readonly after: object | null;
};

/** The entries of one command. */
export type Entries = readonly [Entry, ...Entry[]];

/** How many entries a command has at most, unless it says otherwise. */
const ENTRIES_MAX = 3;

/** An answer without a change, or a change together with its audit entries. */
export type Audited<Answer> =
  | { readonly answer: Answer | Refusal; readonly put?: never }
  | {
      readonly answer: Answer;
      readonly put: readonly Put[];
      readonly deleted?: readonly Deletion[];
      readonly entries: Entries;
    };

/** What a command with audit entries is recorded with. */
export type Recording = Pick<Context, "store" | "newId">;

/**
 * Adds audit entries to a change, in the audit log of each organisation. Their ids are drawn here, before the command decides, since
 * deciding must be pure.
 */
function recorder(
  ctx: Recording,
  actor: Administrator,
  organisationIds: readonly string[],
  entriesMax = ENTRIES_MAX,
) {
  const logs = organisationIds.map((organisationId) => ({
    organisationId,
    ids: Array.from({ length: entriesMax }, () => ctx.newId("auditEntry")),
  }));
  return function withEntries<Answer>(recordedAt: number, audited: Audited<Answer>): Decision<Answer> {
    if (!audited.put) return { answer: audited.answer };
    const { answer, put, deleted = [], entries } = audited;
    const written = logs.flatMap(({ organisationId, ids }) =>
      entries.map((entry, index): Put => {
        const id = ids[index];
        if (id === undefined) throw new Error(`the command has more than ${entriesMax} audit entries`);
        return { kind: "auditEntry", row: { ...entry, id, organisationId, actor, recordedAt } };
      }),
    );
    return { answer, change: { put: [...put, ...written], deleted } };
  };
}

/** Commits a command of a person or of the machine's operator, with its audit entries in the same commit. */
export function executeAudited<N extends Needs, Answer>(
  ctx: Recording,
  actor: Administrator,
  {
    scope,
    entriesMax,
    needs,
    decide,
  }: {
    readonly scope: Scope;
    readonly entriesMax?: number | undefined;
    readonly needs: N & Complete<N>;
    readonly decide: (snapshot: Snapshot<N>, now: number) => Audited<Answer>;
  },
): Promise<Answer | Refusal> {
  const withEntries = recorder(ctx, actor, [scope.organisationId], entriesMax);
  return ctx.store.execute<N, Answer>({
    scope,
    needs,
    decide: (snapshot, now) => withEntries(snapshot.recordedAt, decide(snapshot, now)),
  });
}

type Unscoped<N extends Needs, Answer> = {
  readonly needs: N & Complete<N>;
  readonly decide: (snapshot: Found<N> & Always, now: number) => Audited<Answer>;
};

/** The same for a command that creates the organisation. */
export const executeAuditedOfNew = <N extends Needs, Answer>(
  ctx: Recording,
  actor: Administrator,
  organisationId: string,
  command: Unscoped<N, Answer>,
): Promise<Answer | Refusal> => executeUnscoped(ctx, recorder(ctx, actor, [organisationId]), command);

/** The same for a command about what all organisations share: the audit log of each has the entries. */
export async function executeAuditedOfAll<N extends Needs, Answer>(
  ctx: Recording,
  actor: Administrator,
  { entriesMax, ...command }: Unscoped<N, Answer> & { readonly entriesMax: number },
): Promise<Answer | Refusal> {
  const all = await ctx.store.read(({ organisations }) => organisations.list());
  const ids = all.map(({ id }) => id);
  return executeUnscoped(ctx, recorder(ctx, actor, ids, entriesMax), command);
}

const executeUnscoped = <N extends Needs, Answer>(
  { store }: Recording,
  withEntries: ReturnType<typeof recorder>,
  { needs, decide }: Unscoped<N, Answer>,
): Promise<Answer | Refusal> =>
  store.execute<N, Answer>({
    scope: null,
    needs,
    decide: (snapshot, now) => withEntries(snapshot.recordedAt, decide(snapshot, now)),
  });
