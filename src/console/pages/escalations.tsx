/** @jsxImportSource hono/jsx */
import { isRefusal, type Refusal, refuse, refuseField, statusOf } from "../../core/errors.ts";
import { DECISIONS, type Decision } from "../../core/escalation.ts";
import { BPS_WHOLE } from "../../core/money.ts";
import { readNote, readShare, readVersion } from "../../services/console/form-input.ts";
import type { Waiting } from "../../services/console/overview.ts";
import { decisionsOn, readEscalationDetail, readInbox } from "../../services/console/warrant-detail.ts";
import { resolveEscalation } from "../../services/warrants/resolve.ts";
import { Card, Empty, Facts, Head, Notice } from "../parts/blocks.tsx";
import { CheckFacts, Clauses } from "../parts/evidence.tsx";
import { Amount, Line, percent, Reason, StateBadge, Text, Time } from "../parts/figures.tsx";
import { Field, Form } from "../parts/forms.tsx";
import type { Markup } from "../parts/markup.ts";
import { Outcome, Split } from "../parts/money.tsx";
import type { Submission, Visit } from "../route.ts";

/** The inbox of escalations: why each waits, what was seen, and what each choice does to the money. */

const LISTED_MAX = 50;

type OfEscalation = { readonly id: string };
type Detail = Exclude<Awaited<ReturnType<typeof readEscalationDetail>>, Refusal | null>;
/** What was sent and refused. */
type Tried = { readonly fields: Readonly<Record<string, string>>; readonly refusal: Refusal };

/** Without an id the one that waits longest is shown. */
export async function showInbox(visit: Visit) {
  const listed = await readInbox(visit.ctx, visit.caller, LISTED_MAX);
  if (isRefusal(listed)) return listed;
  const first = listed[0]?.escalation.id;
  return first === undefined ? emptyInbox() : inboxPage(visit, listed, first, null);
}

export const showEscalation = (visit: Visit<OfEscalation>) => escalationPage(visit, null);

async function escalationPage(visit: Visit<OfEscalation>, tried: Tried | null) {
  const listed = await readInbox(visit.ctx, visit.caller, LISTED_MAX);
  return isRefusal(listed) ? listed : inboxPage(visit, listed, visit.params.id, tried);
}

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

async function inboxPage(visit: Visit, listed: readonly Waiting[], id: string, tried: Tried | null) {
  const detail = await readEscalationDetail(visit.ctx, visit.caller, id);
  if (detail === null) return refuse("escalation_not_found", "There is no such escalation.");
  if (isRefusal(detail)) return detail;
  return {
    title: "Escalations",
    section: "escalations",
    status: tried ? statusOf(tried.refusal.refused) : 200,
    content: (
      <>
        <Head
          title="Escalations"
          about={
            <span class="keys">
              <kbd>j</kbd> <kbd>k</kbd> move, <kbd>1</kbd> to <kbd>4</kbd> choose
            </span>
          }
        />
        <div id="all" class="inbox">
          <InboxList listed={listed} current={id} />
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
              <One visit={visit} detail={detail} tried={tried} />
            </div>
          </div>
        </div>
      </>
    ),
  } as const;
}

const InboxList = ({ listed, current }: { listed: readonly Waiting[]; current: string }) => (
  <nav id="inbox" class="inbox-list" aria-label="Escalations" data-inbox data-live="escalations">
    <ul>
      {listed.map(({ escalation, warrant }) => (
        <li>
          <a
            href={`/console/escalations/${escalation.id}`}
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
                <span class="badge">resolved</span>
              ) : (
                <StateBadge state={warrant.state} />
              )}
            </span>
          </a>
        </li>
      ))}
    </ul>
  </nav>
);

const One = ({ visit, detail, tried }: { visit: Visit; detail: Detail; tried: Tried | null }) => {
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
    </>
  );
};

const Why = ({ codes }: { codes: Detail["escalation"]["reasonCodes"] }) => (
  <span class="reasons">
    {codes.length === 0 ? "the policy says so" : codes.map((code) => <Reason code={code} />)}
  </span>
);

