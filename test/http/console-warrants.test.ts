import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { createWebhook } from "../../src/services/admin/webhooks.ts";
import { forgetCapsules } from "../../src/services/checks/capsule.ts";
import { consoleOfShell, fieldsOf, openConsole } from "../support/console.ts";
import { must, type TestOrganisation } from "../support/organisations.ts";
import { setThreshold } from "../support/passkeys.ts";
import { type Service, startTestServer, startTestShell } from "../support/server.ts";
import { type Source, startSource } from "../support/source.ts";

/** The console's pages of warrants and escalations, as a browser without a script has them. */

let service: Service;
let source: Source;
let home: TestOrganisation;
beforeAll(async () => {
  [source, service] = [startSource(), await startTestServer()];
  home = await service.organisation(100_000_000n);
});
afterAll(async () => {
  await service?.close();
  source?.stop();
});

const as = (role: "viewer" | "operator" | "admin" | "owner") => openConsole(service, home.people[role].as);
const spec = { clauses: [{ kind: "json.jsonpath", path: "$.a", equals: 1 }] };

async function escalated(amount = "8400000", answer: Parameters<Source["gives"]>[0] = { a: 2 }) {
  const warrant = await service.opened(home, { amount, spec, payee: "Ada <b>" });
  const source_url = source.gives(answer);
  const checked = await service.post(
    `/v1/warrants/${warrant.id}/verify`,
    { source_url },
    { as: home.live.as },
  );
  expect(checked.body.state).toBe("escalated");
  const { body } = await service.get("/v1/console/escalations", { as: home.people.owner.as });
  return {
    warrant,
    escalation: body.data.find((one: { warrant_id: string }) => one.warrant_id === warrant.id),
  };
}
const stateOf = async (id: string) => (await service.get(`/v1/warrants/${id}`, { as: home.live.as })).body;

describe("opening", () => {
  test("a form holds the amount, and sent twice it holds it once", async () => {
    const browser = as("operator");
    const made = await browser.formOn("/console/warrants/new", "/console/warrants/new");
    const fields = {
      ...made,
      payee: "acme",
      amount: "8.40",
      deadline: "1d",
      clauses: JSON.stringify(spec.clauses),
    };
    const before = service.balance(home).held;
    const replies = await Promise.all([1, 2].map(() => browser.post("/console/warrants/new", fields)));
    expect(replies.map(({ status }) => status)).toEqual([303, 303]);
    expect(replies[0]!.to).toBe(replies[1]!.to!);
    expect(service.balance(home).held - before).toBe(8_400_000n);
    const page = await browser.get(replies[0]!.to!);
    expect(page.text).toContain("8.40 USDC Held");
    expect(page.text).toContain("The amount is held.");
    expect(page.html).toContain('title="8400000 in the smallest unit of USDC"');
  });

  test.each([
    [{ amount: "8.4000001" }, "must be an amount of USDC, such as 8.40"],
    [{ amount: "-1" }, "must be an amount of USDC, such as 8.40"],
    [{ payee: " " }, "must be 1 to 512 characters"],
    [{ payee: "a\u202eb" }, "must be 1 to 512 characters"],
    [{ deadline: "9y" }, "must be one of the list"],
    [{ clauses: "{" }, "must be JSON, such as"],
    [{ clauses: '[{"kind":"nothing"}]' }, "clauses.0.kind"],
    [{ amount: "100000" }, "available"],
  ])("with %p it is shown again, with what is wrong beside the field", async (wrong, words) => {
    const browser = as("operator");
    const made = await browser.formOn("/console/warrants/new", "/console/warrants/new");
    const right = { payee: "acme", amount: "1", deadline: "1d", clauses: JSON.stringify(spec.clauses) };
    const before = service.balance(home);
    const reply = await browser.post("/console/warrants/new", { ...made, ...right, ...wrong });
    expect(reply.status).toBeGreaterThanOrEqual(400);
    expect(reply.text).toContain(words);
    // What was written stays, and the form can be sent again.
    expect(reply.html).toContain(`value="${right.payee}"`.slice(0, "payee" in wrong ? 6 : 99));
    expect(fieldsOf(reply.html, "/console/warrants/new")._key).not.toBe(made._key!);
    expect(service.balance(home)).toEqual(before);
  });
});

