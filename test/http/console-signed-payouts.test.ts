import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { batchDigest } from "../../src/core/payout.ts";
import { chainOfMode } from "../../src/core/x402/chains.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { fundBalance } from "../../src/services/admin/balances.ts";
import { submitPayouts } from "../../src/services/admin/payouts.ts";
import { keepRailStates } from "../../src/services/rails/states.ts";
import type { Json } from "../support/client.ts";
import { consoleOfShell, type Shown } from "../support/console.ts";
import { must, type Person, type TestOrganisation } from "../support/organisations.ts";
import {
  type Asked,
  approve,
  enrol,
  removes,
  setThreshold,
  signsFor,
  type TestPasskey,
} from "../support/passkeys.ts";
import { type ShellService, startTestShell } from "../support/server.ts";

/** Payouts and corrections above the passkey threshold (docs/money, "Payouts" and "Corrections"). */

const PAYOUTS = "/console/money/payouts";
const SUBMIT = `${PAYOUTS}/submit`;
const CORRECTIONS = "/console/money/corrections";
const DECIDE = `${CORRECTIONS}/decide`;

let service: ShellService;
let home: TestOrganisation;
let admin: Person;
let passkey: TestPasskey;
beforeEach(async () => {
  service = startTestShell();
  home = await service.organisation();
  admin = home.people.admin;
  passkey = await enrol(service, admin);
});
afterEach(() => service.close());

const browserOf = ({ as }: Pick<Person, "as">) => consoleOfShell(service)(as);
async function released(payee: string, amount: string, of = home): Promise<void> {
  const { id } = await service.opened(of, { payee, amount });
  const reply = await service.post(`/v1/warrants/${id}/release`, {}, { as: of.people.operator.as });
  expect(reply.status).toBe(200);
}
const formOf = (person: Pick<Person, "as"> = admin, query = ""): Promise<Record<string, string>> =>
  browserOf(person).formOn(`${SUBMIT}${query}`, SUBMIT);
const payoutsAsked = ({ batch, payee, asset }: Record<string, string>): Asked => [
  "/auth/passkey/payouts/challenge",
  { batch, ...(payee && { payee, asset }) },
];
/** The form with the token of a signature over what it shows. */
async function signedForm(query = ""): Promise<Record<string, string>> {
  const form = await formOf(admin, query);
  const passkey_token = await signsFor(service, admin, passkey, payoutsAsked(form));
  return { ...form, passkey_token };
}
/** Sends a form that must be refused and change nothing. */
async function refused(
  path: string,
  fields: Record<string, string>,
  [status, words]: readonly [status: number, words: string],
  by: Pick<Person, "as"> = admin,
): Promise<Shown> {
  const before = service.everything();
  const page = await browserOf(by).post(path, fields);
  expect([page.status, page.text]).toEqual([status, expect.stringContaining(words)]);
  expect(service.everything()).toEqual(before);
  return page;
}
const submitted = async (fields: Record<string, string>): Promise<void> =>
  expect((await browserOf(admin).post(SUBMIT, fields)).to).toBe(`${PAYOUTS}?done=submitted`);
const payoutsMade = () =>
  service.ctx.reader.payouts
    .list({ organisationId: home.id, mode: "live" }, null, null, 100)
    .map(({ payee, amount }) => [payee, amount] as const)
    .toSorted();
const approvals = () => service.allRows(home).passkey_approvals as Json[];
const CHANGED = [409, "What is owed has changed since it was shown: nothing was submitted."] as const;

