import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { createIds, ID_PREFIXES, isId, type Noun, timeOfId } from "../../src/core/ids.ts";

const CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const NOW = Date.UTC(2030, 0, 15, 12);
const HALF = 2 ** 40;

/** The 128 bits of an id's ULID, read digit by digit. */
const bitsOf = (id: string): bigint =>
  [...id.slice(4)].reduce((bits, digit) => bits * 32n + BigInt(CROCKFORD.indexOf(digit)), 0n);
const timeOf = (id: string): number => Number(bitsOf(id) >> 80n);
const randomOf = (id: string): bigint => bitsOf(id) & (2n ** 80n - 1n);

const secure40 = (): number => Number(crypto.getRandomValues(new BigUint64Array(1))[0]! >> 24n);
/** Gives these numbers in turn, then the last one again and again. */
const inTurn = (values: readonly number[]) => {
  let index = 0;
  return () => values[Math.min(index++, values.length - 1)]!;
};

// Often close to the ends of the range, where one half carries into the other.
const random40s = fc.oneof(
  fc.constantFrom(0, 1, 2, HALF / 2 - 1, HALF / 2, HALF - 2, HALF - 1),
  fc.integer({ min: 0, max: HALF - 1 }),
);

const PREFIXES: readonly (readonly [Noun, string])[] = [
  ["warrant", "wrt_"],
  ["agent", "agt_"],
  ["spendSession", "ses_"],
  ["verifier", "vrf_"],
  ["schema", "sch_"],
  ["policy", "pol_"],
  ["apiKey", "key_"],
  ["escalation", "esc_"],
  ["check", "chk_"],
  ["user", "usr_"],
  ["organisation", "org_"],
  ["event", "evt_"],
  ["request", "req_"],
  ["deposit", "dep_"],
  ["instance", "ins_"],
];

describe("the prefix", () => {
  for (const [noun, prefix] of PREFIXES) {
    test(`of ${noun} is ${prefix}`, () => {
      const id = createIds(() => NOW, secure40)(noun);
      expect(id).toMatch(new RegExp(`^${prefix}[0-9A-HJKMNP-TV-Z]{26}$`));
      expect(isId(noun, id)).toBeTrue();
    });
  }

  test("is different for each noun", () => {
    const prefixes = Object.values(ID_PREFIXES);
    expect(new Set(prefixes).size).toBe(prefixes.length);
  });
});

describe("isId", () => {
  const GOOD = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
  const TABLE: readonly (readonly [text: string, is: boolean])[] = [
    [`wrt_${GOOD}`, true],
    [`wrt_7ZZZZZZZZZZZZZZZZZZZZZZZZZ`, true],
    [`wrt_8ZZZZZZZZZZZZZZZZZZZZZZZZZ`, false],
    [`agt_${GOOD}`, false],
    [`WRT_${GOOD}`, false],
    [GOOD, false],
    ["wrt_", false],
    ["", false],
    [`wrt_${GOOD.toLowerCase()}`, false],
    [`wrt_${GOOD}0`, false],
    [`wrt_${GOOD.slice(1)}`, false],
    [`wrt_${GOOD}\n`, false],
    [` wrt_${GOOD}`, false],
    ...["I", "L", "O", "U", "-", "é"].map((letter) => [`wrt_${GOOD.slice(0, 25)}${letter}`, false] as const),
  ];
  for (const [text, is] of TABLE) {
    test(`${is ? "takes" : "refuses"} ${JSON.stringify(text)}`, () => expect(isId("warrant", text)).toBe(is));
  }
});

describe("an id", () => {
  test("carries its millisecond and 80 random bits, the top one clear", () => {
    const newId = createIds(inTurn([NOW, NOW + 1, NOW + 2]), inTurn([5, 6, 1, 2, HALF - 1, HALF - 1]));
    const ids = [newId("warrant"), newId("warrant"), newId("warrant")];
    expect(ids.map(timeOf)).toEqual([NOW, NOW + 1, NOW + 2]);
    expect(ids.map(randomOf)).toEqual([(5n << 40n) + 6n, (1n << 40n) + 2n, 2n ** 79n - 1n]);
  });

  test("comes after the newest id that was made before, even where the clock is behind it", () => {
    const before = createIds(
      () => NOW + 3_600_000,
      () => HALF - 1,
    )("policy");
    const newId = createIds(
      () => NOW,
      () => 0,
      timeOfId(before),
    );
    const after = [newId("policy"), newId("policy")];
    expect([...after].sort()).toEqual(after);
    expect(after.every((id) => id > before)).toBeTrue();
  });

  test("sorts by creation, whatever the clock and the randomness do", () => {
    const clocks = fc.array(fc.integer({ min: 0, max: 50 }), { minLength: 2, maxLength: 40 });
    fc.assert(
      fc.property(clocks, fc.array(random40s, { minLength: 100, maxLength: 100 }), (clock, randoms) => {
        const newId = createIds(inTurn(clock), inTurn(randoms));
        let latest = -1;
        let before = "";
        for (const now of clock) {
          const id = newId("warrant");
          latest = Math.max(latest, now);
          expect(id > before).toBeTrue();
          expect(isId("warrant", id)).toBeTrue();
          expect(timeOf(id)).toBe(latest);
          before = id;
        }
      }),
      { numRuns: 200 },
    );
  });

  test("sorts by creation when the clock steps back an hour", () => {
    const newId = createIds(inTurn([NOW, NOW - 3_600_000, NOW - 1, NOW, NOW + 1]), secure40);
    const ids = Array.from({ length: 5 }, () => newId("warrant"));
    expect(ids.toSorted()).toEqual(ids);
    expect(ids.map(timeOf)).toEqual([NOW, NOW, NOW, NOW, NOW + 1]);
  });

  test("carries from the low half into the high one", () => {
    const newId = createIds(() => NOW, inTurn([7, HALF - 1, HALF - 1, HALF - 1, 2]));
    const [first, second, third, fourth] = Array.from({ length: 4 }, () => randomOf(newId("warrant")));
    expect(first).toBe((7n << 40n) + 2n ** 40n - 1n);
    expect(second! - first!).toBe(2n ** 40n - 1n);
    expect(third! - second!).toBe(2n ** 40n - 1n);
    expect(fourth! - third!).toBe(2n);
  });
});

describe("the step within a millisecond", () => {
  test("is the number that the source gave, and never one", () => {
    fc.assert(
      fc.property(random40s, random40s, random40s, (high, low, step) => {
        const newId = createIds(() => NOW, inTurn([high, low, step]));
        const [first, second] = [randomOf(newId("warrant")), randomOf(newId("warrant"))];
        expect(second - first).toBe(BigInt(Math.max(2, step)));
      }),
      { numRuns: 300 },
    );
  });

  test("differs from step to step", () => {
    const newId = createIds(() => NOW, secure40);
    const randoms = Array.from({ length: 10_001 }, () => randomOf(newId("warrant")));
    const steps = randoms.slice(1).map((random, index) => random - randoms[index]!);
    expect(new Set(steps).size).toBeGreaterThan(9_990);
    expect(steps.every((step) => step > 1n)).toBeTrue();
  });
});

test("100,000 ids are unique and in order, of one millisecond or of many", () => {
  let calls = 0;
  for (const now of [() => NOW, () => NOW + Math.floor(calls++ / 100)]) {
    const newId = createIds(now, secure40);
    let before = "";
    let sorted = true;
    for (let count = 0; count < 50_000; count++) {
      const id = newId("warrant");
      sorted &&= id > before;
      before = id;
    }
    expect(sorted).toBeTrue();
  }
});
