/** @jsxImportSource hono/jsx */
import { isRefusal, type Refusal, refuse, statusOf } from "../../core/errors.ts";
import { BPS_WHOLE, displayAmount } from "../../core/money.ts";
import { readShare, readVersion } from "../../services/console/form-input.ts";
import {
  decisionsOn,
  PERSONS_DECISIONS,
  type PersonsDecision,
  readWarrantDetail,
  type WarrantDetail,
} from "../../services/console/warrant-detail.ts";
import { settleWarrant } from "../../services/warrants/settle.ts";
import { Head, Notice } from "../parts/blocks.tsx";
import { Amount } from "../parts/figures.tsx";
import { Form } from "../parts/forms.tsx";
import { Outcome, Split } from "../parts/money.tsx";
import type { Submission, Visit } from "../route.ts";

/** The confirmation of a direct settlement: what will happen to how much money. With the script it opens as a dialog. */

type OfDecision = { readonly id: string; readonly decision: string };

const PAID_BPS = { release: BPS_WHOLE, partial_release: BPS_WHOLE / 2, refund: 0 } as const;

export const showSettlement = (visit: Visit<OfDecision>) => settlementPage(visit, "50", null);

const decisionOf = ({ decision }: OfDecision): PersonsDecision | Refusal =>
  PERSONS_DECISIONS.find((known) => known === decision) ??
  refuse("route_not_found", `There is no decision ${decision}.`);

async function settlementPage(visit: Visit<OfDecision>, share: string, refusal: Refusal | null) {
  const decision = decisionOf(visit.params);
  if (isRefusal(decision)) return decision;
  const detail = await readWarrantDetail(visit.ctx, visit.caller, visit.params.id);
  if (isRefusal(detail)) return detail;
  const { amount, asset } = detail.warrant;
  const words = { release: "Release", partial_release: "Release a part of", refund: "Refund" }[decision];
  return {
    title: `${words} ${displayAmount(amount, asset)}?`,
    section: "warrants",
    status: refusal ? statusOf(refusal.refused) : 200,
    content: (
      <div id="confirm">
        <Head
          title={
            <span>
              {words} <Amount of={amount} asset={asset} />?
            </span>
          }
        />
        <p class="notice problem" role="alert" data-problem hidden />
        {refusal && !refusal.message.startsWith("share:") ? (
          <Notice kind="problem">{refusal.message}</Notice>
        ) : null}
        {decisionsOn(detail, visit.caller).includes(decision) ? (
          <Settlement visit={visit} detail={detail} decision={decision} share={share} refusal={refusal} />
        ) : (
          <Notice kind="note">
            The warrant is {detail.warrant.state.replaceAll("_", " ")}, so this can not be decided here any
            more.
          </Notice>
        )}
        <a href={`/console/warrants/${visit.params.id}`} data-cancel>
          Leave it as it is
        </a>
      </div>
    ),
  } as const;
}

type SettlementProps = {
  visit: Visit;
  detail: WarrantDetail;
  decision: PersonsDecision;
  share: string;
  refusal: Refusal | null;
};

const Settlement = ({
  visit,
  detail: { warrant, needsPasskey },
  decision,
  share,
  refusal,
}: SettlementProps) => (
  <Form
    by={visit}
    action={`/console/warrants/${warrant.id}/settle/${decision}`}
    label="Confirm"
    attributes={{
      "data-split-root": "",
      "data-warrant": warrant.id,
      ...(needsPasskey && { "data-signed": "/auth/passkey/challenge" }),
    }}
  >
    <input type="hidden" name="version" value={String(warrant.version)} />
    <input type="hidden" name="decision" value={decision} />
    <input type="hidden" name="passkey_token" value="" />
    {decision === "partial_release" ? (
      <Split
        warrant={warrant}
        share={share}
        problem={refusal?.message.startsWith("share:") ? refusal.message.slice("share: ".length) : undefined}
      />
    ) : null}
    <Outcome warrant={warrant} paidBps={PAID_BPS[decision]} />
    <p class="hint">
      This is final: money that was paid cannot be called back.
      {needsPasskey ? " It is above the passkey threshold, so you sign it with your passkey." : null}
    </p>
    <button type="submit" class={decision === "refund" ? "danger wide" : "primary wide"}>
      {{ release: "Release it", partial_release: "Release this part", refund: "Refund it" }[decision]}
      {needsPasskey ? " with your passkey" : null}
    </button>
  </Form>
);

export async function sendSettlement(submission: Submission<OfDecision>) {
  const { ctx, caller, fields, idempotency, params } = submission;
  const decision = decisionOf(params);
  if (isRefusal(decision)) return decision;
  const share = fields.share ?? "";
  const releasedBps = decision === "partial_release" ? readShare(share) : null;
  if (isRefusal(releasedBps)) return settlementPage(submission, share, releasedBps);
  const version = readVersion(fields.version);
  if (isRefusal(version)) return version;
  const answer = await settleWarrant(
    ctx,
    caller,
    {
      ...{ warrantId: params.id, decision, releasedBps },
      // The decision stands on the version that the person has seen.
      ifMatch: version,
      passkeyToken: fields.passkey_token || null,
    },
    idempotency,
  );
  if (isRefusal(answer)) return settlementPage(submission, share, answer);
  return { to: `/console/warrants/${params.id}?done=settled` };
}
