import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { createKey } from "../../src/services/admin/keys.ts";
import { freshKey, type Reply } from "../support/client.ts";
import { must, type TestOrganisation } from "../support/organisations.ts";
import { type Service, type ShellService, startTestServer, startTestShell } from "../support/server.ts";
import { type Source, startSource } from "../support/source.ts";

/** docs/idempotency, "Idempotency". */

let service: Service;
let source: Source;
let home: TestOrganisation;
beforeAll(async () => {
  source = startSource();
  service = await startTestServer({ FETCH_SECONDS: "20" });
  home = await service.organisation();
});
afterAll(async () => {
  await service?.close();
  source?.stop();
});

const isReplay = (reply: Reply): boolean => reply.headers.get("idempotent-replayed") === "true";

/** The second answer must be the first byte for byte, say that it is a replay, and move nothing. */
async function replays(send: () => Promise<Reply>): Promise<Reply> {
  const first = await send();
  expect([first.code, isReplay(first)]).toEqual([null, false]);
  const allRows = service.allRows(home);
  for (const again of [await send(), await send()]) {
    expect([again.status, again.text, isReplay(again)]).toEqual([first.status, first.text, true]);
    expect(again.headers.get("etag")).toBe(first.headers.get("etag"));
  }
  expect(service.allRows(home)).toEqual(allRows);
  return first;
}

describe("the same key and request give the original answer, once more and no second time", () => {
  const post = (path: string, body: unknown, as: object, key = freshKey()) =>
    replays(() => service.post(path, body, { as: { ...as }, key }));

  test("open", async () => {
    const before = service.balance(home);
    const opened = await post("/v1/warrants", service.body(), home.live.as);
    expect(opened.status).toBe(201);
    expect(service.balance(home).held - before.held).toBe(100n);
  });

  test("verify: the source is asked once", async () => {
    const { id } = await service.opened(home);
    const source_url = source.gives("{}");
    const verified = await post(`/v1/warrants/${id}/verify`, { source_url }, home.live.as);
    expect(verified.body.state).toBe("released");
    expect(source.asked.filter((path) => source_url.endsWith(path))).toHaveLength(1);
  });

  test("release, partial and refund", async () => {
    const { as } = home.people.operator;
    for (const [verb, body, state] of [
      ["release", undefined, "released"],
      ["partial", { released_bps: 2_500 }, "partially_released"],
      ["refund", {}, "refunded"],
    ] as const) {
      const { id } = await service.opened(home);
      const settled = await post(`/v1/warrants/${id}/${verb}`, body, as);
      expect([settled.status, settled.body.state]).toEqual([200, state]);
    }
  });

  test("resolve", async () => {
    const { id } = await service.opened(home);
    const source_url = source.gives("no", { status: 500 });
    const verified = await service.post(`/v1/warrants/${id}/verify`, { source_url }, { as: home.live.as });
    expect(verified.body.state).toBe("escalated");
    const decision = { decision: "refund", note: "late" };
    const resolved = await post(`/v1/console/escalations/${id}/resolve`, decision, home.people.operator.as);
    expect([resolved.status, resolved.body.warrant.state]).toEqual([200, "refunded"]);
  });

  test("whatever the order of the fields and the blanks between them", async () => {
    const key = freshKey();
    const body = service.body();
    const reversed = `  ${JSON.stringify(Object.fromEntries(Object.entries(body).reverse()), null, 4)}\n`;
    let sent: unknown = body;
    await replays(async () => {
      const reply = await service.post("/v1/warrants", sent, { as: home.live.as, key });
      sent = reversed;
      return reply;
    });
  });

  test("for the agent whose request it was, with any of its API keys, and for nobody else", async () => {
    const key = freshKey();
    const body = service.body();
    const other = await home.addAgent();
    const { secret } = must(await createKey(service.ctx, MACHINE, { agent_id: home.live.id }));
    const first = await service.post("/v1/warrants", body, { as: home.live.as, key });
    const again = await service.post("/v1/warrants", body, {
      as: { authorization: `Bearer ${secret}` },
      key,
    });
    expect([again.text, isReplay(again)]).toEqual([first.text, true]);
    for (const as of [other.as, home.people.operator.as])
      await service.refuses(home, [409, "idempotency_key_reused"], () =>
        service.post("/v1/warrants", body, { as, key }),
      );
  });
});

test("a replay comes also when the deadline has passed, and the warrant has moved on", async () => {
  const shell: ShellService = startTestShell();
  try {
    const organisation = await shell.organisation();
    const { as } = organisation.live;
    const key = freshKey();
    const body = shell.body();
    const first = await shell.post("/v1/warrants", body, { as, key });
    shell.clock.now += 2 * 3_600_000;
    await shell.refuses(organisation, [400, "deadline_in_past"], () =>
      shell.post("/v1/warrants", body, { as }),
    );
    const late = await shell.post(
      `/v1/warrants/${first.body.id}/verify`,
      { source_url: "http://a.example/" },
      { as },
    );
    expect(late.code).toBe("illegal_transition");
    const again = await shell.post("/v1/warrants", body, { as, key });
    expect([again.status, again.text, isReplay(again)]).toEqual([201, first.text, true]);
    expect(again.body.state).toBe("held");
    // Years later the key still counts, as long as it is remembered.
    expect(shell.balance(organisation)).toEqual({ available: 1_000_000n, held: 0n, paid: 0n });
  } finally {
    await shell.close();
  }
});

