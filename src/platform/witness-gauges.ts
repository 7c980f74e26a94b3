import type { Figures } from "./figures.ts";
import type { MakeGauge, MakeTotal } from "./gauge-makers.ts";

/** The names are those of `HOLDFAST_WITNESSES`, so there are few. */
export function createWitnessGauges(
  gauge: MakeGauge,
  total: MakeTotal,
): (witnesses: Figures["witnesses"]) => void {
  const signed = gauge(
    "holdfast_witness_signed",
    "1 where the witness has signed the newest checkpoint of the log, else 0. Missing before the first checkpoint.",
    ["witness"] as const,
  );
  const showFailures = total(
    "holdfast_witness_failures_total",
    "Offers of a checkpoint that the witness did not sign: it was away, or it has signed a longer log (behind) or another one (parted).",
    ["witness", "why"] as const,
  );
  return (witnesses) => {
    for (const { witness, hasSigned } of witnesses)
      if (hasSigned !== null) signed.set({ witness }, hasSigned ? 1 : 0);
    showFailures(
      witnesses.flatMap(({ witness, failures }) =>
        Object.entries(failures).map(([why, count]) => [{ witness, why }, count] as const),
      ),
    );
  };
}
