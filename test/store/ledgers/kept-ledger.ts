import { sha256 } from "../../../src/core/canonical.ts";
import { isRefusal } from "../../../src/core/errors.ts";
import type { KeyCaller, PersonCaller } from "../../../src/core/roles.ts";
import { openWarrant } from "../../../src/services/warrants/open.ts";
import { readReceipt, readTrace, readWarrant } from "../../../src/services/warrants/read.ts";
import type { TestContext } from "../../support/context.ts";
import { must } from "../../support/stage.ts";

/** What is kept beside a ledger: what its version answered, and what it showed. */
export type KeptLedger = {
  readonly requests: readonly KeptRequest[];
  /** The bodies of the requests' answers, in the order of the requests. */
  readonly answers: readonly string[];
  /** Every warrant with its trace and its receipt, and the balances, as JSON text. */
  readonly shown: readonly string[];
};

/** A request that moved money, by its Idempotency-Key. */
export type KeptRequest = { readonly caller: KeyCaller | PersonCaller; readonly key: string };

/** Sends every request again. A replay is known by its key and its fingerprint, which is the same for all of them here. */
export async function replayAll(
  ctx: TestContext,
  requests: readonly KeptRequest[],
): Promise<readonly string[]> {
  const answers: string[] = [];
  for (const { caller, key } of requests) {
    const input = {
      amount: "1",
      payee: "nobody",
      deadline: new Date(ctx.now() + 1_000).toISOString(),
      spec: { clauses: [{ kind: "http.status", equals: 200 }] },
    };
    const answer = must(await openWarrant(ctx, caller, input, { key, fingerprint: sha256("same") }));
    if (!answer.replayed) throw new Error(`the key ${key} was not known`);
    answers.push(answer.body);
  }
  return answers;
}

/** What everybody sees of what is in the ledger. */
export async function showAll(
  ctx: TestContext,
  requests: readonly KeptRequest[],
): Promise<readonly string[]> {
  const shown: string[] = [];
  const callers = new Map(requests.map(({ caller }) => [`${caller.organisationId} ${caller.mode}`, caller]));
  for (const caller of callers.values()) {
    for (const { id } of ctx.reader.warrants.byCreation(caller, {}, {}, 100)) {
      shown.push(JSON.stringify(await readWarrant(ctx, caller, id)));
      shown.push(JSON.stringify(await readTrace(ctx, caller, id)));
      // Signed by a key that is new in each test, so its signature is left out.
      const receipt = await readReceipt(ctx, id);
      shown.push(JSON.stringify(isRefusal(receipt) ? receipt : { ...receipt, signature: null }));
    }
    for (const { asset, balance } of ctx.reader.balances.list(caller))
      shown.push(`${asset}: ${balance.available} available, ${balance.held} held, ${balance.paid} paid`);
  }
  return shown;
}