test("the same key with another request is refused: another body, another path, another verb", async () => {
  const key = freshKey();
  const { as } = home.people.operator;
  const { id } = await service.opened(home, {}, { as, key });
  const other = await service.opened(home);
  const sent: readonly [path: string, body: unknown][] = [
    ["/v1/warrants", service.body({ amount: "101" })],
    ["/v1/warrants", service.body({ amount: "0100" })],
    ["/v1/warrants", service.body({ asset: "USDC" })],
    [`/v1/warrants/${id}/refund`, undefined],
    [`/v1/warrants/${id}/release`, {}],
    [`/v1/warrants/${other.id}/verify`, { source_url: source.gives("{}") }],
    [`/v1/console/escalations/${id}/resolve`, { decision: "refund" }],
  ];
  for (const [path, body] of sent)
    await service.refuses(home, [409, "idempotency_key_reused"], () => service.post(path, body, { as, key }));
  await service.post(`/v1/warrants/${id}/refund`, undefined, { as, key: `${key}-r` });
  await service.refuses(home, [409, "idempotency_key_reused"], () =>
    service.post(`/v1/warrants/${other.id}/refund`, undefined, { as, key: `${key}-r` }),
  );
});

test("a refusal does not bind the key: another request may use it", async () => {
  const poor = await service.organisation(50n);
  const key = freshKey();
  const { as } = poor.people.operator;
  const send = (path: string, body?: unknown) => service.post(path, body, { as, key });
  const refused: readonly [status: number, code: string, path: string, body?: unknown][] = [
    [400, "validation_failed", "/v1/warrants", {}],
    [402, "insufficient_funds", "/v1/warrants", service.body()],
    [404, "agent_not_found", "/v1/warrants", service.body({ agent_id: "agt_none" })],
    [404, "warrant_not_found", "/v1/warrants/wrt_none/refund"],
    [404, "escalation_not_found", "/v1/console/escalations/esc_none/resolve", { decision: "refund" }],
  ];
  for (const [status, code, path, body] of refused)
    await service.refuses(poor, [status, code], () => send(path, body));
  expect((await send("/v1/warrants", service.body({ amount: "50" }))).status).toBe(201);
});

test("keys are of one organisation and one mode", async () => {
  const other = await service.organisation();
  const key = freshKey();
  const body = service.body();
  const ids = new Set<string>();
  for (const as of [home.live.as, home.sandbox.as, other.live.as, other.sandbox.as]) {
    const reply = await service.post("/v1/warrants", body, { as, key });
    expect([reply.status, isReplay(reply)]).toEqual([201, false]);
    ids.add(reply.body.id);
  }
  expect(ids.size).toBe(4);
});

test("while a verify runs its key is in flight; then it replays", async () => {
  const { id } = await service.opened(home);
  const held = source.holds();
  const key = freshKey();
  const send = (source_url = held.url) =>
    service.post(`/v1/warrants/${id}/verify`, { source_url }, { as: home.live.as, key });
  const running = send();
  await held.arrived;
  const { as } = home.live;
  await service.refuses(home, [409, "idempotency_in_flight"], send);
  await service.refuses(home, [409, "idempotency_key_reused"], () => send(source.gives("{}")));
  await service.refuses(home, [409, "idempotency_key_reused"], () =>
    service.post("/v1/warrants", service.body(), { as, key }),
  );
  // Another key finds the warrant in the middle of its check.
  await service.refuses(home, [409, "illegal_transition"], () =>
    service.post(`/v1/warrants/${id}/verify`, { source_url: held.url }, { as }),
  );
  expect((await service.get(`/v1/warrants/${id}`, { as })).body).toMatchObject({
    state: "verifying",
    version: 2,
  });
  held.release("{}");
  const verified = await running;
  expect([verified.status, verified.body.state, isReplay(verified)]).toEqual([200, "released", false]);
  const again = await send();
  expect([again.status, again.text, isReplay(again)]).toEqual([200, verified.text, true]);
});

test("the key of a refused verify is free; the key of a verify whose clauses failed replays the outcome", async () => {
  const { id } = await service.opened(home);
  const { as } = home.live;
  const key = freshKey();
  const source_url = source.gives("gone", { status: 410 });
  await service.refuses(home, [409, "version_conflict"], () =>
    service.post(`/v1/warrants/${id}/verify`, { source_url }, { as, key, headers: { "If-Match": '"7"' } }),
  );
  const escalated = await replays(() =>
    service.post(`/v1/warrants/${id}/verify`, { source_url }, { as, key }),
  );
  expect(escalated.body).toMatchObject({ state: "escalated", version: 3 });
});
