import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import canonicalize from "canonicalize";
import { consoleRoutes } from "../../src/console/routes.ts";
import { ContendedFault } from "../../src/core/errors.ts";
import { HOUR_MS } from "../../src/core/time.ts";
import { app } from "../../src/http/app.ts";
import type { Reader } from "../../src/store/reader.ts";
import type { FromCopy } from "../../src/store/store.ts";
import type { Credentials, Json, Reply } from "../support/client.ts";
import { NOBODY } from "../support/client.ts";
import { quietSite } from "../support/console.ts";
import type { TestOrganisation } from "../support/organisations.ts";
import { type Service, type ShellService, startTestServer, startTestShell } from "../support/server.ts";
import { type Source, startSource } from "../support/source.ts";

/** Reading one warrant and its trace, its version as ETag, and what If-Match does on the moves. */

let service: Service;
let source: Source;
let home: TestOrganisation;
let other: TestOrganisation;
beforeAll(async () => {
  source = startSource();
  service = await startTestServer();
  home = await service.organisation();
  other = await service.organisation();
});
afterAll(async () => {
  await service?.close();
  source?.stop();
});

test("a warrant and its trace are read by any key and any person of the organisation, in the mode", async () => {
  const { id } = await service.opened(home);
  const second = await home.addAgent();
  const { viewer, operator, admin, owner } = home.people;
  for (const path of [`/v1/warrants/${id}`, `/v1/warrants/${id}/trace`]) {
    for (const as of [home.live.as, second.as, viewer.as, operator.as, admin.as, owner.as])
      expect((await service.get(path, { as })).status).toBe(200);
    const strangers: readonly Credentials[] = [
      home.sandbox.as,
      other.live.as,
      other.people.owner.as,
      await home.signIn(owner, "sandbox"),
    ];
    for (const as of strangers) expect((await service.get(path, { as })).code).toBe("warrant_not_found");
    expect((await service.get(path)).code).toBe("not_authenticated");
  }
});

describe("texts that are not an id", () => {
  const ids = [
    "wrt_none",
    "wrt_01ARZ3NDEKTSV4RRFFQ69G5FAV",
    "%00",
    "..%2f..",
    "%E0%A4%A",
    "x".repeat(4_000),
    "'--",
    "__proto__",
  ];
  for (const id of ids) {
    test(`${id.slice(0, 40)} is 404`, async () => {
      for (const path of [`/v1/warrants/${id}`, `/v1/warrants/${id}/trace`, `/t/${id}`]) {
        const reply = await service.get(path, { as: home.live.as });
        expect([path, reply.status]).toEqual([path, 404]);
      }
      for (const [path, body] of [
        [`/v1/warrants/${id}/verify`, { source_url: "http://a.example/" }],
        [`/v1/warrants/${id}/refund`, undefined],
        [`/v1/console/escalations/${id}/resolve`, { decision: "refund" }],
      ] as const) {
        const before = service.allRows(home);
        const reply = await service.post(path, body, { as: home.people.operator.as });
        expect([path, reply.status, service.allRows(home)]).toEqual([path, 404, before]);
      }
    });
  }
});

test("an id whose letters are percent-encoded is the same id", async () => {
  const { id } = await service.opened(home);
  const encoded = id.replace(/./g, (letter: string) => `%${letter.charCodeAt(0).toString(16)}`);
  const reply = await service.get(`/v1/warrants/${encoded}`, { as: home.live.as });
  expect([reply.status, reply.body.id]).toEqual([200, id]);
});

test("every answer with a warrant has its version as ETag, and HEAD has all headers and no body", async () => {
  const { as } = home.people.operator;
  const opened = await service.post("/v1/warrants", service.body(), { as });
  const path = `/v1/warrants/${opened.body.id}`;
  const read = await service.get(path, { as });
  const head = await service.send("HEAD", path, undefined, { as });
  const source_url = source.gives("no", { status: 500 });
  const verified = await service.post(`${path}/verify`, { source_url }, { as });
  const resolved = await service.post(
    `/v1/console/escalations/${opened.body.id}/resolve`,
    { decision: "partial_release", released_bps: 1_000 },
    { as },
  );
  const etags = [opened, read, head, verified, resolved].map(({ headers }) => headers.get("etag"));
  expect(etags).toEqual(['"1"', '"1"', '"1"', '"3"', '"4"']);
  expect([head.status, head.text, head.headers.get("content-type")]).toEqual([
    200,
    "",
    read.headers.get("content-type"),
  ]);
  expect(resolved.body.warrant).toEqual((await service.get(path, { as })).body);

  const missing = await service.send("HEAD", `${path}x`, undefined, { as });
  expect([missing.status, missing.text]).toEqual([404, ""]);
  const nobody = await service.send("HEAD", path);
  expect([nobody.status, nobody.text]).toEqual([401, ""]);
});

