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
 * Adds audit entries to a change. Their ids are drawn here, before the command decides, since deciding must
 * be pure.
 */
function recorder(ctx: Recording, actor: Administrator, entriesMax = ENTRIES_MAX) {
  const ids = Array.from({ length: entriesMax }, () => ctx.newId("auditEntry"));
  return function withEntries<Answer>(
    organisationId: string,
    recordedAt: number,
    audited: Audited<Answer>,
  ): Decision<Answer> {
    if (!audited.put) return { answer: audited.answer };
    const { answer, put, deleted = [], entries } = audited;
    const written = entries.map((entry, index): Put => {
      const id = ids[index];
      if (id === undefined) throw new Error(`the command has more than ${entriesMax} audit entries`);
      return { kind: "auditEntry", row: { ...entry, id, organisationId, actor, recordedAt } };
    });
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
  const withEntries = recorder(ctx, actor, entriesMax);
  return ctx.store.execute<N, Answer>({
    scope,
    needs,
    decide: (snapshot, now) => withEntries(scope.organisationId, snapshot.recordedAt, decide(snapshot, now)),
  });
}

/** The same for a command that creates the organisation. */
export function executeAuditedOfNew<N extends Needs, Answer>(
  ctx: Recording,
  actor: Administrator,
  organisationId: string,
  {
    needs,
    decide,
  }: {
    readonly needs: N & Complete<N>;
    readonly decide: (snapshot: Found<N> & Always, now: number) => Audited<Answer>;
  },
): Promise<Answer | Refusal> {
  const withEntries = recorder(ctx, actor);
  return ctx.store.execute<N, Answer>({
    scope: null,
    needs,
    decide: (snapshot, now) => withEntries(organisationId, snapshot.recordedAt, decide(snapshot, now)),
  });
}
