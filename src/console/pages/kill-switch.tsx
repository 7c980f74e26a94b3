/** @jsxImportSource hono/jsx */
import { isRefusal, type Refusal } from "../../core/errors.ts";
import { type BalanceOfMode, readAllBalances } from "../../services/console/settings.ts";
import { Head } from "../parts/blocks.tsx";
import { Amount } from "../parts/figures.tsx";
import { Form } from "../parts/forms.tsx";
import type { Page, Redirect, Visit } from "../route.ts";

/** What the kill switch does to the money, before it is turned. */

export type ToState = { readonly state: string };

/** The confirmation: what stops, what goes on, and how much money is available and held. */
export async function showKillSwitch(visit: Visit<ToState>): Promise<Page | Redirect | Refusal> {
  const { state } = visit.params;
  if (state !== "on" && state !== "off") return { to: "/console/settings" };
  const balances = await readAllBalances(visit.ctx, visit.caller);
  if (isRefusal(balances)) return balances;
  const title = `Turn the kill switch ${state}?`;
  return {
    title,
    section: "settings",
    content: (
      <div id="confirm">
        <Head title={title} />
        <p>
          {state === "on"
            ? "No agent and no person opens a new warrant, in live and in the sandbox, until it is off again. What is available now cannot be held meanwhile."
            : "Warrants open again, in live and in the sandbox: agents may hold what is available."}
        </p>
        <Money balances={balances} state={state} />
        <p class="hint">
          What is held goes on either way: it is verified, settled, and returned at its deadline. Nothing that
          is open freezes, and nothing that was paid comes back.
        </p>
        <Form by={visit} action={`/console/settings/kill-switch/${state}`} label="Confirm">
          <button type="submit" class={state === "on" ? "danger wide" : "primary wide"}>
            Turn it {state}
          </button>
        </Form>
        <a href="/console/settings" data-cancel>
          Leave it as it is
        </a>
      </div>
    ),
  };
}

const Money = ({ balances, state }: { balances: readonly BalanceOfMode[]; state: "on" | "off" }) => (
  <>
    {balances.length === 0 ? <p>There is no money in either mode.</p> : null}
    {balances.map(({ mode, asset, balance }) => (
      <div class="outcome">
        <div>
          <span>
            {mode}: {state === "on" ? "cannot be held" : "may be held"}
          </span>
          <Amount of={balance.available} asset={asset} />
        </div>
        <div>
          <span>{mode}: held, and goes on</span>
          <Amount of={balance.held} asset={asset} />
        </div>
      </div>
    ))}
  </>
);
