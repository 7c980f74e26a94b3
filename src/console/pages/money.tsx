/** @jsxImportSource hono/jsx */
import { isRefusal, type Refusal, refuseField, statusOf } from "../../core/errors.ts";
import { displayAmount, parseUnits } from "../../core/money.ts";
import type { Balance } from "../../core/postings.ts";
import { type Mode, roleIsAtLeast } from "../../core/roles.ts";
import { fundBalance } from "../../services/admin/balances.ts";
import { type MoneyPage, readMoney } from "../../services/console/money.ts";
import { Card, Empty, Head, Notice, Pager, Table } from "../parts/blocks.tsx";
import { Amount, Line, Text, Time } from "../parts/figures.tsx";
import { Field, Form } from "../parts/forms.tsx";
import type { Submission, Visit } from "../route.ts";
import { MoneyTabs } from "./payees.tsx";

/** The balances, what came in, and the form by which an admin records a deposit. */

type Fields = Readonly<Record<string, string>>;

export async function showMoney(visit: Visit) {
  const after = visit.search.get("after") || null;
  const money = await readMoney(visit.ctx, visit.caller, after);
  if (isRefusal(money)) return money;
  const { mode } = visit.caller;
  const mayRecord = roleIsAtLeast(visit.caller.role, "admin");
  return {
    title: "Money",
    section: "money",
    content: (
      <>
        <Head
          title="Money"
          about={
            <>
              What is available, what warrants hold, and what was paid to payees in the ledger.{" "}
              <a href="/docs/concepts#amounts">How amounts are counted</a>
            </>
          }
          actions={
            mayRecord ? (
              <a class="button primary" href="/console/money/deposit">
                Record a deposit
              </a>
            ) : null
          }
        />
        {visit.search.get("done") === "recorded" ? (
          <Notice kind="done">The deposit is recorded. It is available now.</Notice>
        ) : null}
        <MoneyTabs current="/console/money" />
        <div id="balances" class="stack" data-live="money">
          <Balances mode={mode} of={money.balances} mayRecord={mayRecord} />
        </div>
        <Card title="Deposits">
          <div id="deposits" class="stack" data-live={after === null ? "money" : undefined}>
            <Deposits of={money} after={after} mayRecord={mayRecord} />
          </div>
        </Card>
        <Card title={mode === "live" ? "In the sandbox" : "In live"}>
          {money.otherBalances.length === 0 ? (
            <p class="quiet">Nothing has come in there.</p>
          ) : (
            <BalanceTable label="The other mode" of={money.otherBalances} />
          )}
        </Card>
      </>
    ),
  } as const;
}

type AssetBalance = { readonly asset: string; readonly balance: Balance };

const Balances = ({
  mode,
  of,
  mayRecord,
}: {
  mode: Mode;
  of: readonly AssetBalance[];
  mayRecord: boolean;
}) => (
  <Card title={mode === "live" ? "Balances" : "Balances of the sandbox"}>
    {of.length === 0 ? (
      <Empty title="There is no money yet">
        <p>A warrant holds money that came in before.</p>
        {mayRecord ? (
          <a class="button primary" href="/console/money/deposit">
            Record the first deposit
          </a>
        ) : (
          <p>An admin records what comes in.</p>
        )}
      </Empty>
    ) : (
      <BalanceTable label="Balances" of={of} />
    )}
  </Card>
);

const BalanceTable = ({ label, of }: { label: string; of: readonly AssetBalance[] }) => (
  <div class="labelled">
    <Table
      label={label}
      columns={["Asset", "Available", "Held", "Paid"]}
      numbers={["Available", "Held", "Paid"]}
      rows={of.map(({ asset, balance }) => [
        <Text of={asset} />,
        <Amount of={balance.available} asset={asset} />,
        <Amount of={balance.held} asset={asset} />,
        <Amount of={balance.paid} asset={asset} />,
      ])}
    />
  </div>
);

const Deposits = ({
  of: { deposits, next },
  after,
  mayRecord,
}: {
  of: MoneyPage;
  after: string | null;
  mayRecord: boolean;
}) =>
  deposits.length === 0 ? (
    <Empty title="Nothing has come in yet">
      <p>Each deposit shows here, with what it is called elsewhere.</p>
    </Empty>
  ) : (
    <>
      <Table
        label="Deposits"
        columns={["Reference", "Amount", "Counts for", "Recorded", "Id", ...(mayRecord ? ["Action"] : [])]}
        wide={["Id"]}
        numbers={["Amount", "Counts for"]}
        rows={deposits.map((deposit) => [
          deposit.reference === null ? <span class="quiet">none</span> : <Line of={deposit.reference} />,
          <Amount of={deposit.amount} asset={deposit.asset} />,
          <Amount of={deposit.counted} asset={deposit.asset} />,
          <Time at={deposit.createdAt} />,
          <code class="id">{deposit.id}</code>,
          ...(mayRecord
            ? [
                <span class="row-actions">
                  <a href={`/console/money/corrections/new?deposit=${deposit.id}`} data-dialog>
                    Correct it<span class="hidden">: {deposit.id}</span>
                  </a>
                </span>,
              ]
            : []),
        ])}
      />
      <Pager
        newer={after === null ? null : "/console/money"}
        newerWords="← Newest"
        older={next === null ? null : `/console/money?after=${next}`}
      />
    </>
  );

