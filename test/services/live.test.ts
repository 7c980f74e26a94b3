import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { hashSecret } from "../../src/core/api-key.ts";
import { isRefusal, type Refusal } from "../../src/core/errors.ts";
import type { PersonCaller } from "../../src/core/roles.ts";
import type { Warrant } from "../../src/core/warrant.ts";
import { callerNowIn } from "../../src/services/auth/callers.ts";
import { createChanges } from "../../src/services/live/changes.ts";
import { createLive, type Live, type LiveLimits } from "../../src/services/live/live.ts";
import { newsIn, newsTextOf } from "../../src/services/live/news.ts";
import type { Write } from "../../src/store/change.ts";
import { eventsOf } from "../support/event-stream.ts";
import { must, type Person, type TestOrganisation } from "../support/organisations.ts";
import { markRestored } from "../support/restored.ts";
import { type ShellService, startTestShell } from "../support/server.ts";
import { openTestStore } from "../support/store.ts";
import { createTimers } from "../support/timers.ts";

/** The streams of what changes, by a clock and timers of the test. */

let service: ShellService;
let home: TestOrganisation;
let timers: ReturnType<typeof createTimers>;
let live: Live;
beforeAll(async () => {
  service = startTestShell();
  home = await service.organisation(1_000_000n);
});
afterAll(() => service?.close());
beforeEach(() => {
  live?.close();
  live = makeLive();
});

function makeLive(limits?: LiveLimits): Live {
  timers = createTimers();
  const { store, randomByte } = service.ctx;
  const callerNow = callerNowIn(service.ctx);
  return createLive({ store, callerNow, after: timers.after, randomByte, ...(limits && { limits }) });
}

async function callerOf(person: Person, mode: "live" | "sandbox" = "live"): Promise<PersonCaller> {
  const cookie = mode === "live" ? person.as : await home.signIn(person, mode);
  const found = await callerNowIn(service.ctx)(hashSecret(cookie.Cookie?.split("=")[1] ?? ""));
  if (!found) throw new Error("nobody is signed in");
  return found;
}

const bodyOf = (opened: ReadableStream<Uint8Array> | Refusal): ReadableStream<Uint8Array> => must(opened);
const listen = (caller: PersonCaller, position: string) => eventsOf(bodyOf(live.open(caller, position)));
const namesOf = (event: { readonly data: string } | null | undefined): readonly string[] | null =>
  JSON.parse(event?.data ?? "{}").names;

/** Runs what is due in this turn, and what that leads to. */
const turns = async (count = 20) => {
  for (let i = 0; i < count; i++) await new Promise(setImmediate);
};

test("a sign-in that expires ends its stream at the next sign of life", async () => {
  const caller = await callerOf(home.people.viewer);
  const events = listen(caller, live.position());
  const end = events.next();
  await turns();
  service.clock.now += 13 * 3_600_000;
  timers.fire();
  expect((await end).value).toMatchObject({ type: "end", data: '{"why":"signed_out"}' });
  service.clock.now -= 13 * 3_600_000;
});

test("a reader who takes nothing has one text waiting, and then hears all that changed at once", async () => {
  const caller = await callerOf(home.people.viewer);
  const body = bodyOf(live.open(caller, live.position()));
  await turns();
  for (let i = 0; i < 50; i++) await service.opened(home);
  await turns();
  timers.fire();
  await turns();
  const first = (await eventsOf(body).next()).value;
  const names = namesOf(first) ?? [];
  expect(names.filter((name) => name.startsWith("wrt_")).length).toBe(50);
  expect(names.filter((name) => name === "warrants").length).toBe(1);
});

test("where too much changed to be named, anything may have", () => {
  const changes = createChanges();
  const scope = { organisationId: "org", mode: "live" } as const;
  const note = (id: string) => changes.note({ scope, names: ["warrants", id], role: "viewer" });
  changes.follow(scope);
  for (let i = 0; i < 350; i++) note(`one-${i}`);
  const heardTo = changes.sequence();
  expect(changes.since(scope, 0, "viewer").names).toHaveLength(351);
  for (let i = 0; i < 150; i++) note(`two-${i}`);
  expect(changes.since(scope, heardTo, "viewer").names).toHaveLength(151);
  expect(changes.since(scope, 0, "viewer").names).toBeNull();
});