describe("the list", () => {
  test("has filters in its URL, and finds by id, agent and payee", async () => {
    const warrant = await service.opened(home, { payee: "Zeno of Elea", agent_id: home.live.id });
    const viewer = as("viewer");
    for (const query of [
      `q=${warrant.id}`,
      "q=zeno",
      `q=${home.live.id}`,
      `agent=${home.live.id}`,
      "state=held",
      "sort=deadline",
    ]) {
      const { text } = await viewer.get(`/console/warrants?${query}`);
      expect([query, text.includes("Zeno of Elea")]).toEqual([query, true]);
    }
    for (const query of [
      "q=nobody-at-all",
      "state=expired",
      "agent=agt_none",
      "q=wrt_01M835XKV37R3HG0R1MES44RN8",
    ]) {
      const { text } = await viewer.get(`/console/warrants?${query}`);
      expect([query, text.includes("No warrant is like that")]).toEqual([query, true]);
    }
  });

  test("is paged in both orders, forth and back", async () => {
    const { people, live, ...rest } = await service.organisation();
    for (let i = 0; i < 60; i++) await service.opened({ people, live, ...rest }, { payee: `payee-${i}.` });
    const browser = openConsole(service, people.viewer.as);
    const payees = (html: string) => [...html.matchAll(/payee-(\d+)\./g)].map(([, number]) => Number(number));
    const link = (html: string, rel: string) =>
      new RegExp(`href="([^"]+)" rel="${rel}"`).exec(html)?.[1]?.replaceAll("&amp;", "&") ?? null;
    for (const start of [
      "/console/warrants",
      "/console/warrants?sort=deadline",
      "/console/warrants?q=payee",
    ]) {
      const seen: number[] = [];
      let path: string | null = start;
      let last = "";
      while (path !== null) {
        const { html } = await browser.get(path);
        seen.push(...payees(html));
        [last, path] = [html, link(html, "next")];
      }
      expect([start, seen.length, new Set(seen).size]).toEqual([start, 60, 60]);
      if (start.includes("?q")) continue;
      const { html } = await browser.get(link(last, "prev")!);
      expect(payees(html)).toEqual(seen.slice(25, 50));
    }
  });

  test("of nothing says what to do next, and offers it to those who may", async () => {
    const { people } = await service.organisation();
    const operator = await openConsole(service, people.operator.as).get("/console/warrants");
    expect(operator.html).toContain('href="/console/warrants/new"');
    const viewer = await openConsole(service, people.viewer.as).get("/console/warrants");
    expect(viewer.text).toContain("No warrants yet");
    expect(viewer.html).not.toContain('href="/console/warrants/new"');
  });
});

