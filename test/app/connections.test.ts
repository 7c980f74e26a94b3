import { expect, test } from "bun:test";
import { planConnections } from "../../src/app/connections.ts";
import { DEFAULTS } from "../../src/config.ts";

const planned = (descriptors: number | null, connections: number | null = null) =>
  planConnections({ ...DEFAULTS, connections }, descriptors);

test("as many connections as fit, and no more than 10,000, are planned", () => {
  expect([planned(600), planned(1_000_000), planned(null)]).toEqual([
    { all: 600 - 64 - 75, descriptors: 600 },
    { all: 10_000, descriptors: 1_000_000 },
    { all: 10_000, descriptors: null },
  ]);
});

test("the operator's number is taken where it fits, else refused with what would fit", () => {
  expect([planned(600, 472), planned(40_000, 20_000)]).toEqual([
    { all: 472, descriptors: 600 },
    { all: 20_000, descriptors: 40_000 },
  ]);
  expect(planned(600, 473)).toMatchObject({
    refused: "validation_failed",
    message:
      "HOLDFAST_CONNECTIONS: must be at most 472: the process may have 600 file descriptors (ulimit -n), and 128 are kept for other things",
  });
});