describe("payouts above the passkey threshold", () => {
  beforeEach(async () => {
    await released("acme", "600");
    await released("other", "500");
    await setThreshold(service, home, "1000");
  });

  test("go out with a signature over exactly these, which is used up in the same commit", async () => {
    const form = await formOf();
    const scope = { organisationId: home.id, mode: "live" } as const;
    const owed = [
      { payee: "acme", asset: "USDC", amount: 600n },
      { payee: "other", asset: "USDC", amount: 500n },
    ];
    expect(form.batch).toBe(batchDigest(scope, owed));
    const shown = await refused(SUBMIT, form, [403, "it needs a fresh signature by your passkey"]);
    expect(shown.text).toContain("acme 0.0006 USDC other 0.0005 USDC Payouts 2 Together 0.0011 USDC");
    expect(shown.text).toContain("holdfast payouts submit");
    const signed = await signedForm();
    await submitted(signed);
    expect(payoutsMade()).toEqual([
      ["acme", 600n],
      ["other", 500n],
    ]);
    const [{ user_id, warrant_id, decision, assertion, used_at } = {} as Json] = approvals();
    expect([user_id, warrant_id, decision, used_at]).toEqual([
      ...[admin.id, form.batch, "submit_payouts", BigInt(service.clock.now)],
    ]);
    expect(JSON.parse(assertion).statement).toEqual({
      ...{ type: "holdfast.payouts", user_id: admin.id, batch: form.batch, nonce: expect.any(String) },
    });
    const entries = service.allRows(home).audit_entries as Json[];
    const made = service.ctx.reader.payouts.list(scope, null, null, 100).map(({ id }) => id);
    expect(
      entries.filter(({ action }) => action === "payout.submitted").map((one) => [one.actor_id, one.subject]),
    ).toEqual(made.toReversed().map((id) => [admin.id, id]));
    // The same batch is owed once more, and its signature was used.
    await released("acme", "600");
    await released("other", "500");
    await refused(SUBMIT, { ...signed, _key: "another" }, [403, "this signature was used already"]);
  });

  test("of a wallet on a chain need one whatever the threshold is, and are released by it, exactly as much as was signed", async () => {
    const address = `0x${"a1".repeat(20)}`;
    const treasury = {
      ...({ mode: "live", chainId: chainOfMode("live", 8_453)!, asset: "USDC" } as const),
      ...{ token: `0x${"ab".repeat(20)}`, address: `0x${"cd".repeat(20)}` },
      limits: { payoutMax: 1n, dayMax: 1n },
    };
    await keepRailStates({ ...service.ctx, treasuries: [treasury] });
    await setThreshold(service, home, null);
    await released(address, "500");
    const query = `?payee=${address}&asset=USDC`;
    await refused(SUBMIT, await formOf(admin, query), [403, "it needs a fresh signature by your passkey"]);
    const signed = await signedForm(query);
    expect((await browserOf(admin).post(SUBMIT, signed)).status).toBe(303);
    await released(address, "7");
    const scope = { organisationId: home.id, mode: "live" } as const;
    expect(service.ctx.reader.rails.wait(scope, { asset: "USDC", payee: address })).toMatchObject({
      ...{ code: "released", released: 500n },
    });
    expect(payoutsMade()).toEqual([]);
    expect(approvals()).toMatchObject([{ user_id: admin.id, decision: "submit_payouts" }]);
  });

  test("of two that send one signature at once, one is done", async () => {
    const signed = await signedForm();
    const sent = await Promise.all(
      ["first", "second"].map((_key) => browserOf(admin).post(SUBMIT, { ...signed, _key })),
    );
    expect(sent.map(({ status }) => status).toSorted()).toEqual([303, 409]);
    expect(payoutsMade()).toHaveLength(2);
  });

  test("are refused where what is owed has changed since, and shown anew", async () => {
    const changes = [
      () => released("acme", "1"),
      () => released("third", "7"),
      () => submitPayouts(service.ctx, MACHINE, { organisation_id: home.id, mode: "live", payee: "third" }),
    ];
    for (const change of changes) {
      const signed = await signedForm();
      await change();
      const shown = await refused(SUBMIT, signed, CHANGED);
      const form = await formOf();
      expect(shown.html).toContain(`name="batch" value="${form.batch}"`);
      expect(form.batch).not.toBe(signed.batch);
      await service.refuses(home, [409, "version_conflict", CHANGED[1]], () => {
        const [path, body] = payoutsAsked(signed);
        return service.post(path, body, { as: admin.as, key: null });
      });
    }
    expect(approvals().map(({ used_at }) => used_at)).toEqual([null, null, null]);
    await submitted(await signedForm());
    expect(payoutsMade()).toEqual([
      ["acme", 601n],
      ["other", 500n],
      ["third", 7n],
    ]);
  });

  test("a signature is for these payouts, this person and 120 seconds, and for nothing else", async () => {
    const { owner } = home.people;
    await setThreshold(service, home, "400");
    const [all, acme, other] = [
      await signedForm(),
      await signedForm("?payee=acme"),
      await signedForm("?payee=other"),
    ];
    const { id } = await service.opened(home, { amount: "300" });
    const release = { warrant_id: id, version: 1, decision: "release" };
    const ofWarrant = await approve(service, admin, passkey, release);
    const another = [403, "this signature is for another sum of these payouts"] as const;
    await refused(SUBMIT, { ...all, passkey_token: acme.passkey_token ?? "" }, another);
    await refused(SUBMIT, { ...acme, passkey_token: other.passkey_token ?? "" }, another);
    await refused(SUBMIT, { ...acme, passkey_token: ofWarrant }, another);
    await refused(SUBMIT, { ...all, passkey_token: "none" }, [403, "it needs a fresh signature"]);
    // What was signed for the one is not sent for the other.
    const { batch: ofOther = "" } = other;
    await refused(SUBMIT, { ...acme, batch: ofOther }, CHANGED);
    await enrol(service, owner);
    await refused(SUBMIT, all, [403, "it needs a fresh signature"], owner);
    await setThreshold(service, home, "100");
    const settled = await service.refuses(home, [403, "passkey_required"], () =>
      service.post(
        `/v1/warrants/${id}/release`,
        {},
        {
          as: admin.as,
          headers: { "Service-Passkey": all.passkey_token ?? "" },
        },
      ),
    );
    expect(settled.body.error.message).toContain("this signature is for another warrant");
    service.clock.now += 119_999;
    await submitted(acme);
    service.clock.now += 1;
    await refused(SUBMIT, other, [403, "this signature has expired"]);
    expect(payoutsMade()).toEqual([["acme", 600n]]);
  });

  test("are no person's without a passkey that counts", async () => {
    const { owner, operator } = home.people;
    await refused(SUBMIT, await formOf(owner), [403, "you have no passkey that counts for it"], owner);
    const [path, body] = payoutsAsked(await formOf());
    for (const [by, code] of [
      [owner, "passkey_unavailable"],
      [operator, "insufficient_role"],
      [home.live, "user_session_required"],
    ] as const)
      await service.refuses(home, [403, code], () => service.post(path, body, { as: by.as, key: null }));
    const signed = await signedForm();
    await removes(service, admin, passkey.credential.id);
    await refused(SUBMIT, signed, [403, "you have no passkey that counts for it"]);
  });

  test("are asked for by their sum; what is below needs no passkey, one submission at a time", async () => {
    expect((await browserOf(admin).get(SUBMIT)).html).toContain("data-signed");
    const one = await browserOf(admin).get(`${SUBMIT}?payee=acme`);
    expect([one.status, one.html.includes("data-signed")]).toEqual([200, false]);
    await submitted(await formOf(admin, "?payee=acme"));
    await submitted(await formOf());
    expect(payoutsMade()).toHaveLength(2);
    expect(approvals()).toEqual([]);
    await released("acme", "1000");
    await submitted(await formOf());
    await setThreshold(service, home, null);
    await released("acme", "1001");
    await setThreshold(service, home, "1000");
    await refused(SUBMIT, { ...(await formOf()), batch: "" }, [403, "is above the passkey threshold 1000"]);
    await setThreshold(service, home, null);
    await submitted(await formOf());
  });

  test("of another asset always need one", async () => {
    must(
      await fundBalance(service.ctx, MACHINE, {
        ...{ organisation_id: home.id, mode: "live", amount: "10", asset: "EUR" },
      }),
    );
    await setThreshold(service, home, null);
    const { id } = await service.opened(home, { payee: "euro", amount: "1", asset: "EUR" });
    await service.post(`/v1/warrants/${id}/release`, {}, { as: home.people.operator.as });
    await setThreshold(service, home, "1000000");
    const query = "?payee=euro&asset=EUR";
    await refused(SUBMIT, await formOf(admin, query), [403, "it needs a fresh signature"]);
    await submitted(await signedForm(query));
    expect(payoutsMade()).toEqual([["euro", 1n]]);
  });
});