describe("one warrant", () => {
  test("shows what was promised, seen and decided, and by whom", async () => {
    const { warrant } = await escalated();
    const { text, html } = await as("viewer").get(`/console/warrants/${warrant.id}`);
    for (const words of [
      "8.40 USDC",
      "Escalated",
      "json.jsonpath",
      "value mismatch",
      "The built-in policy",
      "Verifying by",
    ])
      expect([words, text.includes(words)]).toEqual([words, true]);
    expect(html).toContain("Ada &lt;b&gt;");
    expect(html).not.toContain("Ada <b>");
  });

  test("is checked by a form, and its receipt is linked then", async () => {
    const { id } = await service.opened(home, { spec, amount: "5000000" });
    const browser = as("operator");
    const fields = await browser.formOn(`/console/warrants/${id}`, `/console/warrants/${id}/verify`);
    const wrong = await browser.post(`/console/warrants/${id}/verify`, { ...fields, source_url: "ftp://x" });
    expect([wrong.status, wrong.text]).toEqual([
      400,
      expect.stringContaining("must be an http or https URL"),
    ]);
    expect(wrong.text).not.toContain("source_url:");
    const reply = await browser.post(`/console/warrants/${id}/verify`, {
      ...fields,
      source_url: source.gives({ a: 1 }),
    });
    expect([reply.status, reply.to]).toEqual([303, `/console/warrants/${id}?done=verified`]);
    expect((await browser.get(reply.to!)).html).toContain(`href="/t/${id}"`);
    expect((await stateOf(id)).state).toBe("released");
  });

  test("shows admins its deliveries, with their endpoints, and not those of others at the same time", async () => {
    const shell = startTestShell();
    const own = await shell.organisation();
    const hook = { organisation_id: own.id, mode: "live", events: [] } as const;
    must(await createWebhook(shell.ctx, MACHINE, { ...hook, url: "http://127.0.0.1:9/mine" }));
    const [{ id }] = [await shell.opened(own), await shell.opened(own)];
    const shownTo = async (role: "admin" | "operator") =>
      (await consoleOfShell(shell)(own.people[role].as).get(`/console/warrants/${id}`)).html;
    const html = await shownTo("admin");
    const links = [...html.matchAll(/href="\/console\/deliveries\/(whd_\w+)">([\w.]+)/g)];
    expect(links.map(([, , event]) => event)).toEqual(["warrant.opened"]);
    expect(html).toContain("http://127.0.0.1:9/mine");
    const made = shell.ctx.reader.deliveries.list({ organisationId: own.id, mode: "live" }, 10);
    expect(made.map(({ createdAt }) => createdAt)).toEqual([shell.clock.now, shell.clock.now]);
    expect(made.find(({ warrantId }) => warrantId === id)?.id).toBe(links[0]?.[1]);
    expect(await shownTo("operator")).not.toContain("whd_");
    await shell.close();
  });

  test("of another organisation, or of the other mode, is not there", async () => {
    const stranger = await service.organisation();
    const { id } = await service.opened(home, { spec });
    const path = `/console/warrants/${id}`;
    expect((await openConsole(service, stranger.people.owner.as).get(path)).status).toBe(404);
    const sandbox = openConsole(service, await home.signIn(home.people.owner, "sandbox"));
    const reply = await sandbox.get(path);
    expect([reply.status, reply.text]).toEqual([404, expect.stringContaining(`has ${id} in live`)]);
  });
});

describe("settling", () => {
  test.each([
    ["release", {}, "released", 8_400_000n, "Release 8.40 USDC?"],
    ["partial_release", { share: "25" }, "partially_released", 2_100_000n, "Release a part of 8.40 USDC?"],
    ["refund", {}, "refunded", 0n, "Refund 8.40 USDC?"],
  ])("%s says what will happen, and does it once", async (decision, input, state, paid, title) => {
    const { id } = await service.opened(home, { amount: "8400000", spec });
    const browser = as("operator");
    const path = `/console/warrants/${id}/settle/${decision}`;
    expect((await browser.get(path)).text).toContain(title);
    const fields = { ...(await browser.formOn(path, path)), ...input };
    const before = service.balance(home).paid;
    for (const _ of [1, 2]) {
      const reply = await browser.post(path, fields);
      expect([reply.status, reply.to]).toEqual([303, `/console/warrants/${id}?done=settled`]);
    }
    expect((await stateOf(id)).state).toBe(state);
    expect(service.balance(home).paid - before).toBe(paid);
  });

  test.each(["0", "100", "33.333", "x", ""])("a share of %p is refused beside its field", async (share) => {
    const { id } = await service.opened(home, { spec });
    const path = `/console/warrants/${id}/settle/partial_release`;
    const browser = as("operator");
    const reply = await browser.post(path, { ...(await browser.formOn(path, path)), share });
    expect([reply.status, reply.text]).toEqual([400, expect.stringContaining("must be more than 0 %")]);
    expect((await stateOf(id)).state).toBe("held");
  });

  test("what somebody else moved meanwhile is not settled by what one saw before", async () => {
    const { warrant, escalation } = await escalated();
    const browser = as("operator");
    const path = `/console/escalations/${escalation.id}`;
    const fields = await browser.formOn(path, path);
    const dispute = { decision: "dispute" };
    await service.post(`/v1/console/escalations/${escalation.id}/resolve`, dispute, {
      as: home.people.admin.as,
    });
    const reply = await browser.post(path, { ...fields, decision: "release" });
    expect([reply.status, reply.text]).toEqual([409, expect.stringContaining("is at version 4, not 3")]);
    expect((await stateOf(warrant.id)).state).toBe("disputed");
  });

  test("a form without the version that it shows does nothing", async () => {
    const { id } = await service.opened(home, { spec });
    const path = `/console/warrants/${id}/settle/release`;
    const { version: _, ...fields } = await as("operator").formOn(path, path);
    expect((await as("operator").post(path, fields)).status).toBe(400);
    expect((await stateOf(id)).state).toBe("held");
  });

  test("above the threshold the page asks for a passkey, and without one nothing moves", async () => {
    const { id } = await service.opened(home, { amount: "9000000", spec });
    await setThreshold(service, home, "1000000");
    try {
      const path = `/console/warrants/${id}/settle/release`;
      const page = await as("operator").get(path);
      expect(page.html).toContain("data-signed");
      const reply = await as("operator").post(path, fieldsOf(page.html, path));
      expect([reply.status, reply.text]).toEqual([403, expect.stringContaining("passkey")]);
      expect((await stateOf(id)).state).toBe("held");
    } finally {
      await setThreshold(service, home, null);
    }
  });
});

