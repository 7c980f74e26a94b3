/** @jsxImportSource hono/jsx */
import type { Refusal } from "../../core/errors.ts";
import type { Decision } from "../../core/escalation.ts";
import { BPS_WHOLE } from "../../core/money.ts";
import { decisionsOn, type readEscalationDetail } from "../../services/console/warrant-detail.ts";
import { Card, Notice } from "../parts/blocks.tsx";
import { Amount, percent, Text, Time } from "../parts/figures.tsx";
import { Field, Form } from "../parts/forms.tsx";
import type { Markup } from "../parts/markup.ts";
import { Outcome, Split } from "../parts/money.tsx";
import type { Visit } from "../route.ts";

/** The form that decides an escalation. */

export type Detail = Exclude<Awaited<ReturnType<typeof readEscalationDetail>>, Refusal | null>;
/** What was sent and refused. */
export type Tried = { readonly fields: Readonly<Record<string, string>>; readonly refusal: Refusal };

/** The choices, each with what it does to the money; or why there are none for this person. */
export const Deciding = ({ visit, detail, tried }: { visit: Visit; detail: Detail; tried: Tried | null }) => {
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
export function problemOf(tried: Tried | null): { readonly field: string; readonly problem: string } {
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
          ...(needsPasskey && { "data-signed": "/auth/passkey/challenge" }),
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
