/** @jsxImportSource hono/jsx */
import { isRefusal, type Refusal, refuse, refuseField, statusOf } from "../../core/errors.ts";
import { readNote } from "../../services/console/form-input.ts";
import { acknowledgePurchase, resolvePurchase, showPurchase } from "../../services/x402/purchases.ts";
import { Notice } from "../parts/blocks.tsx";
import { Amount } from "../parts/figures.tsx";
import { Field, Form } from "../parts/forms.tsx";
import type { Markup } from "../parts/markup.ts";
import type { Submission, Visit } from "../route.ts";

/** What an admin says of a purchase, each with a confirmation of what it does to the money. */

type OfVerb = { readonly id: string; readonly verb: string };

/** For each its title, what it does to the money, and the button. */
const VERBS = {
  paid: {
    title: (amount: Markup) => <>The seller was paid {amount}?</>,
    what: (amount: Markup) => (
      <>
        {amount} stays held. After this the warrant can only be released, which records that the seller has
        the money; no refund is possible.
      </>
    ),
    button: "The seller was paid",
    look: "primary wide",
    hint: "How you know, such as a transaction in a block explorer.",
  },
  unpaid: {
    title: (amount: Markup) => <>The seller was not paid {amount}?</>,
    what: (amount: Markup) => (
      <>
        {amount} returns to available at once, and the warrant is refunded. If the seller was paid after all,
        your balance is wrong by {amount}.
      </>
    ),
    button: "The seller was not paid",
    look: "danger wide",
    hint: "How you know, such as “not in the block explorer”.",
  },
  acknowledge: {
    title: () => "Acknowledge the contradiction?",
    what: (amount: Markup) => (
      <>
        Nothing moves. You say that you know of it, and that the {amount} were set right outside of Holdfast.
        The alarm about it ends.
      </>
    ),
    button: "Acknowledge",
    look: "primary wide",
    hint: "What you did about it. It is kept in the audit log.",
  },
} as const;
type Verb = keyof typeof VERBS;
const isVerb = (text: string): text is Verb => Object.hasOwn(VERBS, text);

export const showSaying = (visit: Visit<OfVerb>) => sayingPage(visit, null);

/** What was sent and refused. */
type Tried = { readonly note: string; readonly refusal: Refusal };

async function sayingPage(visit: Visit<OfVerb>, tried: Tried | null) {
  const { id, verb } = visit.params;
  if (!isVerb(verb)) return refuse("route_not_found", `There is nothing to say as ${verb}.`);
  const purchase = await showPurchase(visit.ctx, visit.caller, { purchase_id: id });
  if (isRefusal(purchase)) return purchase;
  const { title, what, button, look, hint } = VERBS[verb];
  const amount = purchase.quoted ? (
    <Amount of={BigInt(purchase.quoted.amount)} asset={purchase.quoted.asset} />
  ) : (
    "nothing"
  );
  const problem = tried?.refusal.message ?? "";
  const noteProblem = /^note: (.*)$/s.exec(problem)?.[1];
  return {
    title: button,
    section: "purchases",
    status: tried ? statusOf(tried.refusal.refused) : 200,
    content: (
      <div id="confirm">
        <h1>{title(amount)}</h1>
        {problem !== "" && noteProblem === undefined ? <Notice kind="problem">{problem}</Notice> : null}
        <p>{what(amount)} This cannot be undone.</p>
        <Form by={visit} action={`/console/purchases/${id}/say/${verb}`} label="Confirm">
          <Field
            name="note"
            label="Note"
            value={tried?.note ?? ""}
            hint={hint}
            problem={noteProblem}
            attributes={{ maxlength: "200" }}
          />
          <button type="submit" class={look}>
            {button}
          </button>
        </Form>
        <a href={`/console/purchases/${id}`} data-cancel>
          Leave it as it is
        </a>
      </div>
    ),
  } as const;
}

export async function sendSaying(submission: Submission<OfVerb>) {
  const { ctx, caller, params, fields } = submission;
  const { id, verb } = params;
  if (!isVerb(verb)) return refuseField("verb", "must be paid, unpaid or acknowledge");
  const note = readNote(fields.note);
  const said = isRefusal(note) ? note : await say(note);
  if (isRefusal(said)) return sayingPage(submission, { note: fields.note ?? "", refusal: said });
  return { to: `/console/purchases/${id}?done=${verb}` };

  function say(written: string | null) {
    const input = { purchase_id: id, ...(written !== null && { note: written }) };
    return verb === "acknowledge"
      ? acknowledgePurchase(ctx, caller, input)
      : resolvePurchase(ctx, caller, { ...input, known: verb as "paid" | "unpaid" });
  }
}