/** What a deposit form says, once it is checked as far as the form goes. */
type Written = { readonly amount: bigint; readonly asset: string; readonly reference: string };

function readDeposit(fields: Fields): Written | Refusal {
  const asset = (fields.asset ?? "").trim();
  const amount = parseUnits((fields.amount ?? "").trim(), asset);
  if (amount === null || amount === 0n)
    return refuseField("amount", `must be an amount of ${asset || "an asset"}, such as 1000.00`);
  // Without a name for it, nobody could tell a deposit that is sent twice from two of the same amount.
  const reference = (fields.reference ?? "").trim();
  return reference === ""
    ? refuseField("reference", "is required: it names this deposit, so that it is posted once")
    : { amount, asset, reference };
}

export const showDepositForm = async (visit: Visit) => {
  const asked = Object.fromEntries(visit.search);
  if (asked.amount === undefined) return depositPage({}, null);
  const written = readDeposit(asked);
  return isRefusal(written) ? depositPage(asked, written) : confirmPage(visit, written);
};

function depositPage(fields: Fields, refusal: Refusal | null) {
  const [, field = "", problem = refusal?.message ?? ""] =
    /^(amount|asset|reference): (.*)$/s.exec(refusal?.message ?? "") ?? [];
  const problemOf = (name: string) => (field === name ? problem : undefined);
  return {
    title: "Record a deposit",
    section: "money",
    status: refusal ? statusOf(refusal.refused) : 200,
    content: (
      <>
        <Head
          title="Record a deposit"
          about="Money that came in by your own means. Holdfast does not fetch it: it believes you."
        />
        <Card>
          {refusal && field === "" ? <Notice kind="problem">{refusal.message}</Notice> : null}
          <form method="get" action="/console/money/deposit" class="form" aria-label="Record a deposit">
            <Field
              name="amount"
              label="Amount"
              required
              value={fields.amount}
              problem={problemOf("amount")}
              hint="In units, such as 1000.00."
              attributes={{ inputmode: "decimal", autocomplete: "off" }}
            />
            <Field
              name="asset"
              label="Asset"
              required
              value={fields.asset ?? "USDC"}
              problem={problemOf("asset")}
              attributes={{ maxlength: "32", autocomplete: "off" }}
            />
            <Field
              name="reference"
              label="Reference"
              required
              value={fields.reference}
              problem={problemOf("reference")}
              hint="What it is called elsewhere, such as the bank's number of it. Recorded twice, it is posted once."
              attributes={{ maxlength: "200", autocomplete: "off" }}
            />
            <button type="submit" class="primary">
              Go on
            </button>
          </form>
        </Card>
      </>
    ),
  } as const;
}

function confirmPage(visit: Visit, { amount, asset, reference }: Written) {
  const { mode } = visit.caller;
  return {
    title: `Record ${displayAmount(amount, asset)}?`,
    section: "money",
    content: (
      <div id="confirm">
        <h1>
          Record <Amount of={amount} asset={asset} />
          {mode === "sandbox" ? " in the sandbox" : ""}?
        </h1>
        <div class="outcome">
          <div>
            <span>Becomes available</span>
            <Amount of={amount} asset={asset} />
          </div>
          <div>
            <span>Reference</span>
            <Text of={reference} />
          </div>
        </div>
        <p>Agents can spend it from then on. This cannot be undone.</p>
        <Form by={visit} action="/console/money/deposit" label="Confirm">
          <input type="hidden" name="amount" value={amount.toString()} />
          <input type="hidden" name="asset" value={asset} />
          <input type="hidden" name="reference" value={reference} />
          <button type="submit" class="primary wide">
            Record it
          </button>
        </Form>
        <a href="/console/money">Leave it</a>
      </div>
    ),
  } as const;
}

/** The confirmation sends the amount in the smallest unit: what was confirmed, digit by digit. */
export async function sendDeposit(submission: Submission) {
  const { ctx, caller, fields } = submission;
  const { amount = "", asset = "", reference = "" } = fields;
  // An empty reference is refused too: without one, each time would be another deposit.
  const made = await fundBalance(ctx, caller, {
    ...{ organisation_id: caller.organisationId, mode: caller.mode },
    ...{ amount, asset, reference },
  });
  return isRefusal(made) ? depositPage({ asset, reference }, made) : { to: "/console/money?done=recorded" };
}