/** The choices, each with what it does to the money; or why there are none for this person. */
const Deciding = ({ visit, detail, tried }: { visit: Visit; detail: Detail; tried: Tried | null }) => {
  const { escalation, warrant } = detail;
  if (escalation.status === "resolved") {
    return (
      <Card title="Resolved">
        <p>
          {escalation.decision?.replaceAll("_", " ")}
          {escalation.releasedBps === null ? "" : ` of ${percent(escalation.releasedBps)}`},{" "}
          <Time at={escalation.resolvedAt ?? escalation.createdAt} />
        </p>
      </Card>
    );
  }
  const decisions = decisionsOn(detail, visit.caller);
  if (decisions.length === 0) {
    return (
      <Notice kind="note">
        {warrant.state === "disputed"
          ? "An admin or owner who did not raise the dispute decides this one."
          : "An operator, admin or owner decides this one."}
      </Notice>
    );
  }
  return <DecisionForm visit={visit} detail={detail} decisions={decisions} tried={tried} />;
};

/** The field that is wrong, and how; no field where it is about the whole. */
function problemOf(tried: Tried | null): { readonly field: string; readonly problem: string } {
  const message = tried?.refusal.message ?? "";
  const [, field = "", problem = message] = /^(decision|share|note): (.*)$/s.exec(message) ?? [];
  return { field, problem };
}

type DecisionFormProps = {
  visit: Visit;
  detail: Detail;
  decisions: readonly Decision[];
  tried: Tried | null;
};

const DecisionForm = ({ visit, detail, decisions, tried }: DecisionFormProps) => {
  const { warrant, escalation, needsPasskey } = detail;
  const share = tried?.fields.share ?? "50";
  const { field, problem } = problemOf(tried);
  return (
    <Card title="Decide">
      <p class="notice problem" role="alert" data-problem hidden />
      <Form
        by={visit}
        action={`/console/escalations/${escalation.id}`}
        label="Decide"
        attributes={{
          "data-split-root": "",
          "data-warrant": warrant.id,
          ...(needsPasskey && { "data-signed": "" }),
        }}
      >
        <input type="hidden" name="version" value={String(warrant.version)} />
        <input type="hidden" name="passkey_token" value="" />
        <fieldset data-choices aria-describedby={field === "decision" ? "decision-problem" : undefined}>
          <legend class="hidden">What happens to the money</legend>
          {decisions.map((decision) => (
            <Choice decision={decision} detail={detail} checked={tried?.fields.decision === decision} />
          ))}
          {field === "decision" ? (
            <p class="problem" id="decision-problem">
              {problem}
            </p>
          ) : null}
        </fieldset>
        {decisions.includes("partial_release") ? (
          <div class="share">
            <Split warrant={warrant} share={share} problem={field === "share" ? problem : undefined} />
            <Outcome warrant={warrant} paidBps={BPS_WHOLE / 2} />
          </div>
        ) : null}
        <Field
          name="note"
          label="Note"
          value={tried?.fields.note ?? ""}
          hint="Why, for whoever reads it later. It may stay empty."
          problem={field === "note" ? problem : undefined}
          attributes={{ maxlength: "2000" }}
        />
        <button type="submit" class="primary wide">
          {needsPasskey ? "Decide, with your passkey" : "Decide"}
        </button>
      </Form>
    </Card>
  );
};

/** What a choice is called, and what it does. */
function choiceOf(decision: Decision, { warrant }: Detail): readonly [words: string, what: Markup] {
  const amount = <Amount of={warrant.amount} asset={warrant.asset} />;
  const payee = <Text of={warrant.payee.slice(0, 60)} />;
  switch (decision) {
    case "release":
      return [
        "Release",
        <>
          {amount} is paid to {payee}
        </>,
      ];
    case "partial_release":
      return [
        "Release a part",
        <>
          <span data-returned>The rest</span> returns, and <span data-paid>a share</span> is paid to {payee}
        </>,
      ];
    case "refund":
      return ["Refund", <>{amount} returns to available, and nothing is paid</>];
    case "dispute":
      return ["Dispute", <>{amount} stays held until another admin or owner decides</>];
  }
}

const Choice = ({ decision, detail, checked }: { decision: Decision; detail: Detail; checked: boolean }) => {
  const [words, what] = choiceOf(decision, detail);
  return (
    <label class="choice">
      <input type="radio" name="decision" value={decision} required checked={checked} />
      <span>
        <strong>{words}</strong>
        <span class="quiet">{what}</span>
      </span>
      <kbd class="keys">{["release", "partial_release", "refund", "dispute"].indexOf(decision) + 1}</kbd>
    </label>
  );
};

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