test("of a commit with many names other instances are told its places, and of one in many places nothing", () => {
  const made = (organisation: number, row: number): Write => ({
    kind: "put",
    put: {
      kind: "warrant",
      before: null,
      row: {
        organisationId: `org-${organisation}`,
        mode: "live",
        id: `one-${row}`,
        agentId: null,
      } as Warrant,
    },
  });
  const textOf = (organisations: number, rows: number) =>
    newsTextOf(Array.from({ length: rows }, (_, row) => made(row % organisations, row)));
  const heard = (text: string | null) =>
    newsIn(text ?? "null")?.heard.map(({ scope, names }) => [scope.organisationId, names]);
  expect(heard(textOf(1, 2))).toEqual([["org-0", ["warrants", "one-0", "one-1"]]]);
  expect(heard(textOf(2, 31))).toEqual([
    ["org-0", null],
    ["org-1", null],
  ]);
  expect(heard(textOf(16, 16))).toHaveLength(16);
  expect(textOf(17, 17)).toBeNull();
});

test("tells at most twice a second", async () => {
  const caller = await callerOf(home.people.viewer);
  const events = listen(caller, live.position());
  const first = events.next();
  await service.opened(home);
  expect(namesOf((await first).value)).toContain("warrants");
  const second = events.next();
  await service.opened(home);
  await turns();
  expect(await Promise.race([second, Promise.resolve("nothing yet")])).toBe("nothing yet");
  expect(timers.waits()).toContain(500);
  timers.fire();
  expect(namesOf((await second).value)).toContain("warrants");
});

test("what another process has written may be anything", async () => {
  const caller = await callerOf(home.people.viewer);
  const events = listen(caller, live.position());
  const next = events.next();
  await turns();
  const other = openTestStore(service.folder, { now: service.ctx.now });
  await markRestored({ ...service.ctx, store: other }, { acknowledgedAt: service.ctx.now() });
  await other.close();
  // An instance on PostgreSQL hears of another's commit after a while.
  expect(namesOf((await timers.fireUntil(next)).value)).toBeNull();
});

test.each([
  ["in all", { all: 2, sandbox: 9, organisation: 9, person: 9 }],
  ["of an organisation", { all: 9, sandbox: 9, organisation: 2, person: 9 }],
])("there are so many %s, and no more", async (_, limits) => {
  live.close();
  live = makeLive(limits);
  const { viewer, operator, admin } = home.people;
  const readers = [];
  for (const person of [viewer, operator]) readers.push(bodyOf(live.open(await callerOf(person), null)));
  const third = live.open(await callerOf(admin), null);
  expect(isRefusal(third) && third.refused).toBe("rate_limit_exceeded");
  await readers[0]?.cancel();
  expect(isRefusal(live.open(await callerOf(admin), null))).toBe(false);
});

test("the sandbox leaves room to live", async () => {
  live.close();
  live = makeLive({ all: 3, sandbox: 1, organisation: 9, person: 9 });
  const { viewer, operator } = home.people;
  bodyOf(live.open(await callerOf(viewer, "sandbox"), null));
  expect(isRefusal(live.open(await callerOf(operator, "sandbox"), null))).toBe(true);
  expect(isRefusal(live.open(await callerOf(operator), null))).toBe(false);
});

test("nothing is noted where nobody has ever looked", async () => {
  const before = live.position();
  await service.opened(home);
  await turns();
  expect(live.position()).toBe(before);
});

test("all that is followed fits, and who was dropped hears that anything may have changed", async () => {
  const caller = await callerOf(home.people.viewer);
  live.follow(caller);
  const from = live.position();
  for (let i = 0; i < 300; i++) live.follow({ organisationId: `org_${i}`, mode: "live" });
  await service.opened(home);
  expect(namesOf((await listen(caller, from).next()).value)).toBeNull();
});
