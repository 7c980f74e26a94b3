import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { sweepDeadlines } from "../../src/jobs/deadlines.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { setKillSwitch } from "../../src/services/admin/switches.ts";
import { noFault } from "../support/no-fault.ts";
import { must, type TestOrganisation } from "../support/organisations.ts";
import { type ShellService, startTestShell } from "../support/server.ts";

/** While an organisation's kill switch is on, no warrant opens; those that are open go on (docs/people, "The kill switch"). */

let service: ShellService;
let home: TestOrganisation;
beforeAll(() => {
  service = startTestShell();
});
afterAll(() => service?.close());
beforeEach(async () => {
  home = await service.organisation();
});

const turn = async (on: boolean) =>
  must(await setKillSwitch(service.ctx, MACHINE, { organisation_id: home.id, on }));
const stateOf = (id: string) => service.ctx.reader.warrants.find(id)?.state;

test("nobody opens a warrant, in either mode, with any key or role; other organisations do", async () => {
  const other = await service.organisation();
  await turn(true);
  const { live, sandbox, people } = home;
  for (const [body, as] of [
    [{}, live.as],
    [{ agent_id: live.id }, live.as],
    [{}, sandbox.as],
    [{}, people.operator.as],
    [{}, people.owner.as],
    [{}, await home.signIn(people.owner, "sandbox")],
  ] as const) {
    await service.refuses(home, [403, "kill_switch_active"], () =>
      service.post("/v1/warrants", service.body(body), { as, key: "kept" }),
    );
  }
  await service.opened(other);
  expect(service.balance(home)).toEqual({ available: 1_000_000n, held: 0n, paid: 0n });

  // The refusal used up no key: the same request opens when the switch is off again.
  await turn(false);
  await service.opened(home, {}, { as: live.as, key: "kept" });
});

test("warrants that are open go on: they are verified, settled, decided, expire, and are replayed", async () => {
  const { live, people } = home;
  const operator = people.operator.as;
  const source_url = "http://source.example/";
  const verify = (id: string) => service.post(`/v1/warrants/${id}/verify`, { source_url }, { as: live.as });
  const failing = { spec: { clauses: [{ kind: "http.status", equals: 500 }] } };
  const [passing, escalating, settled, late] = [
    await service.opened(home, {}, { as: live.as, key: "first" }),
    await service.opened(home, failing),
    await service.opened(home),
    await service.opened(home, { deadline: service.timeIn(1_000) }),
  ];
  await turn(true);
  expect((await verify(passing.id)).body.state).toBe("released");
  expect((await verify(escalating.id)).body.state).toBe("escalated");
  const resolved = await service.post(
    `/v1/console/escalations/${escalating.id}/resolve`,
    { decision: "partial_release", released_bps: 5_000 },
    { as: operator },
  );
  expect([resolved.status, resolved.body.warrant.state]).toEqual([200, "partially_released"]);
  const released = await service.post(`/v1/warrants/${settled.id}/release`, undefined, { as: operator });
  expect([released.status, released.body.state]).toEqual([200, "released"]);
  service.clock.now += 1_000;
  await sweepDeadlines(service.ctx, noFault);
  expect(stateOf(late.id)).toBe("expired");
  expect(service.balance(home)).toEqual({ available: 999_750n, held: 0n, paid: 250n });

  const replayed = await service.post("/v1/warrants", service.body(), { as: live.as, key: "first" });
  expect([replayed.status, replayed.body.id]).toEqual([201, passing.id]);
  expect(replayed.headers.get("idempotent-replayed")).toBe("true");
});
