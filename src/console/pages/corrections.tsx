/** @jsxImportSource hono/jsx */
import type { Correction } from "../../core/correction.ts";
import { isRefusal, type Refusal, refuseField, statusOf } from "../../core/errors.ts";
import { displayAmount, parseUnits } from "../../core/money.ts";
import { roleIsAtLeast } from "../../core/roles.ts";
import { correctBalance, decideCorrection } from "../../services/admin/corrections.ts";
import { readCorrection, readCorrections, readCountedDeposit } from "../../services/console/payouts.ts";
import { Card, Empty, Head, Notice, Pager, Table } from "../parts/blocks.tsx";
import { Confirmation } from "../parts/confirmation.tsx";
import { Amount, Id, Line, Text, Time } from "../parts/figures.tsx";
import { Field, Form } from "../parts/forms.tsx";
import type { Submission, Visit } from "../route.ts";
import { MoneyTabs } from "./payees.tsx";

/** What deposits really brought, and what waits for a second person. */

const CORRECTIONS = "/console/money/corrections";

const STATUS_WORDS: Readonly<Record<Correction["status"], string>> = {
  proposed: "Waits for a second person",
  recorded: "Recorded",
  withdrawn: "Withdrawn",
};

const DONE: Readonly<Record<string, string>> = {
  recorded: "The correction is recorded.",
  proposed: "The correction waits: another admin approves it.",
  withdrawn: "The correction is withdrawn. Nothing moved.",
};

export async function showCorrections(visit: Visit) {
  const after = visit.search.get("after") || null;
  const found = await readCorrections(visit.ctx, visit.caller, after);
  if (isRefusal(found)) return found;
  const { rows, more } = found;
  const mayDecide = roleIsAtLeast(visit.caller.role, "admin");
  const done = DONE[visit.search.get("done") ?? ""];
  return {
    title: "Corrections",
    section: "money",
    content: (
      <>
        <Head
          title="Corrections"
          about="A deposit is never edited. A correction says what it really brought, and the difference is posted."
        />
        {done ? <Notice kind="done">{done}</Notice> : null}
        <MoneyTabs current={CORRECTIONS} />
        <Card>
          <div id="corrections" class="stack" data-live={after === null ? "money" : undefined}>
            {rows.length === 0 ? (
              <Empty title="Nothing was corrected">
                <p>An admin corrects a deposit from the list of deposits, under Balances.</p>
              </Empty>
            ) : (
              <CorrectionTable of={rows} mayDecide={mayDecide} />
            )}
            <Pager
              newer={after === null ? null : CORRECTIONS}
              newerWords="← Newest"
              older={more.next_cursor === null ? null : `${CORRECTIONS}?after=${more.next_cursor}`}
            />
          </div>
        </Card>
      </>
    ),
  } as const;
}

const CorrectionTable = ({ of, mayDecide }: { of: readonly Correction[]; mayDecide: boolean }) => (
  <Table
    label="Corrections"
    columns={["Reason", "Counts for", "Status", "Deposit", ...(mayDecide ? ["Action"] : [])]}
    numbers={["Counts for"]}
    rows={of.map(({ id, reason, amountBefore, amountAfter, asset, status, depositId, createdAt }) => [
      <Line of={reason} />,
      <span class="stacked">
        <Amount of={amountAfter} asset={asset} />
        <small>
          before <Amount of={amountBefore} asset={asset} />
        </small>
      </span>,
      STATUS_WORDS[status],
      <span class="stacked">
        <Id of={depositId} />
        <small>
          corrected <Time at={createdAt} />
        </small>
      </span>,
      ...(mayDecide ? [status === "proposed" ? <Decide id={id} /> : ""] : []),
    ])}
  />
);

const Decide = ({ id }: { id: string }) => (
  <span class="row-actions">
    <DecideLink id={id} as="approve" />
    <DecideLink id={id} as="withdraw" />
  </span>
);

const DecideLink = ({ id, as }: { id: string; as: DecisionOn }) => (
  <a href={`${CORRECTIONS}/decide?${new URLSearchParams({ correction: id, as })}`} data-dialog>
    {DECISIONS[as].button}
    <span class="hidden">: {id}</span>
  </a>
);

/** What was written, and why it was refused. */
type Tried = { readonly amount: string; readonly reason: string; readonly refusal: Refusal };

/** Without a deposit in the address, the list of them is where one is chosen. */
export async function showCorrecting(visit: Visit) {
  const id = visit.search.get("deposit");
  return id === null ? { to: "/console/money" } : correctingPage(visit, id, null);
}