const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");

/** Without jobs, which read too. Counts the snapshots that each request takes. */
async function countSnapshots(
  use: (shell: ShellService, taken: () => number) => Promise<void>,
): Promise<void> {
  const shell = startTestShell({ site: quietSite() });
  const { store } = shell.ctx;
  const { read } = store;
  let snapshots = 0;
  Object.assign(store, {
    read: (work: never, from?: FromCopy<unknown>) => {
      if (!from?.otherwise) snapshots++;
      return read(work, from);
    },
  });
  try {
    await use(shell, () => {
      const taken = snapshots;
      snapshots = 0;
      return taken;
    });
  } finally {
    Object.assign(store, { read });
    await shell.close();
  }
}

/** The paths of every route and page that is read, but those of the documentation, which read no ledger. */
const READ_PATHS = new Set(
  [...app.routes, ...consoleRoutes(true)]
    .filter(({ method, path }) => method === "GET" && !path.startsWith("/docs"))
    .map(({ path }) => path),
);
/** What a shell without a server, a log, pages and purchases answers with 404. */
const OF_A_SERVER =
  /^\/(\.well-known\/holdfast|metrics|console\/\w+\.(js|css)|console\/purchases\/:id\/say|t\/:id\/receipt)/;

test("every GET takes one snapshot, also where it finds nothing or has to find out who the person is", () =>
  countSnapshots(async (shell, taken) => {
    const organisation = await shell.organisation();
    const { live, sandbox, people } = organisation;
    const { id } = await shell.opened(organisation, {
      spec: { clauses: [{ kind: "http.status", equals: 500 }] },
    });
    await shell.post(`/v1/warrants/${id}/verify`, { source_url: "http://127.0.0.1:1/" }, { as: live.as });
    const escalation = (await shell.get("/v1/console/escalations", { as: people.owner.as })).body.data[0].id;
    const settled = (await shell.opened(organisation)).id;
    await shell.post(`/v1/warrants/${settled}/refund`, undefined, { as: people.owner.as });
    const ids = [id, settled, escalation, live.id, people.owner.id, "wrt_01ARZ3NDEKTSV4RRFFQ69G5FAV"];
    const inOtherMode = await organisation.signIn(people.owner, "sandbox");
    const [reached, missed] = [new Set<string>(), new Set<string>()];
    for (const pattern of READ_PATHS)
      for (const named of pattern.includes(":id") ? ids : [""])
        for (const as of [NOBODY, live.as, sandbox.as, people.owner.as, inOtherMode]) {
          const path = pattern.replace(":id", named).replace(":decision", "release").replace(":state", "on");
          taken();
          const { status } = await shell.ask(path, as);
          expect([path, as, status < 500, taken() <= 1]).toEqual([path, as, true, true]);
          (status < 400 ? reached : missed).add(pattern);
        }
    const unreached = [...missed].filter((pattern) => !reached.has(pattern));
    expect(unreached.filter((pattern) => !OF_A_SERVER.test(pattern))).toEqual([]);
  }));

test("a GET holds no snapshot while it renews the person's sign-in", async () => {
  const shell = startTestShell();
  const organisation = await shell.organisation();
  const { store } = shell.ctx;
  const { read, execute } = store;
  let held = 0;
  const heldAtCommands: number[] = [];
  Object.assign(store, {
    read: (use: (reader: Reader) => unknown) =>
      read(async (reader) => {
        held += 1;
        try {
          return await use(reader);
        } finally {
          held -= 1;
        }
      }),
    execute: async (command: never) => {
      // What let go of its snapshot has ended by then.
      await new Promise(setImmediate);
      heldAtCommands.push(held);
      return execute(command);
    },
  });
  shell.clock.now += 2 * HOUR_MS;
  const { status } = await shell.get("/v1/warrants", { as: organisation.people.owner.as });
  expect([status, heldAtCommands]).toEqual([200, [0]]);
  Object.assign(store, { read, execute });
  await shell.close();
});

test("a cookie makes no public route hold a snapshot", () =>
  countSnapshots(async (shell, taken) => {
    for (const path of ["/healthz", "/openapi.json", "/v1/nothing"]) {
      await shell.get(path, { as: { Cookie: "any=thing" } });
      expect([path, taken()]).toEqual([path, 0]);
    }
  }));

test("a cookie beside an API key holds no snapshot for which others of its kind wait", async () => {
  // More at once than there are connections to read on.
  const as = { ...home.live.as, Cookie: "any=thing" };
  const replies = await Promise.all(
    Array.from({ length: 60 }, (_, index) => service.get(index % 2 ? "/readyz" : "/v1/warrants", { as })),
  );
  expect(replies.filter(({ status }) => status === 200)).toHaveLength(60);
});

