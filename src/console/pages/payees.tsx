/** @jsxImportSource hono/jsx */
import { isRefusal, type Refusal, statusOf } from "../../core/errors.ts";
import type { PayeeAccount } from "../../core/payout.ts";
import { type PersonCaller, roleIsAtLeast } from "../../core/roles.ts";
import { submitPayouts } from "../../services/admin/payouts.ts";
import { readPayees } from "../../services/console/payouts.ts";
import { Card, Empty, Head, Pager, Table, Tabs } from "../parts/blocks.tsx";
import { Confirmation } from "../parts/confirmation.tsx";
import { Amount, Line, Text } from "../parts/figures.tsx";
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
              <a class="button primary" href={`${PAYOUTS}/submit`} data-dialog>
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
              <PayeeTable of={rows} mayPay={mayPay(visit.caller)} />
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

const PayeeTable = ({ of, mayPay: pays }: { of: readonly PayeeAccount[]; mayPay: boolean }) => (
  <Table
    label="Payees"
    columns={["Payee", "Owed", "Under way", "Paid out", ...(pays ? ["Action"] : [])]}
    numbers={["Owed", "Under way", "Paid out"]}
    rows={of.map(({ payee, asset, balance }) => [
      <Line of={payee} />,
      <Amount of={balance.payable} asset={asset} />,
      <Amount of={balance.submitted} asset={asset} />,
      <Amount of={balance.paidOut} asset={asset} />,
      ...(pays
        ? [
            balance.payable === 0n ? (
              ""
            ) : (
              <a href={`${PAYOUTS}/submit?${new URLSearchParams({ payee, asset })}`} data-dialog>
                Submit a payout
              </a>
            ),
          ]
        : []),
    ])}
  />
);

/** The payee whose payout is asked for; null for all that is owed. */
type Asked = { readonly payee: string; readonly asset: string } | null;

const askedOf = (payee: string | null | undefined, asset: string | null | undefined): Asked =>
  payee ? { payee, asset: asset || "USDC" } : null;

export const showSubmitting = async (visit: Visit) =>
  submittingPage(visit, askedOf(visit.search.get("payee"), visit.search.get("asset")), null);

const submittingPage = (visit: Visit, asked: Asked, refusal: Refusal | null) =>
  ({
    title: "Submit payouts",
    section: "money",
    status: refusal ? statusOf(refusal.refused) : 200,
    content: (
      <Confirmation
        title={asked ? "Submit a payout?" : "Submit all that is owed?"}
        back={PAYEES}
        problem={refusal?.message}
      >
        <p>
          {asked ? (
            <>
              All that is owed to <Text of={asked.payee} /> in {asked.asset} becomes one payout.
            </>
          ) : (
            "Each payee gets one payout of all that is owed to it, a thousand payees at a time."
          )}{" "}
          Its amount is fixed from then on. You pay it by your own means, and mark it.
        </p>
        <Form by={visit} action={`${PAYOUTS}/submit`} label="Confirm">
          {asked ? (
            <>
              <input type="hidden" name="payee" value={asked.payee} />
              <input type="hidden" name="asset" value={asked.asset} />
            </>
          ) : null}
          <button type="submit" class="primary wide">
            Submit
          </button>
        </Form>
      </Confirmation>
    ),
  }) as const;

export async function sendSubmitting(submission: Submission) {
  const { ctx, caller, fields } = submission;
  const asked = askedOf(fields.payee, fields.asset);
  const made = await submitPayouts(ctx, caller, {
    ...{ organisation_id: caller.organisationId, mode: caller.mode },
    ...asked,
  });
  if (isRefusal(made)) return submittingPage(submission, asked, made);
  const done = made.data.length === 0 ? "none" : made.has_more ? "some" : "submitted";
  return { to: `${PAYOUTS}?done=${done}` };
}
