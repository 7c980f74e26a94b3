/** @jsxImportSource hono/jsx */
import { AUDIT_ACTIONS, AUDIT_WORDS, type AuditEntry, nounOf } from "../../core/audit-entry.ts";
import { isRefusal, type Refusal } from "../../core/errors.ts";
import { isId } from "../../core/ids.ts";
import { type EntriesAsked, listAuditEntries } from "../../services/console/audit-entries.ts";
import { Card, Empty, Head, Pager } from "../parts/blocks.tsx";
import { Amount, Id, Text, Time } from "../parts/figures.tsx";
import { Filters } from "../parts/filters.tsx";
import { Choose, Field } from "../parts/forms.tsx";
import type { Markup } from "../parts/markup.ts";
import type { Page, Visit } from "../route.ts";

/** Who changed what, newest first, in words. Its filters are in the URL. */

const NOUNS = [...new Set(AUDIT_ACTIONS.map(nounOf))];
/** `api_key` → api key. */
const plain = (name: string): string => name.replaceAll("_", " ");

const ID_PATTERN = /^[a-z]{3}_[0-9A-Za-z]{1,40}$/;

/** What the URL asks for. What it says wrongly is as if it said nothing. */
function askedOf(search: URLSearchParams): EntriesAsked {
  const who = search.get("who") ?? "";
  const subject = (search.get("about") ?? "").trim();
  const after = search.get("after") ?? "";
  return {
    noun: NOUNS.find((noun) => noun === search.get("what")) ?? null,
    who: who === "machine" || who === "stranger" || isId("user", who) ? who : null,
    subject: subject.slice(0, 200),
    olderThan: ID_PATTERN.test(after) ? after : null,
  };
}

function pathOf({ noun, who, subject }: EntriesAsked, after: string | null): string {
  const query = new URLSearchParams({
    ...(noun !== null && { what: noun }),
    ...(who !== null && { who }),
    ...(subject !== "" && { about: subject }),
    ...(after !== null && { after }),
  });
  return query.size > 0 ? `/console/audit-log?${query}` : "/console/audit-log";
}

type Listed = Exclude<Awaited<ReturnType<typeof listAuditEntries>>, Refusal>;

export async function showAuditLog(visit: Visit): Promise<Page | Refusal> {
  const asked = askedOf(visit.search);
  const listed = await listAuditEntries(visit.ctx, visit.caller, asked);
  if (isRefusal(listed)) return listed;
  const { entries, continuesAt } = listed;
  return {
    title: "Audit log",
    section: "people",
    content: (
      <>
        <Head
          title="Audit log"
          about={
            <>
              Every change to the organisation and every sign-in, in both modes. Nothing here can be edited.{" "}
              <a href="/docs/people#the-audit-log">What is in it</a>
            </>
          }
          actions={
            <a class="button" href="/console/people">
              People
            </a>
          }
        />
        <Card>
          <EntryFilters asked={asked} names={listed.names} />
          <div id="results" data-live={asked.olderThan === null ? "audit" : undefined}>
            {entries.length === 0 ? (
              <Empty title={continuesAt === null ? "No entry is like that" : "None among those"}>
                <p>
                  {continuesAt === null ? "Leave a filter out." : "The search goes on with older ones."}{" "}
                  <a href="/console/audit-log">Show all</a>
                </p>
              </Empty>
            ) : (
              <ul class="steps entries" aria-label="Entries">
                {entries.map((entry) => (
                  <EntryLine entry={entry} listed={listed} />
                ))}
              </ul>
            )}
            <Pager
              newer={asked.olderThan === null ? null : pathOf(asked, null)}
              older={continuesAt === null ? null : pathOf(asked, continuesAt)}
            />
          </div>
        </Card>
      </>
    ),
  };
}

const ANY = { value: "", words: "Any" };

const EntryFilters = ({ asked, names }: { asked: EntriesAsked; names: ReadonlyMap<string, string> }) => {
  const people = [...names].map(([value, words]) => ({ value, words }));
  const { who } = asked;
  const isListed = who === null || who === "machine" || who === "stranger" || names.has(who);
  return (
    <Filters path="/console/audit-log" typed="about">
      <Field
        name="about"
        label="About"
        type="search"
        value={asked.subject}
        attributes={{ placeholder: "The id of what was changed", maxlength: "200" }}
      />
      <Choose
        name="what"
        label="What"
        value={asked.noun ?? ""}
        choices={[ANY, ...NOUNS.map((noun) => ({ value: noun, words: plain(noun) }))]}
      />
      <Choose
        name="who"
        label="Who"
        value={who ?? ""}
        choices={[
          ANY,
          ...people,
          ...(isListed ? [] : [{ value: who, words: who }]),
          { value: "machine", words: "The machine's operator" },
          { value: "stranger", words: "Strangers" },
        ]}
      />
    </Filters>
  );
};

