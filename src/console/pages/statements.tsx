/** @jsxImportSource hono/jsx */
import { isRefusal, type Refusal, refuse, refuseField } from "../../core/errors.ts";
import type { PersonCaller } from "../../core/roles.ts";
import { DAY_MS, isoTime, MINUTE_MS, parseTime } from "../../core/time.ts";
import {
  STATEMENT_FORMATS,
  type StatementFormat,
  statementHead,
  statementOf,
  statementText,
} from "../../services/admin/statements.ts";
import type { Context } from "../../services/context.ts";
import { Card, Head } from "../parts/blocks.tsx";
import { Choose, Field } from "../parts/forms.tsx";
import type { Download, Visit } from "../route.ts";
import { MoneyTabs } from "./payees.tsx";

/** Statements: every posting of a period, as a file. */

const STATEMENTS = "/console/money/statements";

const FORMAT_WORDS: Readonly<Record<StatementFormat, string>> = {
  csv: "CSV, for a spreadsheet",
  jsonl: "JSON, one object a line",
};

export const showStatements = async () =>
  ({
    title: "Statements",
    section: "money",
    content: (
      <>
        <Head
          title="Statements"
          about="Every posting of a period: what caused it, by how much each balance changed, and the balances after it."
        />
        <MoneyTabs current={STATEMENTS} />
        <Card>
          <form method="get" action={`${STATEMENTS}/file`} class="form" aria-label="Statement" data-saves>
            <Field name="from" label="From" type="date" hint="The first day, in UTC. Empty: the beginning." />
            <Field name="until" label="Until" type="date" hint="The last day, in UTC. Empty: now." />
            <Choose
              name="format"
              label="Form"
              choices={STATEMENT_FORMATS.map((value) => ({ value, words: FORMAT_WORDS[value] }))}
            />
            <button type="submit" class="primary">
              Save the file
            </button>
          </form>
        </Card>
      </>
    ),
  }) as const;

const isFormat = (text: string): text is StatementFormat => STATEMENT_FORMATS.some((one) => one === text);

/** How many files are written at once: in all, for one organisation and for one person; and how long one may take. */
const FILES_MAX = 8;
const FILES_OF_ORGANISATION_MAX = 4;
const FILES_OF_PERSON_MAX = 2;
const FILE_MS_MAX = 10 * MINUTE_MS;

type Place = { readonly userId: string; readonly organisationId: string; readonly endsAt: number };

/** The files that are being read by somebody: each page of them is asked for when the one before was taken. */
export function createStatementFiles() {
  const open = new Set<Place>();
  return async function openFile({ ctx, caller, search }: Visit): Promise<Download | Refusal> {
    const asked = periodOf(search);
    if (isRefusal(asked)) return asked;
    const { userId, organisationId, mode } = caller;
    // A reader that stands still asks for nothing, and would keep its place.
    for (const place of open) if (isLate(ctx, place)) open.delete(place);
    if (isFull([...open], caller))
      return refuse(
        "rate_limit_exceeded",
        "Other statements are being saved. Retry when one of them is done.",
      );
    const { format, ...period } = asked;
    const place = { userId, organisationId, endsAt: ctx.now() + FILE_MS_MAX };
    open.add(place);
    const close = () => void open.delete(place);
    const pages = await statementOf(ctx, caller, { organisation_id: organisationId, mode, ...period });
    if (isRefusal(pages)) {
      close();
      return pages;
    }
    return {
      name: `holdfast-${mode}-statement.${format}`,
      type: format === "csv" ? "text/csv; charset=utf-8" : "application/x-ndjson; charset=utf-8",
      body: bodyOf(textOf(pages, format), () => isLate(ctx, place), close),
    };
  };
}

const isLate = (ctx: Context, { endsAt }: Place): boolean => ctx.now() > endsAt;

const isFull = (open: readonly Place[], { userId, organisationId }: PersonCaller): boolean =>
  open.length >= FILES_MAX ||
  open.filter((place) => place.organisationId === organisationId).length >= FILES_OF_ORGANISATION_MAX ||
  open.filter((place) => place.userId === userId).length >= FILES_OF_PERSON_MAX;

type Period = { readonly format: StatementFormat; readonly from?: string; readonly to?: string };

/** The days of the form as a period: the day after the last one is not in it. */
function periodOf(search: URLSearchParams): Period | Refusal {
  const format = search.get("format") ?? "";
  if (!isFormat(format)) return refuseField("format", `must be one of ${STATEMENT_FORMATS.join(", ")}`);
  const [from, until] = [search.get("from") || null, search.get("until") || null];
  const [begin, end] = [from && dayAfter(from, 0), until && dayAfter(until, 1)];
  if (begin === undefined) return refuseField("from", "must be a day such as 2026-11-01");
  if (end === undefined) return refuseField("until", "must be a day such as 2026-11-30");
  return { format, ...(begin && { from: begin }), ...(end && { to: end }) };
}

/** Midnight in UTC, so many days after a day; undefined where it is no day. */
function dayAfter(day: string, days: number): string | undefined {
  const at = parseTime(`${day}T00:00:00Z`);
  const midnight = at === null ? null : isoTime(at + days * DAY_MS);
  return midnight !== null && parseTime(midnight) !== null ? midnight : undefined;
}

async function* textOf(
  pages: AsyncGenerator<Parameters<typeof statementText>[0]>,
  format: StatementFormat,
): AsyncGenerator<string> {
  yield statementHead(format);
  for await (const page of pages) yield statementText(page, format);
}

/** @param onEnd is called once: when all was read, when the reader has gone, or when it took too long */
function bodyOf(
  text: AsyncGenerator<string>,
  isLate: () => boolean,
  onEnd: () => void,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return new ReadableStream({
    async pull(controller) {
      try {
        if (isLate()) throw new Error("a statement was not taken in time");
        const { done, value } = await text.next();
        if (!done) return controller.enqueue(encoder.encode(value));
        onEnd();
        controller.close();
      } catch (error) {
        onEnd();
        controller.error(error);
      }
    },
    async cancel() {
      onEnd();
      await text.return(undefined);
    },
  });
}
