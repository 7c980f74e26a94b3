import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { isRefusal } from "../../src/core/errors.ts";
import { createBackTests } from "../../src/services/console/back-test.ts";
import { type Fields, openConsole } from "../support/console.ts";
import type { TestOrganisation } from "../support/organisations.ts";
import { setThreshold } from "../support/passkeys.ts";
import { type Service, startTestServer } from "../support/server.ts";
import { type Source, startSource } from "../support/source.ts";

/** The console's pages of policies: what there is, a draft that is judged and back-tested, and a new version of it. */

let service: Service;
let source: Source;
beforeAll(async () => {
  [source, service] = [startSource(), await startTestServer()];
});
afterAll(async () => {
  await service?.close();
  source?.stop();
});

const TRY = "/console/policies/try";
const NEW = "/console/policies/new";
const as = (home: TestOrganisation, role: "viewer" | "operator" | "admin" | "owner") =>
  openConsole(service, home.people[role].as);

/** The fields of a draft with these bands: from score, outcome, share in per cent, label. */
const bandFields = (...bands: readonly (readonly [string, string, string?, string?])[]): Fields =>
  Object.fromEntries(
    bands.flatMap(([minScore, outcome, share = "", label = ""], at) =>
      Object.entries({ minScore, outcome, share, label }).map(([name, value]) => [
        `bands.${at}.${name}`,
        value,
      ]),
    ),
  );
const STRICT = bandFields(["1", "release"], ["0", "refund"]);

/** What Chromium would send of the draft's form, with other bands. */
async function draft(home: TestOrganisation, fields: Fields, role: "admin" | "owner" = "admin") {
  const { _key = "", _mode = "" } = await as(home, role).formOn(NEW, TRY);
  return { _key, _mode, ...fields };
}
const judge = async (home: TestOrganisation, fields: Fields) =>
  as(home, "admin").post(TRY, await draft(home, fields));

/** Two clauses, of which `met` are met. */
async function checked(home: TestOrganisation, met: 0 | 1 | 2, body: object = {}) {
  const clauses = [1, 2].map((equals) => ({ kind: "json.jsonpath", path: `$.a${equals}`, equals }));
  const { id } = await service.opened(home, { amount: "4000000", spec: { clauses }, ...body });
  const given = { a1: met > 0 ? 1 : 0, a2: met > 1 ? 2 : 0 };
  const reply = await service.post(
    `/v1/warrants/${id}/verify`,
    { source_url: source.gives(given) },
    { as: home.live.as },
  );
  expect(reply.status).toBe(200);
  return id as string;
}

describe("the list", () => {
  test("says what decides where nothing is saved, and what to do", async () => {
    const home = await service.organisation(0n);
    const { text } = await as(home, "viewer").get("/console/policies");
    expect(text).toContain("gets the rules that are built in");
    expect(text).toContain("No policy is saved yet");
    expect(text).not.toContain("Draft");
    expect((await as(home, "admin").get("/console/policies")).text).toContain("Draft the first one");
  });

  test("shows the newest version of each name, which is in use, and goes on by pages", async () => {
    const home = await service.organisation(0n);
    const floor = { bands: [{ minScore: 0, outcome: "escalate" }] };
    for (let at = 0; at < 26; at++) await home.addPolicy(floor, { name: `p${String(at).padStart(2, "0")}` });
    await home.addPolicy(floor, { name: "p03" });
    await home.addPolicy(floor, { name: "p03", agent_id: home.live.id });
    const viewer = as(home, "viewer");
    const first = await viewer.get("/console/policies");
    expect(first.text).toMatch(/p02 The organisation When named 1/);
    expect(first.text).toMatch(/p03 The organisation In use 2/);
    expect(first.text).toMatch(/p03 agent-\d+ live In use 1/);
    expect(first.text).not.toContain("p25");
    const [, next = ""] = /href="(\/console\/policies\?after=[^"]+)"/.exec(first.html) ?? [];
    const { text } = await viewer.get(next);
    expect(text).toContain("p24");
    expect(text).toContain("p25");
    expect(text).not.toContain("p02");
  });

  test("shows nothing of another organisation", async () => {
    const [home, other] = [await service.organisation(0n), await service.organisation(0n)];
    const { id } = await other.addPolicy(
      { bands: [{ minScore: 0, outcome: "escalate" }] },
      { name: "theirs" },
    );
    expect((await as(home, "owner").get("/console/policies")).text).not.toContain("theirs");
    expect((await as(home, "owner").get(`/console/policies/${id}`)).status).toBe(404);
    expect((await as(home, "owner").get(`${NEW}?from=${id}`)).status).toBe(404);
  });
});

