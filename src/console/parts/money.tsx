/** @jsxImportSource hono/jsx */
import { BPS_WHOLE, decimalsOf, shareOf } from "../../core/money.ts";
import type { Warrant } from "../../core/warrant.ts";
import { Amount, percent, Text } from "./figures.tsx";

/** What a decision does to the money. */

type Priced = Pick<Warrant, "amount" | "asset" | "payee">;

/** Where the money of a warrant goes: both sides. */
export const Outcome = ({ warrant, paidBps }: { warrant: Priced; paidBps: number }) => {
  const paid = shareOf(warrant.amount, paidBps);
  return (
    <div class="outcome">
      <div>
        <span>
          Paid to <Text of={warrant.payee.slice(0, 80)} />
        </span>
        <span data-paid>
          <Amount of={paid} asset={warrant.asset} />
        </span>
      </div>
      <div>
        <span>Returns to available</span>
        <span data-returned>
          <Amount of={warrant.amount - paid} asset={warrant.asset} />
        </span>
      </div>
    </div>
  );
};

/** The share of a partial release, as a slider and a number. The script shows both sides in money as they move. */
export const Split = ({
  warrant,
  share,
  problem,
}: {
  warrant: Priced;
  share: string;
  problem?: string | undefined;
}) => {
  const money = {
    "data-amount": warrant.amount.toString(),
    "data-asset": warrant.asset,
    "data-decimals": String(decimalsOf(warrant.asset)),
  };
  return (
    <div class="field">
      <label for="share">Share to pay, in %</label>
      <div class="split">
        <input
          type="range"
          min="1"
          max="99"
          step="1"
          value={share}
          aria-label="Share to pay, in %"
          data-split
          {...money}
        />
        <input
          id="share"
          name="share"
          inputmode="decimal"
          value={share}
          pattern="[0-9]{1,2}(\.[0-9]{1,2})?"
          autocomplete="off"
          aria-invalid={problem ? "true" : undefined}
          aria-describedby={problem ? "share-problem" : undefined}
          data-split
          {...money}
        />
      </div>
      {problem ? (
        <p class="problem" id="share-problem">
          {problem}
        </p>
      ) : null}
    </div>
  );
};

/** What a settled or waiting warrant has paid and returned so far. */
export function moneyOf({ amount, releasedBps, settledAt }: Warrant) {
  const paid = shareOf(amount, releasedBps ?? 0);
  return settledAt === null
    ? { held: amount, paid: 0n, returned: 0n }
    : { held: 0n, paid, returned: amount - paid };
}

export const shareWords = (bps: number | null): string =>
  bps === null || bps === BPS_WHOLE ? "" : ` (${percent(bps)})`;