describe("a correction above the passkey threshold", () => {
  let correction: string;
  const { organisation_id, mode } = { organisation_id: () => home.id, mode: "live" as const };
  const owner = () => home.people.owner;
  const query = (as: string) => `?${new URLSearchParams({ correction, as })}`;
  const formTo = (as: "approve" | "withdraw", by: Person = owner()) =>
    browserOf(by).formOn(`${DECIDE}${query(as)}`, DECIDE);
  const asked = (correction_id = correction): Asked => [
    "/auth/passkey/corrections/challenge",
    { correction_id },
  ];
  async function proposed(): Promise<string> {
    const { id } = must(
      await fundBalance(service.ctx, MACHINE, { organisation_id: organisation_id(), mode, amount: "5000" }),
    );
    const path = `${CORRECTIONS}/new`;
    const form = await browserOf(admin).formOn(`${path}?deposit=${id}`, path);
    const sent = await browserOf(admin).post(path, { ...form, amount: "0", reason: "never came" });
    expect(sent.to).toBe(`${CORRECTIONS}?done=proposed`);
    const [newest] = service.ctx.reader.corrections.list({ organisationId: home.id, mode }, null, 1);
    return newest?.id ?? "";
  }
  beforeEach(async () => {
    await setThreshold(service, home, "1000");
    correction = await proposed();
  });

  test("is approved by a second person's signature, which is used up in the same commit", async () => {
    const before = service.balance(home).available;
    const none = [403, "you have no passkey that counts for it"] as const;
    await refused(DECIDE, await formTo("approve"), none, owner());
    const own = await enrol(service, owner());
    const fresh = [403, "The correction is above the passkey threshold 1000: it needs a fresh"] as const;
    await refused(DECIDE, await formTo("approve"), fresh, owner());
    const passkey_token = await signsFor(service, owner(), own, asked());
    const shown = await browserOf(owner()).get(`${DECIDE}${query("approve")}`);
    expect(shown.text).toContain("you sign it with your passkey");
    const form = { ...(await formTo("approve")), passkey_token };
    const sent = await browserOf(owner()).post(DECIDE, form);
    expect(sent.to).toBe(`${CORRECTIONS}?done=recorded`);
    expect(service.balance(home).available).toBe(before - 5_000n);
    const [{ warrant_id, decision, assertion, used_at } = {} as Json] = approvals();
    expect([warrant_id, decision, used_at]).toEqual([
      ...[correction, "approve_correction", BigInt(service.clock.now)],
    ]);
    expect(JSON.parse(assertion).statement).toMatchObject({
      ...{ type: "holdfast.correction", user_id: owner().id, correction_id: correction },
    });
  });

  test("is not approved by who proposed it, nor by a signature for another one", async () => {
    const token = await signsFor(service, admin, passkey, asked());
    const first = { ...(await formTo("approve", admin)), passkey_token: token };
    await refused(DECIDE, first, [403, "a second person approves it"]);
    const own = await enrol(service, owner());
    const signed = await signsFor(service, owner(), own, asked());
    correction = await proposed();
    const another = [403, "this signature is for another correction"] as const;
    const form = { ...(await formTo("approve")), passkey_token: signed };
    await refused(DECIDE, form, another, owner());
  });

  test("is withdrawn without a signature, and none is made for what is decided or elsewhere", async () => {
    await enrol(service, owner());
    const sent = await browserOf(owner()).post(DECIDE, await formTo("withdraw"));
    expect(sent.to).toBe(`${CORRECTIONS}?done=withdrawn`);
    const [path, body] = asked();
    const challenge = (by: Pick<Person, "as">) => service.post(path, body, { as: by.as, key: null });
    await service.refuses(home, [409, "illegal_transition"], () => challenge(owner()));
    const elsewhere = await service.organisation();
    await service.refuses(home, [404, "correction_not_found"], () => challenge(elsewhere.people.owner));
    await service.refuses(home, [403, "insufficient_role"], () => challenge(home.people.operator));
  });
});
