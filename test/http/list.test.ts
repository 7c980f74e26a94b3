import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Json } from "../support/client.ts";
import type { TestAgent, TestOrganisation } from "../support/organisations.ts";
import { type Service, startTestServer } from "../support/server.ts";

/** GET /v1/warrants: pages by deadline and by creation (docs/idempotency, "Lists"). */

let service: Service;
let home: TestOrganisation;
let agent: TestAgent;
/** In the order of opening. */
let opened: readonly string[];
/** In the order of deadlines. */
let byDeadline: readonly string[];

beforeAll(async () => {
  service = await startTestServer();
  home = await service.organisation();
  agent = await home.addAgent();
  // Deadlines in another order than the openings, two of them the same.
  const minutes = [50, 20, 70, 20, 10, 60, 30];
  const warrants: Json[] = [];
  for (const [index, minute] of minutes.entries()) {
    const named = index % 3 === 0 ? { agent_id: agent.id } : {};
    const deadline = `${service.timeIn(86_400_000).slice(0, 10)}T12:${String(minute % 60).padStart(2, "0")}:00.000Z`;
    warrants.push(await service.opened(home, { deadline, ...named }, { as: agent.as }));
  }
  opened = warrants.map(({ id }) => id);
  byDeadline = warrants
    .toSorted((a, b) => (a.deadline + a.id < b.deadline + b.id ? -1 : 1))
    .map(({ id }) => id);
  await service.post(`/v1/warrants/${opened[1]}/refund`, undefined, { as: home.people.operator.as });
  await service.opened(home, {}, { as: home.sandbox.as });
});
afterAll(() => service?.close());

const list = (query: string, as = agent.as) => service.get(`/v1/warrants${query}`, { as });
const idsIn = (body: Json): readonly string[] => body.data.map(({ id }: { id: string }) => id);

test("without parameters: by deadline, soonest first, in the whole envelope", async () => {
  const { body } = await list("");
  expect(body).toEqual({
    object: "list",
    data: expect.any(Array),
    has_more: false,
    sort: "deadline",
    next_offset: null,
    next_cursor: null,
  });
  expect(idsIn(body)).toEqual(byDeadline);
  for (const warrant of body.data)
    expect(warrant).toEqual((await service.get(`/v1/warrants/${warrant.id}`, { as: agent.as })).body);
});

describe("pages", () => {
  test("by deadline, through next_offset", async () => {
    const seen: string[] = [];
    let query = "?sort=deadline&limit=3";
    for (const [ids, hasMore, next] of [
      [3, true, 3],
      [3, true, 6],
      [1, false, null],
    ] as const) {
      const { body } = await list(query);
      expect(body).toMatchObject({
        has_more: hasMore,
        sort: "deadline",
        next_offset: next,
        next_cursor: null,
      });
      expect(body.data).toHaveLength(ids);
      seen.push(...idsIn(body));
      query = `?limit=3&offset=${next}`;
    }
    expect(seen).toEqual([...byDeadline]);
  });

  test("by creation, newest first, through next_cursor", async () => {
    const newestFirst = opened.toReversed();
    const seen: string[] = [];
    let query = "?sort=created&limit=3";
    for (const [count, hasMore] of [
      [3, true],
      [3, true],
      [1, false],
    ] as const) {
      const { body } = await list(query);
      expect(body.data).toHaveLength(count);
      seen.push(...idsIn(body));
      const next = hasMore ? newestFirst[seen.length - 1] : null;
      expect(body).toMatchObject({
        has_more: hasMore,
        sort: "created",
        next_offset: null,
        next_cursor: next,
      });
      query = `?sort=created&limit=3&starting_after=${next}`;
    }
    expect(seen).toEqual(newestFirst);
  });

  test("by creation, in the order of the ids, however many were opened at once", async () => {
    const busy = await service.organisation();
    // A schema that is saved with the first warrant that names it takes a way of its own.
    const specs = [
      { kind: "http.status", equals: 200 },
      { kind: "json.schema", schema: "object" },
    ];
    await Promise.all(
      Array.from({ length: 60 }, (_, index) =>
        service.opened(busy, { amount: "1", spec: { clauses: [specs[index % 2]] } }),
      ),
    );
    const seen: string[] = [];
    for (let query = "?sort=created&limit=25"; query !== ""; ) {
      const { body } = await list(query, busy.live.as);
      seen.push(...idsIn(body));
      query = body.has_more ? `?sort=created&limit=25&starting_after=${body.next_cursor}` : "";
    }
    expect([seen.length, seen]).toEqual([60, seen.toSorted().toReversed()]);
  });

  test("back again, through ending_before: the page just newer, still newest first", async () => {
    const [oldest, second, third, fourth] = opened;
    const near = await list(`?sort=created&limit=2&ending_before=${oldest}`);
    expect(idsIn(near.body)).toEqual([third!, second!]);
    expect(near.body).toMatchObject({ has_more: true, next_cursor: third, next_offset: null });
    const further = await list(`?sort=created&limit=2&ending_before=${near.body.next_cursor}`);
    expect(idsIn(further.body)).toEqual([opened[4]!, fourth!]);
    const rest = await list(`?sort=created&limit=2&ending_before=${further.body.next_cursor}`);
    expect(idsIn(rest.body)).toEqual([opened[6]!, opened[5]!]);
    expect(rest.body).toMatchObject({ has_more: false, next_cursor: null });
    const none = await list(`?sort=created&ending_before=${opened.at(-1)}`);
    expect(none.body).toMatchObject({ data: [], has_more: false, next_cursor: null });
  });

  test("a page by creation stays the same while others open", async () => {
    const busy = await service.organisation();
    const first = await service.opened(busy);
    const second = await service.opened(busy);
    const page = await list("?sort=created&limit=1", busy.live.as);
    expect(idsIn(page.body)).toEqual([second.id]);
    await service.opened(busy);
    const next = await list(`?sort=created&limit=1&starting_after=${page.body.next_cursor}`, busy.live.as);
    expect(idsIn(next.body)).toEqual([first.id]);
  });

  test("25 by default, 100 at most", async () => {
    const many = await service.organisation();
    await Promise.all(Array.from({ length: 101 }, () => service.opened(many, { amount: "1" })));
    for (const [query, count, hasMore] of [
      ["", 25, true],
      ["?limit=1", 1, true],
      ["?limit=100", 100, true],
      ["?limit=100&offset=1", 100, false],
      ["?limit=100&offset=100", 1, false],
      ["?offset=101", 0, false],
      ["?offset=100000", 0, false],
      ["?sort=created", 25, true],
      ["?sort=created&limit=100&offset=100", 100, true],
    ] as const) {
      const { body } = await list(query, many.live.as);
      expect([query, body.data.length, body.has_more]).toEqual([query, count, hasMore]);
    }
  });
});

