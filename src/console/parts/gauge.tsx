/** @jsxImportSource hono/jsx */
import type { Markup } from "./markup.ts";

/** How much of a limit is used. */

/** From here on a gauge warns. */
const HIGH = 0.8;

/** The used share of a limit, 0 to 1. Of nothing everything is used. */
function shareUsed(used: bigint, max: bigint): number {
  if (used >= max) return 1;
  return Number((used * 1_000n) / max) / 1_000;
}

/** A bar. What it says is in words beside it. */
export const Bar = ({ used, max }: { used: bigint; max: bigint }) => {
  const share = shareUsed(used, max);
  const level = share === 1 ? "full" : share >= HIGH ? "high" : "low";
  return (
    <svg class={`bar ${level}`} viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
      <rect width={share * 100} height="6" />
    </svg>
  );
};

/** A bar with its name and what is used, in words. */
export const Gauge = ({
  label,
  words,
  ...of
}: {
  label: string;
  words: Markup;
  used: bigint;
  max: bigint;
}) => (
  <div class="gauge">
    <p class="between">
      <span class="quiet">{label}</span>
      <span>{words}</span>
    </p>
    <Bar {...of} />
  </div>
);
