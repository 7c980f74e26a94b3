/** @jsxImportSource hono/jsx */
import { isRefusal, type Refusal, refuse, refuseField, statusOf } from "../../core/errors.ts";
import { DECISIONS } from "../../core/escalation.ts";
import { readNote, readShare, readVersion } from "../../services/console/form-input.ts";
import { type KeptBody, readKeptBody } from "../../services/console/kept-body.ts";
import type { Waiting } from "../../services/console/overview.ts";
import { PAGE_SIZE } from "../../services/console/paging.ts";
import { readEscalationDetail, readInbox } from "../../services/console/warrant-detail.ts";
import { resolveEscalation } from "../../services/warrants/resolve.ts";
import { Card, Empty, Facts, Head, Notice, Pager } from "../parts/blocks.tsx";
import { CheckFacts, Clauses, Seen } from "../parts/evidence.tsx";
import { Amount, Badge, Line, percent, Reason, StateBadge, Text, Time } from "../parts/figures.tsx";
import type { Submission, Visit } from "../route.ts";
import { Deciding, type Detail, problemOf, type Tried } from "./deciding.tsx";

/** The inbox of escalations: why each waits, what was seen, and what each choice does to the money. */

const PATH = "/console/escalations";

type OfEscalation = { readonly id: string };

/** Without an id the one that waits longest is shown. */
export async function showInbox(visit: Visit) {
  const inbox = await inboxOf(visit);
  if (isRefusal(inbox)) return inbox;
  const first = inbox.listed[0]?.escalation.id;
  if (first !== undefined) return inboxPage(visit, inbox, first, null);
  return inbox.after === null ? emptyInbox() : { to: PATH };
}

export const showEscalation = (visit: Visit<OfEscalation>) => escalationPage(visit, null);

async function escalationPage(visit: Visit<OfEscalation>, tried: Tried | null) {
  const inbox = await inboxOf(visit);
  return isRefusal(inbox) ? inbox : inboxPage(visit, inbox, visit.params.id, tried);
}

/** The page of the list that the address asks for. */
type Inbox = {
  readonly listed: readonly Waiting[];
  /** Where it begins; null for the first page. */
  readonly after: string | null;
  readonly next: string | null;
};

async function inboxOf({ ctx, caller, search }: Visit): Promise<Inbox | Refusal> {
  const after = search.get("after") || null;
  const inbox = await readInbox(ctx, caller, after, PAGE_SIZE);
  return isRefusal(inbox) ? inbox : { ...inbox, after };
}

const addressOf = (path: string, after: string | null): string =>
  after === null ? path : `${path}?${new URLSearchParams({ after })}`;

const emptyInbox = () =>
  ({
    title: "Escalations",
    section: "escalations",
    content: (
      <>
        <Head title="Escalations" />
        <div id="all" data-live="escalations">
          <Card>
            <Empty title="Nothing waits for a person">
              <p>
                When a policy does not decide a check by itself, it comes here, with everything that was seen.
              </p>
              <a class="button" href="/console/warrants">
                See the warrants
              </a>
            </Empty>
          </Card>
        </div>
      </>
    ),
  }) as const;

async function inboxPage(visit: Visit, inbox: Inbox, id: string, tried: Tried | null) {
  const detail = await readEscalationDetail(visit.ctx, visit.caller, id);
  if (detail === null) return refuse("escalation_not_found", "There is no such escalation.");
  if (isRefusal(detail)) return detail;
  const { checkId } = detail.escalation;
  const body = checkId === null ? null : await readKeptBody(visit.ctx, visit.caller, checkId);
  return {
    title: "Escalations",
    section: "escalations",
    status: tried ? statusOf(tried.refusal.refused) : 200,
    content: (
      <>
        <Head
          title="Escalations"
          about={
            <>
              <span class="keys">
                <kbd>j</kbd> <kbd>k</kbd> move, <kbd>1</kbd> to <kbd>4</kbd> choose ·{" "}
              </span>
              <a href="/docs/console#escalations">How to decide</a>
            </>
          }
        />
        <div id="all" class="inbox">
          <InboxList inbox={inbox} current={id} />
          <div class="inbox-one">
            {visit.search.get("done") === "decided" ? (
              <Notice kind="done">
                Your decision is recorded.{" "}
                {detail.escalation.status === "resolved"
                  ? "Nothing else waits for a person."
                  : "This is the next one."}
              </Notice>
            ) : null}
            {tried && problemOf(tried).field === "" ? (
              <Notice kind="problem">{tried.refusal.message}</Notice>
            ) : null}
            <div id={`of-${id}`} class="stack" data-live={detail.warrant.id}>
              <One visit={visit} detail={detail} body={body} tried={tried} />
            </div>
          </div>
        </div>
      </>
    ),
  } as const;
}