describe("a draft", () => {
  const PROBLEMS: readonly (readonly [code: string, fields: Fields, field: string, says: string])[] = [
    ["policy_no_bands", {}, "bands", "a policy needs at least one band"],
    ["policy_no_floor_band", bandFields(["0.5", "release"]), "bands", "one band must have minScore 0"],
    [
      "policy_band_out_of_range",
      bandFields(["0", "refund"], ["1.5", "release"]),
      "bands.1.minScore",
      "must be a number from 0 to 1",
    ],
    [
      "policy_band_out_of_range",
      bandFields(["0", "refund"], ["half", "release"]),
      "bands.1.minScore",
      "must be a number from 0 to 1",
    ],
    [
      "policy_band_bps_required",
      bandFields(["0", "partial_release", ""]),
      "bands.0.share",
      "must be more than 0 % and less than 100 %",
    ],
    [
      "policy_band_bps_required",
      bandFields(["0", "partial_release", "100"]),
      "bands.0.share",
      "must be more than 0 % and less than 100 %",
    ],
  ];
  test.each(PROBLEMS)("%s is said beside its field", async (code, fields, field, says) => {
    const home = await service.organisation(0n);
    const page = await judge(home, fields);
    expect(page.status).toBe(400);
    const problem = new RegExp(`id="${field.replaceAll(".", "\\.")}-problem">([^<]*)<a[^>]*#${code}"`).exec(
      page.html,
    );
    expect(problem?.[1]).toContain(says);
    expect(page.text).toContain("The draft is drawn once its rules are right.");
    // The same form, sent to be saved, is refused for the same reason, and saves nothing.
    const sent = { ...(await draft(home, fields)), name: "p" };
    const saved = await as(home, "admin").post("/console/policies", sent);
    expect([saved.status, saved.html.includes(`#${code}"`)]).toEqual([400, true]);
    expect(service.ctx.reader.policies.list(home.id)).toEqual([]);
  });

  test("is drawn on a line from 0 to 1, beside what decides today", async () => {
    const home = await service.organisation(0n);
    const { html, text } = await judge(
      home,
      bandFields(["1", "release"], ["0.5", "partial_release", "12.5", "half"], ["0", "escalate"]),
    );
    expect(html).toContain(
      'aria-label="What each score leads to in the draft. 0 to below 0.5: Escalate; 0.5 to below 1: Release 12.5 %; 1: Release"',
    );
    expect(text).toContain("Beside the built-in rules");
    expect(text).toContain("Score 0.5 to below 1 Escalate → Release 12.5 % half");
  });

  test("gets a band more, or one less, and keeps what was written", async () => {
    const home = await service.organisation(0n);
    const more = await judge(home, { ...STRICT, name: "mine", do: "add" });
    expect(more.html).toContain('name="bands.2.minScore"');
    expect(more.html).toContain('value="mine"');
    const less = await judge(home, { ...STRICT, do: "remove.0" });
    expect(less.html).not.toContain('name="bands.1.minScore"');
    expect(less.html).toMatch(/name="bands\.0\.minScore"[^>]* value="0"/);
  });

  test("changes nothing, however often it is sent", async () => {
    const home = await service.organisation(0n);
    const fields = await draft(home, { ...STRICT, name: "p" });
    const before = service.allRows(home);
    for (const name of ["p", "q", "p"])
      expect((await as(home, "admin").post(TRY, { ...fields, name })).status).toBe(200);
    expect(service.allRows(home)).toEqual(before);
  });
});

