import type { Gauge } from "prom-client";

/** How the metrics' text makes a gauge, and a counter whose value is kept elsewhere. */
export type MakeGauge = <Label extends string>(
  name: string,
  help: string,
  labelNames?: readonly Label[],
) => Gauge<Label>;

export type MakeTotal = <Label extends string>(
  name: string,
  help: string,
  labelNames?: readonly Label[],
) => (values: readonly (readonly [labels: Partial<Record<Label, string>>, value: number])[]) => void;