const InboxList = ({ inbox: { listed, after, next }, current }: { inbox: Inbox; current: string }) => (
  <div id="inbox" data-live="escalations">
    <nav class="inbox-list" aria-label="Escalations" data-inbox>
      <ul>
        {listed.map(({ escalation, warrant }) => (
          <li>
            <a
              href={addressOf(`${PATH}/${escalation.id}`, after)}
              aria-current={escalation.id === current ? "true" : undefined}
            >
              <span class="between">
                <Line of={warrant.payee} />
                <Amount of={warrant.amount} asset={warrant.asset} />
              </span>
              <span class="between">
                <small>
                  <Time at={escalation.createdAt} />
                </small>
                {escalation.status === "resolved" ? (
                  <Badge of="resolved" />
                ) : (
                  <StateBadge state={warrant.state} />
                )}
              </span>
            </a>
          </li>
        ))}
      </ul>
    </nav>
    <Pager
      newer={after === null ? null : PATH}
      newerWords="← First"
      older={next === null ? null : addressOf(PATH, next)}
    />
  </div>
);

type OneProps = { visit: Visit; detail: Detail; body: KeptBody | null; tried: Tried | null };

const One = ({ visit, detail, body, tried }: OneProps) => {
  const { warrant, escalation, checks } = detail;
  const check = checks.find(({ id }) => id === escalation.checkId);
  return (
    <>
      <Card
        title={
          <>
            <Amount of={warrant.amount} asset={warrant.asset} /> to <Text of={warrant.payee} />
          </>
        }
        aside={<a href={`/console/warrants/${warrant.id}`}>The warrant</a>}
      >
        <Facts
          of={[
            ["Why", <Why codes={escalation.reasonCodes} />],
            ["Score", escalation.score === null ? "no check" : percent(escalation.score)],
            ["Raised", <Time at={escalation.createdAt} />],
            ...(escalation.raisedBy === null
              ? []
              : [
                  [
                    "Disputed by",
                    <Text of={detail.names.get(escalation.raisedBy) ?? escalation.raisedBy} />,
                  ] as const,
                ]),
            ...(escalation.note === null ? [] : [["Note", <Text of={escalation.note} />] as const]),
          ]}
        />
      </Card>
      <Deciding visit={visit} detail={detail} tried={tried} />
      <Card title="What was seen">
        <Clauses clauses={warrant.spec.clauses} check={check} />
        {check ? <CheckFacts check={check} /> : null}
      </Card>
      {body ? (
        <Card title="The body of the answer">
          <Body of={body} />
        </Card>
      ) : null}
    </>
  );
};

const Body = ({ of }: { of: KeptBody }) => {
  switch (of.kind) {
    case "text":
      return <Seen of={of.text} />;
    case "long":
      return <p class="quiet">It has {of.bytes} bytes, more than is shown here.</p>;
    case "binary":
      return <p class="quiet">It has {of.bytes} bytes, and is no text.</p>;
    case "gone":
      return (
        <p class="quiet">
          It is not kept any more. <a href="/docs/security#capsules">For how long it is</a>
        </p>
      );
  }
};

const Why = ({ codes }: { codes: Detail["escalation"]["reasonCodes"] }) => (
  <span class="reasons">
    {codes.length === 0 ? "the policy says so" : codes.map((code) => <Reason code={code} />)}
  </span>
);

export async function sendDecision(submission: Submission<OfEscalation>) {
  const { ctx, caller, fields, idempotency, params } = submission;
  const again = (refusal: Refusal) => escalationPage(submission, { fields, refusal });
  const decision = DECISIONS.find((known) => known === fields.decision);
  if (decision === undefined) return again(refuseField("decision", "choose what happens to the money"));
  const releasedBps = decision === "partial_release" ? readShare(fields.share) : null;
  if (isRefusal(releasedBps)) return again(releasedBps);
  const version = readVersion(fields.version);
  if (isRefusal(version)) return version;
  const note = readNote(fields.note);
  if (isRefusal(note)) return again(note);
  const answer = await resolveEscalation(
    ctx,
    caller,
    {
      ...{ id: params.id, decision, releasedBps, note },
      ifMatch: version,
      passkeyToken: fields.passkey_token || null,
    },
    idempotency,
  );
  return isRefusal(answer) ? again(answer) : { to: "/console/escalations?done=decided" };
}
