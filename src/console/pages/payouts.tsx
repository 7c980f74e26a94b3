/** @jsxImportSource hono/jsx */
import { isRefusal, type Refusal, refuseField, statusOf } from "../../core/errors.ts";
import type { Payout } from "../../core/payout.ts";
import { isOfPool } from "../../core/rail.ts";
import { failPayoutOf, markPaid } from "../../services/admin/payouts.ts";
import { type PayoutOnRail, readPayout, readPayouts } from "../../services/console/payouts.ts";
import { Card, Empty, Head, Notice, Pager, Table, Tabs } from "../parts/blocks.tsx";
import { Confirmation } from "../parts/confirmation.tsx";
import { Amount, Id, Line, Text, Time } from "../parts/figures.tsx";
import { Field, Form } from "../parts/forms.tsx";
import type { Submission, Visit } from "../route.ts";
import { MoneyTabs, mayPay, Waits } from "./payees.tsx";

/** Payouts, and how each of them ends. */

const PAYOUTS = "/console/money/payouts";

const STATUS_WORDS: Readonly<Record<Payout["status"], string>> = {
  submitted: "Submitted",
  paid: "Paid",
  failed: "Failed",
};
const isStatus = (text: string | null): text is Payout["status"] =>
  text !== null && Object.hasOwn(STATUS_WORDS, text);

const DONE: Readonly<Record<string, string>> = {
  submitted: "Submitted. Pay them by your own means, then mark each of them.",
  sent: "Submitted. What goes to addresses on a treasury's chain is sent by the next run, and shows here then; pay all else by your own means, and mark it.",
  some: "Submitted, and more is owed: to the payees after the first thousand.",
  none: "Nothing is owed: no payout was submitted.",
  paid: "The payout is marked as paid.",
  failed: "The payout is marked as failed. Its amount is owed again.",
};

export async function showPayouts(visit: Visit) {
  const asked = visit.search.get("status");
  const status = isStatus(asked) ? asked : null;
  const after = visit.search.get("after") || null;
  const found = await readPayouts(visit.ctx, visit.caller, status, after);
  if (isRefusal(found)) return found;
  const { rows, more } = found;
  const done = DONE[visit.search.get("done") ?? ""];
  const pathOf = (query: Record<string, string>) =>
    `${PAYOUTS}?${new URLSearchParams({ ...(status && { status }), ...query })}`;
  return {
    title: "Payouts",
    section: "money",
    content: (
      <>
        <Head
          title="Payouts"
          about="Money on its way out to payees. A treasury sends what goes to addresses on its chain; all else you pay, and mark it."
        />
        {done ? <Notice kind="done">{done}</Notice> : null}
        <MoneyTabs current={PAYOUTS} />
        <Tabs
          label="Status"
          current={status === null ? PAYOUTS : `${PAYOUTS}?status=${status}`}
          tabs={[
            { path: PAYOUTS, words: "All" },
            ...Object.entries(STATUS_WORDS).map(([one, words]) => ({
              path: `${PAYOUTS}?status=${one}`,
              words,
            })),
          ]}
        />
        <Card>
          <div id="payouts" class="stack" data-live={after === null ? "money" : undefined}>
            {rows.length === 0 ? (
              <Empty title="No payout here">
                <p>An admin submits what is owed, under Payees.</p>
              </Empty>
            ) : (
              <PayoutTable of={rows} mayPay={mayPay(visit.caller)} />
            )}
            <Pager
              newer={after === null ? null : pathOf({})}
              newerWords="← Newest"
              older={more.next_cursor === null ? null : pathOf({ after: more.next_cursor })}
            />
          </div>
        </Card>
      </>
    ),
  } as const;
}

const endingPath = (id: string, as: Ending): string =>
  `${PAYOUTS}/end?${new URLSearchParams({ payout: id, as })}`;

/** What became of a payout: its reference, or why it failed; what it waits for; and its transaction. */
const Became = ({ of: { reason, reference, waiting, transaction } }: { of: PayoutOnRail }) => {
  const text = reason ?? (reference === transaction ? null : reference);
  return (
    <span class="stacked">
      {text === null ? null : <Line of={text} />}
      {waiting === null ? null : <Waits of={waiting} />}
      {transaction === null ? null : (
        <small>
          <Text of={transaction} />
        </small>
      )}
    </span>
  );
};

/** The chain decides about what is under way on it. */
const isForPeople = ({ rail, status, waiting }: PayoutOnRail): boolean =>
  status === "paid" || (status === "submitted" && (rail === "book" || waiting?.code === "decision"));

