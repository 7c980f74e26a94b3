/** @jsxImportSource hono/jsx */
import { isRefusal, type Refusal, statusOf } from "../../core/errors.ts";
import type { OwedAmount } from "../../core/payout.ts";
import { type Waiting, waitSentence } from "../../core/rail.ts";
import { type PersonCaller, roleIsAtLeast } from "../../core/roles.ts";
import type { Asked } from "../../services/admin/payout-batch.ts";
import { submitPayouts } from "../../services/admin/payouts.ts";
import { type PayeeOnRail, readPayees, readSubmission } from "../../services/console/payouts.ts";
import { capital } from "../capital.ts";
import { Card, Empty, Facts, Head, Pager, Table, Tabs } from "../parts/blocks.tsx";
import { Confirmation } from "../parts/confirmation.tsx";
import { Amount, Line, Text, Time } from "../parts/figures.tsx";
import { Form } from "../parts/forms.tsx";
import type { Submission, Visit } from "../route.ts";

/** What is owed to payees, and how its payout begins. */

const PAYEES = "/console/money/payees";
const PAYOUTS = "/console/money/payouts";

/** The pages of money, side by side. */
export const MoneyTabs = ({ current }: { current: string }) => (
  <Tabs
    label="Money"
    current={current}
    tabs={[
      { path: "/console/money", words: "Balances" },
      { path: PAYEES, words: "Payees" },
      { path: PAYOUTS, words: "Payouts" },
      { path: "/console/money/corrections", words: "Corrections" },
      { path: "/console/money/statements", words: "Statements" },
      { path: "/console/money/solvency", words: "Solvency" },
    ]}
  />
);

export const mayPay = ({ role }: PersonCaller): boolean => roleIsAtLeast(role, "admin");

export async function showPayees(visit: Visit) {
  const after = Number(/^[0-9]{1,15}$/.exec(visit.search.get("after") ?? "")?.[0] ?? "0");
  const found = await readPayees(visit.ctx, visit.caller, after);
  if (isRefusal(found)) return found;
  const { rows, more } = found;
  return {
    title: "Payees",
    section: "money",
    content: (
      <>
        <Head
          title="Payees"
          about="What was released to whom: what is owed, what is in payouts under way, and what is paid out."
          actions={
            mayPay(visit.caller) ? (
              <a class="button primary" href={`${PAYOUTS}/submit`}>
                Submit all that is owed
              </a>
            ) : null
          }
        />
        <MoneyTabs current={PAYEES} />
        <Card>
          <div id="payees" class="stack" data-live={after === 0 ? "money" : undefined}>
            {rows.length === 0 ? (
              <Empty title="Nobody was paid yet">
                <p>What a warrant releases is owed to its payee, and shows here.</p>
              </Empty>
            ) : (
              <div class="labelled">
                <PayeeTable of={rows} mayPay={mayPay(visit.caller)} />
              </div>
            )}
            <Pager
              newer={after === 0 ? null : PAYEES}
              newerWords="← First"
              older={more.next_cursor === null ? null : `${PAYEES}?after=${more.next_cursor}`}
            />
          </div>
        </Card>
      </>
    ),
  } as const;
}

/** What something waits for, in words. */
export const Waits = ({ of }: { of: Waiting }) => (
  <span>
    {capital(waitSentence(of))}
    {of.until === null ? "" : <>, until {<Time at={of.until} />}</>}.
  </span>
);

const PayeeTable = ({ of, mayPay: pays }: { of: readonly PayeeOnRail[]; mayPay: boolean }) => (
  <Table
    label="Payees"
    columns={["Payee", "Owed", "Under way", "Paid out", ...(pays ? ["Action"] : [])]}
    numbers={["Owed", "Under way", "Paid out"]}
    rows={of.map(({ payee, asset, balance, waiting }) => [
      balance.payable === 0n || waiting === null ? (
        <Line of={payee} />
      ) : (
        <span class="stacked">
          <Line of={payee} />
          <Waits of={waiting} />
        </span>
      ),
      <Amount of={balance.payable} asset={asset} />,
      <Amount of={balance.submitted} asset={asset} />,
      <Amount of={balance.paidOut} asset={asset} />,
      ...(pays
        ? [
            balance.payable === 0n ? (
              ""
            ) : (
              <span class="row-actions">
                <a href={`${PAYOUTS}/submit?${new URLSearchParams({ payee, asset })}`} data-dialog>
                  Submit a payout
                  <span class="hidden">
                    {" "}
                    to <Text of={payee} />
                  </span>
                </a>
              </span>
            ),
          ]
        : []),
    ])}
  />
);

type AskedOn = Asked & { readonly rail?: "book" };

