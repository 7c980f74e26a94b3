import { expect, jest, test } from "bun:test";
import type { Party } from "../../src/core/places.ts";
import { createPlaces } from "../../src/platform/places.ts";

const party = (organisationId: string, mode: Party["mode"] = "live"): Party => ({ organisationId, mode });
const FOREVER = 2 ** 31 - 1;

/** Two places: each organisation may have one of them, and both are taken. */
function full(options: Parameters<typeof createPlaces>[0] = {}) {
  const places = createPlaces({ max: 2, waitMsMax: FOREVER, ...options });
  const [first, second] = [places.take(party("a")), places.take(party("b"))];
  if (!first || !second) throw new Error("two places are free");
  expect(places.take(party("c"))).toBeNull();
  return { places, first, second };
}

test("who waits gets the place that is left, and is counted as waiting until then", async () => {
  const { places, first } = full();
  const waiting = places.wait(party("c"), null);
  expect(places.figures("live")).toEqual({ taken: 2, waiting: 1 });
  first.leave();
  // A place that is left twice frees only one.
  first.leave();
  const place = await waiting;
  expect([place !== null, places.figures("live")]).toEqual([true, { taken: 2, waiting: 0 }]);
  place?.leave();
  expect(places.figures("live").taken).toBe(1);
});

test("a place that was left between the question and the wait is taken at once", async () => {
  const { places, first } = full();
  first.leave();
  expect(await places.wait(party("c"), null)).not.toBeNull();
});

test("after its time it waits no more, and takes no place that is left later", async () => {
  const { places, first } = full({ waitMsMax: 1 });
  expect(await places.wait(party("c"), null)).toBeNull();
  first.leave();
  expect(places.figures("live")).toEqual({ taken: 1, waiting: 0 });
});

test("where nothing else is said, it waits for five seconds, and no longer", async () => {
  jest.useFakeTimers();
  try {
    const places = createPlaces({ max: 2 });
    places.take(party("a"));
    places.take(party("b"));
    const waiting = places.wait(party("c"), null);
    jest.advanceTimersByTime(4_999);
    expect(places.figures("live").waiting).toBe(1);
    jest.advanceTimersByTime(1);
    expect([await waiting, places.figures("live").waiting]).toEqual([null, 0]);
  } finally {
    jest.useRealTimers();
  }
});

test("a caller that has gone leaves the queue, also where it had gone before", async () => {
  const { places, first } = full();
  const caller = new AbortController();
  const waiting = places.wait(party("c"), caller.signal);
  caller.abort();
  expect(await waiting).toBeNull();
  expect(await places.wait(party("c"), caller.signal)).toBeNull();
  first.leave();
  expect(places.figures("live")).toEqual({ taken: 1, waiting: 0 });
});

test("where too many wait, the next one is sent away at once", async () => {
  const { places } = full({ waitingMax: 2 });
  void places.wait(party("c"), null);
  // The room is shared as the places are: one organisation has half of it, and the sandbox too.
  expect(await places.wait(party("c"), null)).toBeNull();
  void places.wait(party("d"), null);
  expect(await places.wait(party("e"), null)).toBeNull();
  expect(places.figures("live").waiting).toBe(2);
  places.close();
});

test("where nothing else is said, 512 wait for 256 places, and no more", async () => {
  const places = createPlaces();
  const asked = Array.from({ length: 1_000 }, (_, index) => places.wait(party(`${index}`), null));
  expect(places.figures("live")).toEqual({ taken: 256, waiting: 512 });
  places.close();
  expect((await Promise.all(asked)).filter((place) => place !== null)).toHaveLength(256);
});

test("once closed, nobody waits", async () => {
  const { places } = full();
  const waiting = [places.wait(party("c"), null), places.wait(party("d", "sandbox"), null)];
  places.close();
  expect(await Promise.all(waiting)).toEqual([null, null]);
  expect(await places.wait(party("c"), null)).toBeNull();
});
