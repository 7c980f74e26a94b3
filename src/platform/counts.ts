import { Counter, Histogram, type Registry } from "prom-client";

/**
 * Counters and histograms that are plain numbers, for what happens with every request or commit. prom-client's own look up a
 * series by the text of its labels for each value. Here prom-client reads the numbers when it writes the text.
 */

type Labels = Readonly<Record<string, string>>;

type Described = {
  readonly name: string;
  readonly help: string;
  readonly labelNames: readonly string[];
  readonly registers: Registry[];
};

/** One series of a counter. */
export type Count = { value: number };

/** A counter. `series` makes a series; the caller keeps it and adds to it. */
export function createCounter({ labelNames, ...described }: Described): { series(labels: Labels): Count } {
  const all: { readonly labels: Labels; readonly count: Count }[] = [];
  new Counter({
    ...described,
    labelNames: [...labelNames],
    collect() {
      this.reset();
      for (const { labels, count } of all) this.inc(labels, count.value);
    },
  });
  return {
    series(labels) {
      const count = { value: 0 };
      all.push({ labels, count });
      return count;
    },
  };
}

/** One series of a histogram. */
export type Distribution = { observe(value: number): void };

type Observed = {
  readonly labels: Labels;
  /** By bound: how many values were at most this bound, and above the bound before. */
  readonly counts: number[];
  count: number;
  sum: number;
};

/** A histogram. `series` makes a series; the caller keeps it. `buckets` are the upper bounds, rising. */
export function createHistogram({
  buckets,
  ...described
}: Described & { readonly buckets: readonly number[] }): { series(labels: Labels): Distribution } {
  const all: Observed[] = [];
  new ReadHistogram({ ...described, buckets: [...buckets], labelNames: [...described.labelNames] }, all);
  return {
    series(labels) {
      const observed: Observed = { labels, counts: buckets.map(() => 0), count: 0, sum: 0 };
      all.push(observed);
      return {
        observe(value) {
          observed.count += 1;
          observed.sum += value;
          for (let index = 0; index < buckets.length; index++) {
            if (value > (buckets[index] ?? 0)) continue;
            observed.counts[index] = (observed.counts[index] ?? 0) + 1;
            return;
          }
        },
      };
    },
  };
}

/** A histogram of prom-client that has no values of its own. */
class ReadHistogram extends Histogram {
  readonly #buckets: readonly number[];
  readonly #all: readonly Observed[];
  readonly #described: { readonly name: string; readonly help: string };

  constructor(
    described: ConstructorParameters<typeof Histogram>[0] & { readonly buckets: readonly number[] },
    all: readonly Observed[],
  ) {
    super({ ...described, buckets: [...described.buckets] });
    this.#buckets = described.buckets;
    this.#all = all;
    this.#described = { name: described.name, help: described.help };
  }

  /** prom-client's registry calls this to write the text; `get` calls it too. */
  async getForPromString() {
    const values = this.#all.flatMap((observed) => this.#valuesOf(observed));
    return { ...this.#described, type: "histogram", values };
  }

  #valuesOf({ labels: sharedLabels, counts, count, sum }: Observed) {
    const { name } = this.#described;
    let upTo = 0;
    const bounded = this.#buckets.map((le, index) => {
      upTo += counts[index] ?? 0;
      return { labels: { le: String(le) }, sharedLabels, value: upTo, metricName: `${name}_bucket` };
    });
    return [
      ...bounded,
      { labels: { le: "+Inf" }, sharedLabels, value: count, metricName: `${name}_bucket` },
      { labels: {}, sharedLabels, value: sum, metricName: `${name}_sum` },
      { labels: {}, sharedLabels, value: count, metricName: `${name}_count` },
    ];
  }
}
