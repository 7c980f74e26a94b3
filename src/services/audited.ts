import type { Administrator, AuditAction } from "../core/audit-entry.ts";
import type { Refusal } from "../core/errors.ts";
import type { Deletion, Put } from "../store/change.ts";
import type { Always, Complete, Found, Needs, Snapshot } from "../store/needs.ts";
import type { Scope } from "../store/scope.ts";
import type { Decision } from "../store/store.ts";
import type { Context } from "./context.ts";

/** What a command did, for the audit log: read-back shapes, so that no secret is in it. */
export type Entry = {
  readonly action: AuditAction;
  /** The id of what was acted on. */
  readonly subject: string;
  /** Null where it was not there before, or is not there after. */
  readonly before: object | null;
  readonly after: object | null;
};

/** An answer that changes nothing, or a change with the entries that the audit log has of it. */
export type Audited<Answer> =
  | { readonly answer: Answer | Refusal; readonly put?: never }
  | {
      readonly answer: Answer;
      readonly put: readonly Put[];
      readonly deleted?: readonly Deletion[];
      readonly entries: readonly [Entry] | readonly [Entry, Entry];
    };

/** Who acts, and the ids of the entries that are written of it: drawn before the command, since deciding is pure. */
function recorder(ctx: Context, actor: Administrator) {
  const ids = [ctx.newId("auditEntry"), ctx.newId("auditEntry")];
  return function withEntries<Answer>(
    organisationId: string,
    recordedAt: number,
    audited: Audited<Answer>,
  ): Decision<Answer> {
    if (!audited.put) return { answer: audited.answer };
    const { answer, put, deleted = [], entries } = audited;
    const written = entries.map((entry, index): Put => {
      const id = ids[index];
      if (id === undefined) throw new Error("a command has two entries in the audit log at most");
      return { kind: "auditEntry", row: { ...entry, id, organisationId, actor, recordedAt } };
    });
    return { answer, change: { put: [...put, ...written], deleted } };
  };
}

/** Commits an act of a person or of the machine's operator, and writes it to the audit log in the same commit. */
export function executeAudited<N extends Needs, Answer>(
  ctx: Context,
  actor: Administrator,
  {
    scope,
    needs,
    decide,
  }: {
    readonly scope: Scope;
    readonly needs: N & Complete<N>;
    readonly decide: (snapshot: Snapshot<N>, now: number) => Audited<Answer>;
  },
): Promise<Answer | Refusal> {
  const withEntries = recorder(ctx, actor);
  return ctx.store.execute<N, Answer>({
    scope,
    needs,
    decide: (snapshot, now) => withEntries(scope.organisationId, snapshot.recordedAt, decide(snapshot, now)),
  });
}

/** The same for an organisation that the command makes. */
export function executeAuditedOfNew<N extends Needs, Answer>(
  ctx: Context,
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