test("a 404 of what the caller's organisation has in the other mode says so, and of others nothing", async () => {
  const { id } = await service.opened(home);
  const { as } = home.sandbox;
  const said = `Your organisation has ${id} in live; this request is sandbox.`;
  const message = async (reply: Promise<Reply>) => {
    const { status, body } = await reply;
    return [status, body.error.message];
  };
  const verify = { source_url: "http://127.0.0.1:1/" };
  for (const reply of [
    service.get(`/v1/warrants/${id}`, { as }),
    service.get(`/v1/warrants/${id}/trace`, { as }),
    service.post(`/v1/warrants/${id}/verify`, verify, { as }),
  ])
    expect(await message(reply)).toEqual([404, `There is no such warrant. ${said}`]);
  const opening = service.body({ agent_id: home.live.id });
  expect((await message(service.post("/v1/warrants", opening, { as })))[1]).toEndWith(
    `Your organisation has ${home.live.id} in live; this request is sandbox.`,
  );
  for (const stranger of [other.sandbox.as, other.live.as])
    expect(await message(service.get(`/v1/warrants/${id}`, { as: stranger }))).toEqual([
      404,
      "There is no such warrant.",
    ]);
});

test("the trace can be checked by who reads it, before the warrant has ended", async () => {
  const house = await service.organisation();
  const { id } = await service.opened(house);
  await service.post(
    `/v1/warrants/${id}/verify`,
    { source_url: "http://127.0.0.1:1/" },
    { as: house.live.as },
  );
  const { data } = (await service.get(`/v1/warrants/${id}/trace`, { as: house.live.as })).body;
  expect(data.map(({ to }: Json) => to)).toEqual(["held", "verifying", "escalated"]);
  let previous: string | null = null;
  for (const [sequence, { payload, payload_hash, entry_hash, ...entry }] of data.entries()) {
    expect(sha256(canonicalize(payload)!)).toBe(payload_hash);
    expect(entry.sequence).toBe(sequence);
    expect(entry_hash).toBe(sha256(canonicalize({ warrant_id: id, sequence, previous, payload_hash })!));
    previous = entry_hash;
  }
});

test("the checks of a warrant, newest first, with their source and what was observed, for who may read it", async () => {
  const house = await service.organisation();
  const spec = { clauses: [{ kind: "json.jsonpath", path: "$.price", equals: 7 }] };
  const { id } = await service.opened(house, { spec });
  const path = `/v1/warrants/${id}/checks`;
  expect((await service.get(path, { as: house.live.as })).body).toEqual({ object: "list", data: [] });
  const source_url = source.gives('{"price":8}');
  await service.post(`/v1/warrants/${id}/verify`, { source_url }, { as: house.live.as });
  const read = await service.get(path, { as: house.people.viewer.as });
  expect(read.body.data).toMatchObject([
    {
      object: "check",
      warrant_id: id,
      source_url,
      http_status: 200,
      bytes: 11,
      passed: false,
      reason_codes: ["value_mismatch"],
      outcome: "escalate",
      details: [
        {
          ...{ kind: "json.jsonpath", passed: false, reason_code: "value_mismatch", observed: 8 },
          clause: spec.clauses[0],
        },
      ],
    },
  ]);
  expect(sha256('{"price":8}')).toBe(read.body.data[0].evidence_hash);
  const stranger = await service.organisation();
  for (const as of [stranger.live.as, house.sandbox.as])
    expect((await service.get(path, { as })).code).toBe("warrant_not_found");
  expect((await service.get(path)).status).toBe(401);
});

