import { type Refusal, refuse } from "../../core/errors.ts";
import type { LogPlace } from "../../core/log.ts";
import { parseSignedNote } from "../../core/signed-note.ts";
import { type KeptStatement, parseStatement, type Statement } from "../../core/solvency/statement.ts";
import { listResource } from "../../resources/list.ts";
import { statementResource } from "../../resources/solvency.ts";
import type { Reader } from "../../store/reader.ts";
import { type Authority, refuseAuthority } from "../admin/authority.ts";
import type { Context } from "../context.ts";
import { refuseInteger } from "../fields.ts";

/** A statement as it is kept, as it reads, and where it is in the log. */
export type FoundStatement = {
  readonly kept: KeptStatement;
  readonly statement: Statement;
  readonly place: LogPlace;
};

/** A statement by its number, or the newest one; null where there is none. */
export async function findStatement(
  { solvency }: Reader,
  number: number | null,
): Promise<FoundStatement | null> {
  const kept = await solvency.statement(number);
  return kept && { kept, statement: readKept(kept), place: await solvency.placeOf(kept.number) };
}

export function readKept({ number, note }: KeptStatement): Statement {
  const text = parseSignedNote(note)?.text;
  const statement = text === undefined ? null : parseStatement(text);
  if (!statement) throw new Error(`the statement ${number} cannot be read; run holdfast audit`);
  return statement;
}

export const statementNotFound = (number: number | null): Refusal =>
  refuse(
    "statement_not_found",
    number === null
      ? "No statement of solvency was signed so far."
      : `There is no statement of solvency ${number}.`,
  );

/** The signed note of a statement, as it is published; null where there is none. */
export const readStatementNote = ({ store }: Context, number: number | null): Promise<string | null> =>
  store.read(
    async ({ solvency }) => (await solvency.statement(number))?.note ?? null,
    // It never changes, and the newest is another one soon.
    number === null ? undefined : { suffices: (note) => note !== null },
  );

/** A statement by its number, or the newest one. */
export async function showStatement(ctx: Context, authority: Authority, number: number | null) {
  const refused = refuseAuthority(authority, "viewer");
  if (refused) return refused;
  const found = await ctx.store.read((reader) => findStatement(reader, number));
  return found ? statementResource(found) : statementNotFound(number);
}

const LISTED_MAX = 100;

/** The newest statements, newest first. */
export async function listStatements(
  ctx: Context,
  authority: Authority,
  { limit = 10 }: { readonly limit?: number },
) {
  const refused = refuseAuthority(authority, "admin") ?? refuseInteger("limit", limit, 1, LISTED_MAX);
  if (refused) return refused;
  return ctx.store.read(async (reader) => {
    const kept = await reader.solvency.statements(Number.MAX_SAFE_INTEGER, limit + 1);
    const places: LogPlace[] = [];
    for (const { number } of kept.slice(0, limit)) places.push(await reader.solvency.placeOf(number));
    const found = kept
      .slice(0, limit)
      .map((one, at) => ({ kept: one, statement: readKept(one), place: places[at] as LogPlace }));
    return { ...listResource(found.map(statementResource)), has_more: kept.length > limit };
  });
}
