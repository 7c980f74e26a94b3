/** @jsxImportSource hono/jsx */
import { isRefusal, type Refusal } from "../../core/errors.ts";
import { roleIsAtLeast } from "../../core/roles.ts";
import { listPurchases, showPurchase } from "../../services/x402/purchases.ts";
import { Card, Empty, Facts, Head, Notice, Pager, Table } from "../parts/blocks.tsx";
import { Amount, Badge, Id, Line, StateBadge, Text, Time } from "../parts/figures.tsx";
import type { Markup } from "../parts/markup.ts";
import type { Visit } from "../route.ts";

/** Purchases by x402: what was bought, whether the seller was paid and how that is known. */

type OfPurchase = { readonly id: string };
type Purchase = Exclude<Awaited<ReturnType<typeof showPurchase>>, Refusal>;

const PHASE_WORDS: Readonly<Record<Purchase["phase"], string>> = {
  quoting: "Asking the price",
  held: "Held, not signed",
  signed: "Signed",
  answered: "Answered",
  ended: "Ended",
};

/** Whether the seller was paid, in a badge: what needs a person stands out. */
const PaymentBadge = ({ of }: { of: Purchase }) => {
  if (of.contradicted && of.acknowledged_at === null) return <Badge look="fail" of="The chain contradicts" />;
  if (of.pays?.kind === "voucher") return <Badge of="Voucher" />;
  if (of.known === null) return <span class="quiet">none</span>;
  const [words, look] = {
    paid: ["Paid", "pass"],
    unpaid: ["Not paid", ""],
    unknown: ["Not known", "escalated"],
  }[of.known] as [string, string];
  return <Badge look={look} of={words} />;
};

const Quote = ({ of }: { of: Purchase }) =>
  of.quoted === null ? (
    <span class="quiet">none</span>
  ) : (
    <Amount of={BigInt(of.quoted.amount)} asset={of.quoted.asset} />
  );

const urlOf = ({ method, url }: Purchase): string => `${method} ${url}`;

export async function showPurchases(visit: Visit) {
  const { ctx, caller, search } = visit;
  const after = search.get("after") || null;
  const listed = await listPurchases(ctx, caller, {
    organisation_id: caller.organisationId,
    mode: caller.mode,
    ...(after !== null && { starting_after: after }),
  });
  if (isRefusal(listed)) return listed;
  return {
    title: "Purchases",
    section: "purchases",
    content: (
      <>
        <Head
          title="Purchases"
          about={
            <>
              What agents bought by x402. <a href="/docs/x402">How that works</a>
            </>
          }
        />
        <Card>
          <div id="purchases" class="stack" data-live={after === null ? "purchases warrants" : undefined}>
            {listed.data.length === 0 ? (
              <Empty title="Nothing has been bought yet">
                <p>
                  An agent buys by <code>POST /v1/x402/pay</code>: Holdfast pays the seller, and checks what
                  came. <a href="/docs/x402">Buying by x402</a>
                </p>
              </Empty>
            ) : (
              <Table
                label="Purchases"
                columns={["What", "Price", "Payment", "Warrant", "Begun", "Phase"]}
                wide={["Phase"]}
                numbers={["Price"]}
                rows={listed.data.map(rowOf)}
              />
            )}
            <Pager
              newer={after === null ? null : "/console/purchases"}
              newerWords="← Newest"
              older={listed.has_more ? `/console/purchases?after=${listed.data.at(-1)?.id}` : null}
            />
          </div>
        </Card>
      </>
    ),
  } as const;
}

const rowOf = (purchase: Purchase): readonly Markup[] => [
  <a href={`/console/purchases/${purchase.id}`}>
    <Line of={urlOf(purchase)} />
  </a>,
  <Quote of={purchase} />,
  <PaymentBadge of={purchase} />,
  purchase.warrant_state === null ? (
    <span class="quiet">nothing held</span>
  ) : (
    <StateBadge state={purchase.warrant_state} />
  ),
  <Time at={Date.parse(purchase.created_at)} />,
  PHASE_WORDS[purchase.phase],
];

const DONE: Readonly<Record<string, string>> = {
  paid: "It is recorded that the seller was paid. The warrant can now be released, and nothing else.",
  unpaid: "It is recorded that the seller was not paid. The hold has returned.",
  acknowledge: "It is acknowledged. Nothing has moved.",
};

export async function showPurchasePage(visit: Visit<OfPurchase>) {
  const purchase = await showPurchase(visit.ctx, visit.caller, { purchase_id: visit.params.id });
  if (isRefusal(purchase)) return purchase;
  const done = DONE[visit.search.get("done") ?? ""];
  const live = [purchase.id, ...(purchase.warrant_id === null ? [] : [purchase.warrant_id])].join(" ");
  return {
    title: "Purchase",
    section: "purchases",
    content: (
      <>
        <div id="head" data-live={live}>
          <Head
            title={
              <>
                <Quote of={purchase} /> <PaymentBadge of={purchase} />
              </>
            }
            about={<Text of={urlOf(purchase).slice(0, 300)} />}
            actions={<Actions visit={visit} purchase={purchase} />}
          />
        </div>
        {done ? <Notice kind="done">{done}</Notice> : null}
        <div id="about" class="columns" data-live={live}>
          <div>
            <Needed purchase={purchase} />
            <Payment of={purchase} />
          </div>
          <div>
            <Course of={purchase} />
          </div>
        </div>
      </>
    ),
  } as const;
}