test("the trace: each move, who made it, and the hash of its payload", async () => {
  const house = await service.organisation();
  await house.addPolicy({ bands: [{ minScore: 0, outcome: "refund" }] });
  const { id } = await service.opened(house);
  await service.post(`/v1/warrants/${id}/verify`, { source_url: source.gives("{}") }, { as: house.live.as });
  const trace = await service.get(`/v1/warrants/${id}/trace`, { as: house.people.viewer.as });
  expect(trace.body).toEqual({ object: "list", data: expect.any(Array) });
  const key = { kind: "agent", id: house.live.keyId };
  const entries: readonly Json[] = trace.body.data;
  expect(entries.map(({ from, to, actor }) => ({ from, to, actor }))).toEqual([
    { from: null, to: "held", actor: key },
    { from: "held", to: "verifying", actor: key },
    { from: "verifying", to: "refunded", actor: { kind: "system", id: null } },
  ]);
  const stored = service.ctx.reader.trace.of(id);
  for (const [index, entry] of entries.entries()) {
    expect(Object.keys(entry).sort()).toEqual([
      ...["actor", "chain_ref", "entry_hash", "from", "payload", "payload_hash", "recorded_at"],
      ...["rules_hash", "sequence", "to"],
    ]);
    const payload = stored[index]!.payload;
    expect(entry).toMatchObject({
      chain_ref: null,
      payload_hash: createHash("sha256").update(payload).digest("hex"),
      recorded_at: expect.stringMatching(/\.\d{3}Z$/),
      rules_hash: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
    expect(JSON.parse(payload)).toMatchObject({
      warrant_id: id,
      mode: "live",
      version: index + 1,
      from: entry.from,
      to: entry.to,
      actor: entry.actor,
      recorded_at: entry.recorded_at,
      rules_hash: entry.rules_hash,
      amount: "100",
      asset: "USDC",
      payee: "acme",
      released_bps: null,
      agent_id: null,
    });
  }
});

describe("If-Match", () => {
  const moves: readonly [name: string, send: (id: string, tag: string) => ReturnType<Service["post"]>][] = [
    ["verify", (id, tag) => move(`/v1/warrants/${id}/verify`, tag, { source_url: source.gives("{}") })],
    ["release", (id, tag) => move(`/v1/warrants/${id}/release`, tag)],
    ["partial", (id, tag) => move(`/v1/warrants/${id}/partial`, tag, { released_bps: 5_000 })],
    ["refund", (id, tag) => move(`/v1/warrants/${id}/refund`, tag)],
    ["resolve", (id, tag) => move(`/v1/console/escalations/${id}/resolve`, tag, { decision: "release" })],
  ];
  const move = (path: string, tag: string, body?: object) =>
    service.post(path, body, { as: home.people.operator.as, headers: { "If-Match": tag } });

  for (const [name, send] of moves) {
    test(`${name}: another version moves nothing, a malformed one is refused, the right one moves`, async () => {
      const { id } = await service.opened(home, { agent_id: home.live.id });
      let version = 1;
      if (name === "resolve") {
        const escalating = { as: home.people.operator.as };
        await service.post(`/v1/warrants/${id}/verify`, { source_url: "http://127.0.0.1:1/" }, escalating);
        const { body } = await service.get(`/v1/warrants/${id}`, escalating);
        if (body.state !== "escalated") throw new Error(`not escalated: ${body.state}`);
        ({ version } = body);
      }
      for (const tag of [`"${version + 1}"`, '"999999999"'])
        await service.refuses(home, [409, "version_conflict"], () => send(id, tag));
      const malformed = [
        "1",
        '"0"',
        '"01"',
        '"-1"',
        '"1',
        'W/"1"',
        '"1", "2"',
        '"one"',
        '"1"x',
        `"${"1".repeat(40)}"`,
      ];
      for (const tag of malformed)
        await service.refuses(home, [400, "validation_failed", "If-Match: "], () => send(id, tag));
      const moved = await send(id, `"${version}"`);
      expect([moved.status, moved.code]).toEqual([200, null]);
    });
  }
});

test("an unknown route, or one without this method, is 404 for everybody", async () => {
  const { id } = await service.opened(home);
  const unknown: readonly [method: string, path: string][] = [
    ["GET", "/v1"],
    ["GET", "/v2/warrants"],
    ["GET", "/v1/Warrants"],
    ["GET", `/v1/warrants/${id}/check`],
    ["GET", `/v1/warrants/${id}/verify`],
    ["GET", `/v1/warrants/${id}/release`],
    ["PUT", "/v1/warrants"],
    ["PATCH", `/v1/warrants/${id}`],
    ["PUT", `/v1/warrants/${id}`],
    ["DELETE", `/v1/warrants/${id}`],
    ["POST", `/v1/warrants/${id}`],
    ["OPTIONS", "/v1/warrants"],
    ["POST", `/t/${id}`],
    ["GET", "/bench/run"],
    ["PUT", "/auth/session"],
  ];
  for (const [method, path] of unknown) {
    for (const as of [NOBODY, home.live.as, home.people.owner.as]) {
      const body = method === "GET" ? undefined : {};
      const before = service.allRows(home);
      const reply = await service.send(method, path, body, { as });
      expect([method, path, reply.status, reply.code]).toEqual([method, path, 404, "route_not_found"]);
      expect(service.allRows(home)).toEqual(before);
    }
  }
});

test("a read that other work of the database stays in the way of is 429; what may have written is not", async () => {
  const { store } = service.ctx;
  const { read } = store;
  const { id } = await service.opened(home);
  const as = home.live.as;
  Object.assign(store, { read: () => Promise.reject(new ContendedFault("in the way")) });
  const reply = await service.get(`/v1/warrants/${id}`, { as });
  const written = await service.post(`/v1/warrants/${id}/verify`, { source_url: source.gives("{}") }, { as });
  Object.assign(store, { read });
  expect([reply.status, reply.code, reply.headers.get("retry-after")]).toEqual([
    ...[429, "rate_limit_exceeded", "1"],
  ]);
  expect(reply.body.error.message).toContain("Retry shortly");
  expect([written.status, written.code]).toEqual([500, "internal_error"]);
});