const PayoutTable = ({ of, mayPay: pays }: { of: readonly PayoutOnRail[]; mayPay: boolean }) => (
  <Table
    label="Payouts"
    columns={["Payee", "Amount", "Status", "Reference or reason", "Submitted", ...(pays ? ["Action"] : [])]}
    numbers={["Amount"]}
    rows={of.map((payout) => [
      <Line of={payout.payee} />,
      <Amount of={payout.amount} asset={payout.asset} />,
      payout.rail === "book" ? STATUS_WORDS[payout.status] : `${STATUS_WORDS[payout.status]}, on a chain`,
      <Became of={payout} />,
      <span class="stacked">
        <Time at={payout.createdAt} />
        <Id of={payout.id} />
      </span>,
      ...(pays ? [isForPeople(payout) ? <Actions of={payout} /> : ""] : []),
    ])}
  />
);

const Actions = ({ of }: { of: Pick<Payout, "id" | "status" | "rail" | "mode"> }) => (
  <span class="row-actions">
    {of.status === "submitted" ? <EndLink id={of.id} as="paid" words="Mark as paid" /> : null}
    {isOfPool(of) ? null : of.status === "submitted" ? (
      <EndLink id={of.id} as="failed" words="It failed" />
    ) : (
      <EndLink id={of.id} as="returned" words="It came back" />
    )}
  </span>
);

const EndLink = ({ id, as, words }: { id: string; as: Ending; words: string }) => (
  <a href={endingPath(id, as)} data-dialog>
    {words}
    <span class="hidden">: {id}</span>
  </a>
);

/** How a payout ends: the title of its confirmation, what that does, and the field that it takes. */
const ENDINGS = {
  paid: {
    title: "Mark it as paid?",
    what: "The payee has the money: nothing of it is owed any more.",
    field: {
      name: "reference",
      label: "Reference",
      hint: "What the payment is called elsewhere, such as by the bank.",
    },
    button: "Mark as paid",
  },
  failed: {
    title: "It failed?",
    what: "Its amount is owed again, and the next payout is another one. Be sure that the payee has no money of it.",
    field: { name: "reason", label: "Reason", hint: "Why it failed." },
    button: "Mark as failed",
  },
  returned: {
    title: "The payment came back?",
    what: "It was marked as paid. Its amount is owed again. Be sure that you have the money back.",
    field: { name: "reason", label: "Reason", hint: "Why it came back." },
    button: "It came back",
  },
} as const;
type Ending = keyof typeof ENDINGS;
const isEnding = (text: string): text is Ending => Object.hasOwn(ENDINGS, text);

/** Without a payout in the address, the list of them is where one is chosen. */
export async function showEnding(visit: Visit) {
  const id = visit.search.get("payout");
  return id === null ? { to: PAYOUTS } : endingPage(visit, id, visit.search.get("as") ?? "", null);
}

const refuseEnding = () => refuseField("as", "must be paid, failed or returned");

async function endingPage(
  visit: Visit,
  id: string,
  as: string,
  tried: { readonly text: string; readonly refusal: Refusal } | null,
) {
  if (!isEnding(as)) return refuseEnding();
  const payout = await readPayout(visit.ctx, visit.caller, id);
  if (isRefusal(payout)) return payout;
  const { title, what, field, button } = ENDINGS[as];
  const message = tried?.refusal.message ?? "";
  const ofField = message.startsWith(`${field.name}: `) ? message.slice(field.name.length + 2) : undefined;
  return {
    title: button,
    section: "money",
    status: tried ? statusOf(tried.refusal.refused) : 200,
    content: (
      <Confirmation title={title} back={PAYOUTS} problem={ofField === undefined ? message : undefined}>
        <p>
          <Amount of={payout.amount} asset={payout.asset} /> to <Text of={payout.payee} />. {what}
        </p>
        <Form by={visit} action={`${PAYOUTS}/end`} label="Confirm">
          <input type="hidden" name="payout" value={id} />
          <input type="hidden" name="as" value={as} />
          <Field
            {...field}
            required
            value={tried?.text}
            problem={ofField}
            attributes={{ maxlength: "200", autocomplete: "off" }}
          />
          <button type="submit" class={as === "paid" ? "primary wide" : "danger wide"}>
            {button}
          </button>
        </Form>
      </Confirmation>
    ),
  } as const;
}

export async function sendEnding(submission: Submission) {
  const { ctx, caller, fields } = submission;
  const { payout = "", as = "", reference = "", reason = "" } = fields;
  if (!isEnding(as)) return refuseEnding();
  const ended =
    as === "paid"
      ? await markPaid(ctx, caller, { payout_id: payout, reference: reference.trim() })
      : await failPayoutOf(ctx, caller, {
          ...{ payout_id: payout, reason: reason.trim(), returned: as === "returned" },
        });
  if (!isRefusal(ended)) return { to: `${PAYOUTS}?done=${as === "paid" ? "paid" : "failed"}` };
  return endingPage(submission, payout, as, { text: as === "paid" ? reference : reason, refusal: ended });
}