const Who = ({ actor, names }: { actor: AuditEntry["actor"]; names: ReadonlyMap<string, string> }) => {
  if (actor.id === null) return <strong>The machine's operator</strong>;
  if (actor.kind === "stranger") {
    return (
      <>
        <strong>Somebody</strong> at <Text of={actor.id} />
      </>
    );
  }
  return (
    <a href={`/console/people/${actor.id}`}>
      <Text of={names.get(actor.id) ?? actor.id} />
    </a>
  );
};

/** What was changed, unless it is the one who changed it. */
const About = ({ entry: { actor, subject }, listed }: { entry: AuditEntry; listed: Listed }) => {
  if (subject === actor.id) return null;
  const name = listed.names.get(subject);
  if (name === undefined) return <Id of={subject} />;
  return (
    <a href={`/console/people/${subject}`}>
      <Text of={name} />
    </a>
  );
};

const EntryLine = ({ entry, listed }: { entry: AuditEntry; listed: Listed }) => {
  const changes = changesOf(entry);
  return (
    <li>
      <div>
        <Who actor={entry.actor} names={listed.names} /> {AUDIT_WORDS[entry.action]}{" "}
        <About entry={entry} listed={listed} />
        {changes.length === 0 ? null : (
          <details>
            <summary class="quiet">
              {changes.length === 1 ? "1 field" : `${changes.length} fields`} · {entry.action}
            </summary>
            <dl class="facts changes">
              {changes.map(({ field, before, after }) => (
                <div>
                  <dt>{plain(field)}</dt>
                  <dd>
                    {before === null ? null : <>{before} → </>}
                    {after ?? "nothing"}
                  </dd>
                </div>
              ))}
            </dl>
          </details>
        )}
      </div>
      <Time at={entry.recordedAt} />
    </li>
  );
};

type Change = { readonly field: string; readonly before: Markup | null; readonly after: Markup | null };

/** Fields that are the same in every entry of a thing. */
const LEFT_OUT: ReadonlySet<string> = new Set(["object", "organisation_id"]);
const VALUE_LENGTH_MAX = 300;

/** Amounts: of the asset that the entry names, else of `USDC`, of which limits speak. */
const AMOUNTS: ReadonlySet<string> = new Set([
  ...["amount", "amount_before", "amount_after", "passkey_threshold", "amount_ceiling", "amount_spent"],
  ...["per_warrant_max", "hourly_max", "daily_max"],
]);
const TIME_PATTERN = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z$/;

/** The fields that an entry changed; null where there was, or is, no value. */
function changesOf({ before, after }: AuditEntry): readonly Change[] {
  const [was, is] = [{ ...before }, { ...after }] as Readonly<Record<string, unknown>>[];
  const fields = [...new Set([...Object.keys(was ?? {}), ...Object.keys(is ?? {})])];
  return fields
    .filter((field) => !LEFT_OUT.has(field) && !Bun.deepEquals(was?.[field], is?.[field]))
    .map((field) => ({ field, before: shownOf(field, was), after: shownOf(field, is) }));
}

function shownOf(field: string, of: Readonly<Record<string, unknown>> | undefined): Markup | null {
  const value = of?.[field];
  if (value === undefined || value === null) return null;
  if (typeof value === "string" && TIME_PATTERN.test(value)) return <Time at={Date.parse(value)} />;
  if (typeof value === "string" && AMOUNTS.has(field) && /^\d+$/.test(value))
    return <Amount of={BigInt(value)} asset={String(of?.asset ?? "USDC")} />;
  if (typeof value !== "object") return <Text of={cut(String(value))} />;
  return (
    <code>
      <Text of={cut(JSON.stringify(value))} />
    </code>
  );
}

const cut = (text: string): string =>
  text.length > VALUE_LENGTH_MAX ? `${text.slice(0, VALUE_LENGTH_MAX)}…` : text;