const mayAdminister = ({ caller }: Visit): boolean => roleIsAtLeast(caller.role, "admin");
const isOpenContradiction = ({ contradicted, acknowledged_at }: Purchase): boolean =>
  contradicted && acknowledged_at === null;

const Actions = ({ visit, purchase }: { visit: Visit; purchase: Purchase }) => {
  if (!mayAdminister(visit)) return null;
  const path = `/console/purchases/${purchase.id}`;
  return (
    <>
      {purchase.known === "unknown" && purchase.phase === "ended" ? (
        <>
          <a class="button" href={`${path}/say/paid`} data-dialog>
            It was paid
          </a>
          <a class="button danger" href={`${path}/say/unpaid`} data-dialog>
            It was not paid
          </a>
        </>
      ) : null}
      {isOpenContradiction(purchase) ? (
        <a class="button primary" href={`${path}/say/acknowledge`} data-dialog>
          Acknowledge
        </a>
      ) : null}
    </>
  );
};

/** What waits for somebody, in words. */
const Needed = ({ purchase }: { purchase: Purchase }) => {
  if (isOpenContradiction(purchase)) {
    return (
      <Notice kind="problem">
        A person said that the seller was {purchase.known === "paid" ? "paid" : "not paid"}; the chain says:{" "}
        {purchase.chain_said === "paid" ? "paid" : "not paid"}. Holdfast moves nothing by itself. Set it right
        with the seller, then acknowledge it.
      </Notice>
    );
  }
  return purchase.known === "unknown" ? (
    <Notice kind="note">
      It is not known whether the seller was paid, so the amount stays held. The chain is asked
      {purchase.next_check_at === null ? (
        ""
      ) : (
        <>
          {" "}
          again <Time at={Date.parse(purchase.next_check_at)} />
        </>
      )}
      ; where it cannot be, an admin says what became of it.
    </Notice>
  ) : null;
};

const WITNESS_WORDS = { receipt: "the seller's receipt", chain: "the chain", person: "a person" } as const;
const KNOWN_WORDS = { paid: "paid", unpaid: "not paid", unknown: "not known yet" } as const;
const ATTEMPT_WORDS: Readonly<Record<NonNullable<Purchase["attempt"]>, string>> = {
  never_connected: "the seller was never reached",
  no_answer: "sent, and no answer came",
  answered: "answered",
  receipted: "answered, with a valid receipt",
};

const NONE = <span class="quiet">none</span>;
const optional = (of: string | null): Markup => (of === null ? NONE : <Id of={of} />);
const timeOr = (at: string | null): Markup => (at === null ? NONE : <Time at={Date.parse(at)} />);

/** What a payment on a chain has besides; a voucher moves nothing there. */
const chainFacts = (purchase: Purchase): readonly (readonly [string, Markup])[] => [
  ["Known", purchase.known === null ? NONE : KNOWN_WORDS[purchase.known]],
  ["By", purchase.known_by === null ? NONE : WITNESS_WORDS[purchase.known_by]],
  ["The chain said", purchase.chain_said === null ? NONE : KNOWN_WORDS[purchase.chain_said]],
  ["Contradicted", purchase.contradicted ? <strong>yes</strong> : "no"],
  ["Acknowledged", timeOr(purchase.acknowledged_at)],
  ["Transaction", optional(purchase.transaction)],
  ["Wallet", optional(purchase.payer)],
  ["Good until", timeOr(purchase.valid_before)],
];

function paidByOf({ pays }: Purchase): Markup {
  if (pays === null) return NONE;
  return pays.kind === "voucher"
    ? "a voucher: the settlement in the ledger pays"
    : `exact, on ${pays.network}`;
}

const Payment = ({ of: purchase }: { of: Purchase }) => (
  <Card title="Payment">
    <Facts
      of={[
        ["Price", <Quote of={purchase} />],
        ["At most", <Amount of={BigInt(purchase.max_amount)} asset={purchase.quoted?.asset ?? "USDC"} />],
        ["Payee", purchase.quoted === null ? NONE : <Text of={purchase.quoted.payee} />],
        ["Paid by", paidByOf(purchase)],
        ...(purchase.pays?.kind === "exact" ? chainFacts(purchase) : []),
      ]}
    />
  </Card>
);

const Course = ({ of: purchase }: { of: Purchase }) => (
  <Card title="Purchase">
    <Facts
      of={[
        ["Phase", PHASE_WORDS[purchase.phase]],
        [
          "Warrant",
          purchase.warrant_id === null ? (
            "nothing was held"
          ) : (
            <a class="id" href={`/console/warrants/${purchase.warrant_id}`}>
              {purchase.warrant_id}
            </a>
          ),
        ],
        ["State", purchase.warrant_state === null ? NONE : <StateBadge state={purchase.warrant_state} />],
        ["Request", purchase.attempt === null ? NONE : ATTEMPT_WORDS[purchase.attempt]],
        ["Answer", purchase.response_status === null ? NONE : String(purchase.response_status)],
        ["Body's hash", optional(purchase.response_hash)],
        ["Begun", timeOr(purchase.created_at)],
        ["Ended", timeOr(purchase.ended_at)],
        ["Asked again", timeOr(purchase.next_check_at)],
        ["Id", <Id of={purchase.id} />],
      ]}
    />
  </Card>
);