describe("saving", () => {
  test("makes a version, and the next one, and never edits", async () => {
    const home = await service.organisation(0n);
    const admin = as(home, "admin");
    const fields = { ...STRICT, name: "standard", max_amount: "50.00", "always.data_stale": "refund" };
    const first = await admin.post("/console/policies", await draft(home, fields));
    expect(first.status).toBe(303);
    const page = await admin.get(first.to!);
    expect(page.text).toContain("standard Version 1");
    expect(page.text).toContain("Version 1 is saved.");
    expect(page.text).toContain("Largest warrant 50.00 USDC");
    const [id = ""] = /pol_[0-9A-Z]+/.exec(first.to!) ?? [];
    const next = await admin.get(`${NEW}?from=${id}`);
    expect(next.text).toContain("It is the next version, 2.");
    expect(next.text).toContain("Both decide everything alike.");
    // What the editor shows of a saved version is that version.
    const shown = await admin.formOn(`${NEW}?from=${id}`, TRY);
    expect(shown["bands.0.minScore"]).toBe("1");
    expect(shown.max_amount).toBe("50");
    const second = await admin.post(
      "/console/policies",
      await draft(home, { ...fields, ...bandFields(["1", "release"], ["0", "escalate"]), base: id }),
    );
    const { policies, auditEntries } = service.ctx.reader;
    expect(policies.list(home.id).map(({ version, rules }) => [version, rules])).toEqual([
      [2, expect.anything()],
      [
        1,
        {
          bands: [
            { minScore: 1, outcome: "release" },
            { minScore: 0, outcome: "refund" },
          ],
          maxAmount: "50000000",
          alwaysRefund: ["data_stale"],
        },
      ],
    ]);
    // The audit log names the person.
    const entry = auditEntries.list(home.id, null, 20).find(({ subject }) => subject === id);
    expect([entry?.action, entry?.actor]).toEqual([
      "policy.created",
      { kind: "user", id: home.people.admin.id },
    ]);
    const compared = await as(home, "viewer").get(`${second.to!.split("?")[0]}?with=${id}`);
    expect(compared.text).toContain("Version 1 beside version 2");
    expect(compared.text).toContain("Score 0 to below 1 Refund → Escalate");
  });

  test("for an agent attaches it there, and the organisation's stays", async () => {
    const home = await service.organisation(0n);
    const { id } = await home.addPolicy({ bands: [{ minScore: 0, outcome: "refund" }] }, { name: "all" });
    const admin = as(home, "admin");
    const shown = await admin.get(`${NEW}?from=${id}&agent=${home.live.id}`);
    expect(shown.html).toContain(`<option value="${home.live.id}" selected`);
    expect(shown.text).toContain("It is a new policy.");
    const fields = { ...bandFields(["0", "refund"]), name: "all", agent_id: home.live.id, base: id };
    const { to } = await admin.post("/console/policies", await draft(home, fields));
    const { text } = await admin.get(to!);
    expect(text).toMatch(/all Version 1 In use Of agent-\d+ live/);
    expect((await admin.get(`/console/policies/${id}`)).text).toContain(
      "of every agent without a policy of its own",
    );
  });

  test("is refused beside the name where it has none, and for an agent of the other mode", async () => {
    const home = await service.organisation(0n);
    const admin = as(home, "admin");
    const nameless = await admin.post("/console/policies", await draft(home, { ...STRICT, name: " " }));
    expect([nameless.status, nameless.text]).toEqual([
      400,
      expect.stringContaining("must be a string of 1 to 200 characters"),
    ]);
    const elsewhere = { ...STRICT, name: "p", agent_id: home.sandbox.id };
    expect((await admin.post("/console/policies", await draft(home, elsewhere))).status).toBe(404);
    expect(service.ctx.reader.policies.list(home.id)).toEqual([]);
  });

  test("a draft with the same text in all fields comes back as it was saved", async () => {
    const home = await service.organisation(0n);
    const rules = {
      bands: [
        { minScore: 0, outcome: "escalate" },
        { minScore: 0.333333, outcome: "partial_release", releasedBps: 1, label: "a little" },
        { minScore: 1, outcome: "release" },
      ],
      maxAmount: "8400001",
      alwaysEscalate: ["source_timeout"],
    };
    const { id } = await home.addPolicy(rules, { name: "p" });
    const admin = as(home, "admin");
    const { html } = await admin.get(`${NEW}?from=${id}`);
    expect(html).toMatch(/name="bands\.1\.minScore"[^>]* value="0.333333"/);
    expect(html).toMatch(/name="bands\.1\.share"[^>]* value="0.01"/);
    expect(html).toContain('value="8.400001"');
    expect(html).toMatch(
      /name="always\.source_timeout"><option value="">[^<]*<\/option><option value="escalate" selected/,
    );
  });
});