const askedOf = (of: {
  readonly payee?: string | null | undefined;
  readonly asset?: string | null | undefined;
  readonly rail?: string | null | undefined;
}): AskedOn => ({
  ...(of.payee && { payee: of.payee, asset: of.asset || "USDC" }),
  ...(of.rail === "book" && { rail: of.rail }),
});

export const showSubmitting = async ({ search, ...visit }: Visit) =>
  submittingPage(
    { ...visit, search },
    askedOf({ payee: search.get("payee"), asset: search.get("asset"), rail: search.get("rail") }),
    null,
  );

async function submittingPage(visit: Visit, asked: AskedOn, refusal: Refusal | null) {
  const found = await readSubmission(visit.ctx, visit.caller, asked);
  if (isRefusal(found)) return found;
  return {
    title: "Submit payouts",
    section: "money",
    status: refusal ? statusOf(refusal.refused) : 200,
    content: (
      <Confirmation
        title={asked.payee === undefined ? "Submit all that is owed?" : "Submit a payout?"}
        back={PAYEES}
        problem={refusal?.message}
      >
        {found.payouts.length === 0 ? (
          <p>
            Nothing is owed{asked.payee === undefined ? null : <> to {<Text of={asked.payee} />}</>}, so there
            is nothing to submit.
          </p>
        ) : (
          <Submitting visit={visit} asked={asked} of={found} />
        )}
      </Confirmation>
    ),
  } as const;
}

type Submitted = Exclude<Awaited<ReturnType<typeof readSubmission>>, Refusal>;

const Submitting = ({ visit, asked, of }: { visit: Visit; asked: AskedOn; of: Submitted }) => (
  <>
    <BatchTable of={of.payouts} />
    <Facts
      of={[
        ["Payouts", String(of.payouts.length)],
        ...of.totals.map(({ asset, amount }) => ["Together", <Amount of={amount} asset={asset} />] as const),
      ]}
    />
    <p class="hint">
      {of.hasMore ? "More payees are owed something: one submission has a thousand payouts at most. " : null}
      {of.isSent
        ? "A wallet sends these to addresses on its chain, whatever its limits are, so you sign exactly this with your passkey. Where something else is owed by then, nothing is submitted. "
        : of.needsPasskey
          ? "This is above the passkey threshold, so you sign exactly this with your passkey. Where something else is owed by then, nothing is submitted. "
          : null}
      The amount of a payout is fixed when it is submitted. What no wallet sends you pay by your own means,
      and mark it.
    </p>
    {of.isSent ? (
      <p>
        <a href={`${PAYOUTS}/submit?${new URLSearchParams({ ...asked, rail: "book" })}`}>
          Pay all of it by your own means instead
        </a>
      </p>
    ) : null}
    <Form
      by={visit}
      action={`${PAYOUTS}/submit`}
      label="Confirm"
      attributes={
        of.needsPasskey
          ? { "data-signed": "/auth/passkey/payouts/challenge", "data-signs": "batch payee asset" }
          : {}
      }
    >
      {Object.entries(asked).map(([name, value]) => (
        <input type="hidden" name={name} value={value} />
      ))}
      {of.needsPasskey ? (
        <>
          <input type="hidden" name="batch" value={of.digest} />
          <input type="hidden" name="passkey_token" value="" />
        </>
      ) : null}
      <p class="notice problem" role="alert" data-problem hidden />
      <button type="submit" class="primary wide">
        Submit{of.needsPasskey ? " with your passkey" : null}
      </button>
    </Form>
  </>
);

/** Every payout, with the whole name of its payee: what is submitted is what is read. */
const BatchTable = ({ of }: { of: readonly OwedAmount[] }) => (
  <section class="scrolled" aria-label="What is submitted" tabindex={0}>
    <Table
      label="Payouts"
      columns={["Payee", "Amount"]}
      numbers={["Amount"]}
      rows={of.map(({ payee, asset, amount }) => [<Text of={payee} />, <Amount of={amount} asset={asset} />])}
    />
  </section>
);

export async function sendSubmitting(submission: Submission) {
  const { ctx, caller, fields } = submission;
  const asked = askedOf(fields);
  const made = await submitPayouts(ctx, caller, {
    ...{ organisation_id: caller.organisationId, mode: caller.mode },
    ...asked,
    ...(fields.batch && { batch: fields.batch }),
    ...(fields.passkey_token && { passkey_token: fields.passkey_token }),
  });
  if (isRefusal(made)) return submittingPage(submission, asked, made);
  const isSent = made.data.some(({ status }) => status === "owed");
  const done = made.data.length === 0 ? "none" : made.has_more ? "some" : isSent ? "sent" : "submitted";
  return { to: `${PAYOUTS}?done=${done}` };
}