test("filters, alone and together, in both sorts", async () => {
  const ofAgent = opened.filter((_, index) => index % 3 === 0);
  const filters: readonly [query: string, expected: readonly string[]][] = [
    ["state=refunded", [opened[1]!]],
    ["state=held", opened.filter((_, index) => index !== 1)],
    ["state=disputed", []],
    [`agent_id=${agent.id}`, ofAgent],
    [`agent_id=${agent.id}&state=held`, ofAgent],
    [`agent_id=${agent.id}&state=refunded`, []],
    [`agent_id=${home.sandbox.id}`, []],
    ["agent_id=agt_none", []],
  ];
  for (const [query, expected] of filters) {
    for (const sort of ["deadline", "created"]) {
      const { body } = await list(`?sort=${sort}&${query}`);
      expect([query, sort, [...idsIn(body)].sort()]).toEqual([query, sort, [...expected].sort()]);
    }
  }
  const page = await list(`?sort=created&limit=2&agent_id=${agent.id}`);
  expect(page.body).toMatchObject({ has_more: true, next_cursor: opened[3] });
});

test("warrants of the other mode, and of another organisation, are not listed", async () => {
  const other = await service.organisation();
  expect((await list("", other.live.as)).body.data).toEqual([]);
  expect((await list("", home.sandbox.as)).body.data).toHaveLength(1);
  const sandboxOwner = await home.signIn(home.people.owner, "sandbox");
  expect((await list("?sort=created", sandboxOwner)).body.data).toHaveLength(1);
  const foreign = await list(`?sort=created&starting_after=${opened[0]}`, other.live.as);
  expect(foreign.code).toBe("validation_failed");
});

describe("parameters that are out of range, or unknown, are 400", () => {
  const wrong: readonly string[] = [
    ...["0", "101", "-1", "1.5", "1e1", "abc", "", "%20", "0x10", "+5", "٥", "99999999999"].map(
      (text) => `limit=${text}`,
    ),
    ...["-1", "100001", "1.0", "abc", "", "NaN"].map((text) => `offset=${text}`),
    ...["open", "", "HELD", "held,released"].map((text) => `state=${text}`),
    ...["amount", "", "Created", "deadline,created"].map((text) => `sort=${text}`),
    "agent_id=",
    `agent_id=${"x".repeat(65)}`,
    "limit=5&limit=6",
    "state=held&state=held",
    "sort=created&sort=deadline",
    "page=2",
    "Limit=5",
    "cursor=wrt_1",
    "__proto__=1",
    "sort=created&starting_after=wrt_none",
    "sort=created&ending_before=wrt_none",
    "sort=created&starting_after=",
    "sort=created&ending_before=%00",
  ];
  for (const query of wrong) {
    test(query.slice(0, 60), async () => {
      const reply = await list(`?${query}`);
      expect([reply.status, reply.code]).toEqual([400, "validation_failed"]);
    });
  }

  test("both cursors at once", async () => {
    const reply = await list(`?sort=created&starting_after=${opened[4]}&ending_before=${opened[2]}`);
    expect(reply.code).toBe("validation_failed");
  });

  test("a query on a route without parameters", async () => {
    for (const path of [`/v1/warrants/${opened[0]}?x=1`, `/v1/warrants/${opened[0]}/trace?limit=1`])
      expect((await service.get(path, { as: agent.as })).code).toBe("validation_failed");
    const before = service.allRows(home);
    const reply = await service.post("/v1/warrants?dry_run=true", service.body(), { as: agent.as });
    expect([reply.code, service.allRows(home)]).toEqual(["validation_failed", before]);
  });
});

test("names and values of the query may be percent-encoded, and a plus is a space", async () => {
  const plain = await list("?sort=created&limit=2&state=held");
  expect((await list("?%73ort=cre%61ted&limit=%32&state=held")).body).toEqual(plain.body);
  expect((await list("?&&sort=created&limit=2&state=held&")).body).toEqual(plain.body);
  expect((await list("?state=held+")).code).toBe("validation_failed");
});

test("under sort=deadline the cursors are ignored, under sort=created the offset", async () => {
  const all = await list("?sort=deadline");
  const cursed = await list(`?sort=deadline&starting_after=${opened[2]}`);
  expect(cursed.body).toEqual(all.body);
  const created = await list("?sort=created");
  expect((await list("?sort=created&offset=5")).body).toEqual(created.body);
});