async function correctingPage(visit: Visit, id: string, tried: Tried | null) {
  const found = await readCountedDeposit(visit.ctx, visit.caller, id);
  if (isRefusal(found)) return found;
  const { deposit, counted } = found;
  const [, field = "", problem = tried?.refusal.message] =
    /^(amount|reason): (.*)$/s.exec(tried?.refusal.message ?? "") ?? [];
  const problemOf = (name: string) => (field === name ? problem : undefined);
  return {
    title: "Correct a deposit",
    section: "money",
    status: tried ? statusOf(tried.refusal.refused) : 200,
    content: (
      <Confirmation
        title="Correct a deposit"
        back="/console/money"
        problem={field === "" ? tried?.refusal.message : undefined}
      >
        <p>
          The deposit counts for <Amount of={counted} asset={deposit.asset} />. The difference to what you
          write is posted at once; above the passkey threshold another admin approves it first.
        </p>
        <Form by={visit} action={`${CORRECTIONS}/new`} label="Correct a deposit">
          <input type="hidden" name="deposit" value={id} />
          <Field
            name="amount"
            label="What it really brought"
            required
            value={tried?.amount}
            problem={problemOf("amount")}
            hint={`In units of ${deposit.asset}, such as ${displayAmount(counted, deposit.asset).split(" ").slice(0, -1).join(" ")}. 0: it never came.`}
            attributes={{ inputmode: "decimal", autocomplete: "off" }}
          />
          <Field
            name="reason"
            label="Reason"
            required
            value={tried?.reason}
            problem={problemOf("reason")}
            hint="It is kept with the correction."
            attributes={{ maxlength: "200", autocomplete: "off" }}
          />
          <button type="submit" class="danger wide">
            Correct it
          </button>
        </Form>
      </Confirmation>
    ),
  } as const;
}

export async function sendCorrecting(submission: Submission) {
  const { ctx, caller, fields } = submission;
  const { deposit: id = "", amount: written = "", reason = "" } = fields;
  const found = await readCountedDeposit(ctx, caller, id);
  if (isRefusal(found)) return found;
  const amount = parseUnits(written.trim(), found.deposit.asset);
  const made =
    amount === null
      ? refuseField("amount", `must be an amount of ${found.deposit.asset}, such as 1000.00`)
      : await correctBalance(ctx, caller, {
          deposit_id: id,
          amount: amount.toString(),
          reason: reason.trim(),
        });
  if (isRefusal(made)) return correctingPage(submission, id, { amount: written, reason, refusal: made });
  return { to: `${CORRECTIONS}?done=${made.status}` };
}

/** What is decided on a correction that waits. */
const DECISIONS = {
  approve: {
    title: "Approve it?",
    what: "The difference is posted at once. This cannot be undone; another correction can follow.",
    button: "Approve",
    look: "primary wide",
  },
  withdraw: {
    title: "Withdraw it?",
    what: "Nothing moves, and the deposit counts for what it counted for.",
    button: "Withdraw",
    look: "danger wide",
  },
} as const;
type DecisionOn = keyof typeof DECISIONS;
const isDecision = (text: string): text is DecisionOn => Object.hasOwn(DECISIONS, text);
const refuseDecision = () => refuseField("as", "must be approve or withdraw");

/** Without a correction in the address, the list of them is where one is chosen. */
export async function showDeciding(visit: Visit) {
  const id = visit.search.get("correction");
  return id === null ? { to: CORRECTIONS } : decidingPage(visit, id, visit.search.get("as") ?? "", null);
}

async function decidingPage(visit: Visit, id: string, as: string, refusal: Refusal | null) {
  if (!isDecision(as)) return refuseDecision();
  const found = await readCorrection(visit.ctx, visit.caller, id);
  if (isRefusal(found)) return found;
  const { title, what, button, look } = DECISIONS[as];
  const { amountBefore, amountAfter, asset, reason } = found.correction;
  const needsPasskey = found.needsPasskey && as === "approve";
  return {
    title: button,
    section: "money",
    status: refusal ? statusOf(refusal.refused) : 200,
    content: (
      <Confirmation title={title} back={CORRECTIONS} problem={refusal?.message}>
        <p>
          From <Amount of={amountBefore} asset={asset} /> to <Amount of={amountAfter} asset={asset} />:{" "}
          <Text of={reason} />
        </p>
        <p>
          {what}
          {needsPasskey ? " It is above the passkey threshold, so you sign it with your passkey." : null}
        </p>
        <Form
          by={visit}
          action={`${CORRECTIONS}/decide`}
          label="Confirm"
          attributes={
            needsPasskey
              ? { "data-signed": "/auth/passkey/corrections/challenge", "data-signs": "correction_id" }
              : {}
          }
        >
          <input type="hidden" name="correction_id" value={id} />
          <input type="hidden" name="as" value={as} />
          <input type="hidden" name="passkey_token" value="" />
          <p class="notice problem" role="alert" data-problem hidden />
          <button type="submit" class={look}>
            {button}
            {needsPasskey ? " with your passkey" : null}
          </button>
        </Form>
      </Confirmation>
    ),
  } as const;
}

export async function sendDeciding(submission: Submission) {
  const { ctx, caller, fields } = submission;
  const { correction_id: id = "", as = "", passkey_token: token } = fields;
  if (!isDecision(as)) return refuseDecision();
  const decided = await decideCorrection(ctx, caller, {
    ...{ correction_id: id, decision: as },
    ...(token && { passkey_token: token }),
  });
  return isRefusal(decided)
    ? decidingPage(submission, id, as, decided)
    : { to: `${CORRECTIONS}?done=${decided.status}` };
}