describe("the inbox", () => {
  test("shows the one that waits longest, why, and what each choice does to the money", async () => {
    const { escalation } = await escalated();
    const { text } = await as("operator").get(`/console/escalations/${escalation.id}`);
    for (const words of [
      "value mismatch",
      "8.40 USDC is paid to",
      "8.40 USDC returns to available",
      "8.40 USDC stays held",
    ])
      expect([words, text.includes(words)]).toEqual([words, true]);
    expect((await as("viewer").get("/console/escalations")).text).toContain(
      "An operator, admin or owner decides this one.",
    );
  });

  test.each([
    ["release", {}, "released"],
    ["partial_release", { share: "12.5" }, "partially_released"],
    ["refund", {}, "refunded"],
    ["dispute", {}, "disputed"],
  ])("%s is decided by a form, with its note", async (decision, input, state) => {
    const { warrant, escalation } = await escalated();
    const browser = as("operator");
    const path = `/console/escalations/${escalation.id}`;
    const fields = { ...(await browser.formOn(path, path)), ...input, decision, note: "seen by\r\nAda" };
    expect((await browser.post(path, fields)).to).toBe("/console/escalations?done=decided");
    expect((await stateOf(warrant.id)).state).toBe(state);
    const { body } = await service.get("/v1/console/escalations", { as: home.people.owner.as });
    const decided = body.data.find(({ id }: { id: string }) => id === escalation.id);
    expect([decided.note, decided.released_bps]).toEqual([
      "seen by Ada",
      decision === "partial_release" ? 1250 : null,
    ]);
  });

  test("a dispute is decided by another person from admin up", async () => {
    const { escalation } = await escalated();
    const path = `/console/escalations/${escalation.id}`;
    const fields = await as("admin").formOn(path, path);
    await as("admin").post(path, { ...fields, decision: "dispute" });
    const words = "An admin or owner who did not raise the dispute decides this one.";
    expect((await as("admin").get(path)).text).toContain(words);
    expect((await as("operator").get(path)).text).toContain(words);
    const second = await as("owner").formOn(path, path);
    expect((await as("owner").post(path, { ...second, decision: "refund" })).status).toBe(303);
  });

  test("nothing chosen is said, and a note with hidden characters is refused beside its field", async () => {
    const { escalation } = await escalated();
    const path = `/console/escalations/${escalation.id}`;
    const fields = await as("operator").formOn(path, path);
    const nothing = await as("operator").post(path, fields);
    expect([nothing.status, nothing.text]).toEqual([
      400,
      expect.stringContaining("choose what happens to the money"),
    ]);
    const hidden = await as("operator").post(path, { ...fields, decision: "refund", note: "a\u202eb" });
    expect([hidden.status, hidden.text]).toEqual([400, expect.stringContaining("at most 2000 characters")]);
  });

  const bodyShownTo = async (role: Parameters<typeof as>[0], id: string): Promise<string> => {
    const { html, text } = await as(role).get(`/console/escalations/${id}`);
    return html.includes("The body of the answer") ? (text.split("The body of the answer")[1] ?? "") : "";
  };

  test.each([
    ["text", '{"a":2,"report":"<b>Half \u202eof it</b>"}', "&lt;b&gt;Half \\u202eof it&lt;/b&gt;"],
    ["no text", new Uint8Array([0xff, 0xfe, 0xfd]), "It has 3 bytes, and is no text."],
    ["long", JSON.stringify({ a: 2, report: "x".repeat(300_000) }), "bytes, more than is shown here."],
  ] as const)("shows who may decide the body of the answer: %s", async (_, answer, shown) => {
    const { escalation } = await escalated("1000000", answer);
    for (const role of ["operator", "owner"] as const)
      expect(await bodyShownTo(role, escalation.id)).toContain(shown);
    expect(await bodyShownTo("viewer", escalation.id)).toBe("");
  });

  test("shows no body where none came, and says where it is not kept any more", async () => {
    const empty = await escalated("1000000", "");
    expect(await bodyShownTo("operator", empty.escalation.id)).toBe("");
    const { escalation } = await escalated("1000000");
    expect(await bodyShownTo("operator", escalation.id)).toContain("{&quot;a&quot;:2}");
    while ((await forgetCapsules(service.ctx, Number.MAX_SAFE_INTEGER)) > 0);
    expect(await bodyShownTo("operator", escalation.id)).toContain("It is not kept any more.");
  });

  test("has pages, which lead through all that wait, and back", async () => {
    const own = await service.organisation(100_000_000n);
    const source_url = source.gives({ a: 2 });
    for (let count = 0; count < 27; count++) {
      const { id } = await service.opened(own, { spec });
      await service.post(`/v1/warrants/${id}/verify`, { source_url }, { as: own.live.as });
    }
    const browser = openConsole(service, own.people.operator.as);
    const { body } = await service.get("/v1/console/escalations", { as: own.people.operator.as });
    const all: string[] = body.data.map(({ id }: { id: string }) => id);
    const listed = (html: string) =>
      [...html.matchAll(/href="\/console\/escalations\/(esc_\w+)/g)].map(([, id]) => id);
    const first = await browser.get("/console/escalations");
    expect(listed(first.html)).toEqual(all.slice(0, 25));
    const next = /href="([^"]+)" rel="next"/.exec(first.html)?.[1] ?? "";
    const second = await browser.get(next);
    expect(listed(second.html)).toEqual(all.slice(25));
    expect([
      second.html.includes('rel="next"'),
      second.html.includes('href="/console/escalations" rel="prev"'),
    ]).toEqual([false, true]);
    // One of them is shown with its own page of the list.
    const [link = ""] = new RegExp(`/console/escalations/${all[26]}[^"]*`).exec(second.html) ?? [];
    expect(listed((await browser.get(link)).html)).toEqual(all.slice(25));
    const elsewhere = await browser.get("/console/escalations?after=nothing");
    expect(listed(elsewhere.html)).toEqual(all.slice(0, 25));
  });

  test("without any it says where they come from", async () => {
    const { people } = await service.organisation();
    const { text } = await openConsole(service, people.viewer.as).get("/console/escalations");
    expect(text).toContain("Nothing waits for a person");
  });

  test("of another organisation is not there", async () => {
    const { escalation } = await escalated();
    const { people } = await service.organisation();
    expect(
      (await openConsole(service, people.owner.as).get(`/console/escalations/${escalation.id}`)).status,
    ).toBe(404);
  });
});