describe("a back-test", () => {
  test("says how many checks would flip, what is released, and each of them", async () => {
    const home = await service.organisation(100_000_000n);
    const half = await checked(home, 1, { payee: "Ada & Co" });
    await checked(home, 2);
    const none = await checked(home, 0, { amount: "1000000" });
    const unchecked = await service.opened(home);
    await service.post(`/v1/warrants/${unchecked.id}/refund`, {}, { as: home.people.owner.as });
    const fields = bandFields(["1", "release"], ["0.5", "partial_release", "25"], ["0", "refund"]);
    const rows = () => {
      const { warrants, checks, postings, policies, audit_entries } = service.allRows(home);
      return { warrants, checks, postings, policies, audit_entries };
    };
    const before = rows();
    const { status, html, text } = await judge(home, { ...fields, do: "test" });
    expect(status).toBe(200);
    expect(text).toContain("2 of 3 checks would flip, +1.00 USDC released");
    expect(text).toContain("All checks of live.");
    expect(text).toContain("Ada &amp; Co 4.00 USDC Escalate Release 25 % +1.00 USDC Escalated");
    expect(text).toContain("acme 1.00 USDC Escalate Refund +0.00 USDC Escalated");
    expect(html).toContain(`/console/warrants/${half}"`);
    expect(html).toContain(`/console/warrants/${none}"`);
    expect(rows()).toEqual(before);
    const stricter = await judge(home, { ...bandFields(["0", "escalate"]), do: "test" });
    expect(stricter.text).toContain("1 of 3 checks would flip, −4.00 USDC released");
  });

  test("of an agent's draft looks at that agent's warrants, and of no other mode or organisation", async () => {
    const home = await service.organisation(100_000_000n);
    await checked(home, 1);
    await checked(home, 1, { agent_id: home.live.id });
    const release = { ...bandFields(["0", "release"]), do: "test" };
    expect((await judge(home, release)).text).toContain("2 of 2 checks would flip, +8.00 USDC");
    const own = await judge(home, { ...release, agent_id: home.live.id });
    expect(own.text).toContain("1 of 1 check would flip, +4.00 USDC");
    expect(own.text).toMatch(/All checks of live, of agent-\d+/);
    const cookie = await home.signIn(home.people.admin, "sandbox");
    const sandbox = openConsole(service, cookie);
    const made = await sandbox.formOn(NEW, TRY);
    const { text } = await sandbox.post(TRY, { _key: made._key!, _mode: "sandbox", ...release });
    expect(text).toContain("No check is stored in sandbox");
  });

  test("leaves to a person what is above the passkey threshold", async () => {
    const home = await service.organisation(100_000_000n);
    await checked(home, 1);
    await setThreshold(service, home, "3999999");
    const { text } = await judge(home, { ...bandFields(["0", "release"]), do: "test" });
    expect(text).toContain("0 of 1 check would flip.");
  });

  test("looks at the newest checks only, in steps, and says so", async () => {
    const home = await service.organisation(100_000_000n);
    for (let count = 0; count < 5; count++) await checked(home, count === 1 || count === 2 ? 0 : 1);
    const caller = { ...callerOf(home), role: "admin" } as const;
    const asked = {
      rules: {
        bands: [
          { minScore: 0.5, outcome: "release" },
          { minScore: 0, outcome: "escalate" },
        ],
      },
      agentId: null,
      offset: 0,
    } as const;
    const gone = new AbortController();
    for (const step of [1, 2, 3, 100]) {
      const some = await createBackTests(step, 4).run(service.ctx, caller, asked, gone.signal);
      expect(some).toMatchObject({
        looked: 4,
        isPartial: true,
        flipped: 2,
        released: new Map([["USDC", 8_000_000n]]),
      });
      const all = await createBackTests(step, 5).run(service.ctx, caller, asked, gone.signal);
      expect(all).toMatchObject({ looked: 5, flipped: 3 });
    }
    const whole = await createBackTests(2).run(service.ctx, caller, asked, gone.signal);
    expect(whole).toMatchObject({ looked: 5, isPartial: false, flipped: 3 });
    const rest = await createBackTests(2).run(service.ctx, caller, { ...asked, offset: 2 }, gone.signal);
    expect(rest).toMatchObject({ flipped: 3, flips: [expect.anything()] });
    // Who has left is not waited for.
    gone.abort();
    expect(await createBackTests(1).run(service.ctx, caller, asked, gone.signal)).toMatchObject({
      looked: 1,
    });
  });

  test("an organisation runs few at once, and leaves places to others", async () => {
    const [home, other] = [await service.organisation(0n), await service.organisation(0n)];
    const backTests = createBackTests();
    const asked = {
      rules: { bands: [{ minScore: 0, outcome: "refund" }] },
      agentId: null,
      offset: 0,
    } as const;
    const { signal } = new AbortController();
    const run = (of: TestOrganisation) =>
      backTests.run(service.ctx, { ...callerOf(of), role: "admin" }, asked, signal);
    const all = await Promise.all([...Array.from({ length: 9 }, () => run(home)), run(other)]);
    const refused = all.filter(isRefusal);
    expect(refused.length).toBeGreaterThan(0);
    expect(isRefusal(all[9])).toBe(false);
    expect(refused[0]).toMatchObject({ refused: "rate_limit_exceeded" });
    expect(isRefusal(await run(home))).toBe(false);
  });

  const callerOf = (home: TestOrganisation) =>
    ({
      kind: "person",
      userId: home.people.admin.id,
      organisationId: home.id,
      mode: "live",
      signInHash: "",
      owesPasskey: false,
    }) as const;
});

test("a viewer and an operator read every page of policies, and draft none", async () => {
  const home = await service.organisation(0n);
  const { id } = await home.addPolicy({ bands: [{ minScore: 0, outcome: "refund" }] });
  for (const role of ["viewer", "operator"] as const) {
    const { status, text } = await as(home, role).get(`/console/policies/${id}`);
    expect(status).toBe(200);
    expect(text).not.toContain("Draft");
  }
});
