import type { Check } from "../core/records.ts";
import type { VoucherClaims } from "../core/x402/voucher.ts";
import type { receiptResource, warrantResource } from "../services/resources.ts";
import type { paymentResource } from "../services/x402/resources.ts";
import { bearer, type Client, PATHS } from "./client.ts";
import { same } from "./same.ts";
import { type Books, CLAUSES, FUNDS, JUDGEMENT, PAYEE, PURCHASE, SCENES, type Scene } from "./scenes.ts";
import { type Demo, readBooks } from "./stage.ts";

/** What happens in the tour, as data. `tell.ts` prints it for people, `record.ts` for programs. */

export type WarrantBody = ReturnType<typeof warrantResource>;
export type ReceiptBody = ReturnType<typeof receiptResource>;
export type PaymentBody = ReturnType<typeof paymentResource>;

/** A scene that was played: its warrant as answered to the open and to the verify, and the check between them. */
export type PlayedScene = {
  readonly scene: Scene;
  readonly opened: WarrantBody;
  readonly sourceUrl: string;
  readonly check: Check;
  readonly verified: WarrantBody;
};

/** What the owner decided about the warrant that the policy left to a person. The agent's key was refused first, with this code. */
export type Decision = { readonly refusedCode: string; readonly warrant: WarrantBody };

/** What the agent bought by x402: the voucher as the seller read it, and the check of what the seller delivered. */
export type Purchase = {
  readonly url: string;
  readonly payment: PaymentBody;
  readonly voucher: VoucherClaims;
  readonly check: Check;
  readonly receipt: ReceiptBody;
};

/** The books after a step. */
export type LedgerLine = { readonly step: string; readonly books: Books };

export type Story = {
  /** Each with the receipt of its warrant at the end of the story. */
  readonly scenes: readonly (PlayedScene & { readonly receipt: ReceiptBody })[];
  readonly decision: Decision;
  readonly purchase: Purchase;
  /** Before, after each scene, after the decision, and after the purchase. */
  readonly ledger: readonly LedgerLine[];
  /** What the audit found: nothing, since the demo throws where it finds a problem. */
  readonly problems: readonly string[];
};

/** Plays every scene over HTTP, as a client would, lets the owner decide what was left to a person, and buys by x402. */
export async function playStory(demo: Demo, client: Client): Promise<Story> {
  const ledger: LedgerLine[] = [];
  const enter = async (step: string, wanted: Books) => {
    const books = await readBooks(demo.server.ctx, demo.cast);
    same(`the balance, ${step}`, books, wanted);
    ledger.push({ step, books });
  };
  await enter("before", { available: FUNDS, held: 0n, paid: 0n });
  const played: PlayedScene[] = [];
  for (const scene of SCENES) {
    played.push(await playScene(demo, client, scene));
    await enter(`${scene.deliverable}: ${scene.state}`, scene.books);
  }
  const waiting = played.find(({ verified }) => verified.state === "escalated");
  if (!waiting) throw new Error("no scene leaves anything to a person");
  const decision = await decideAsOwner(demo, client, waiting.opened.id);
  await enter(`${waiting.scene.deliverable}: the owner decides`, JUDGEMENT.books);
  const purchase = await buyAsAgent(demo, client);
  await enter(`paid: ${PURCHASE.state}`, PURCHASE.books);
  const scenes = await Promise.all(
    played.map(async (one) => ({
      ...one,
      receipt: await readReceipt(client, one.scene.name, one.opened.id),
    })),
  );
  const problems = demo.server.ctx.store.reader.audit();
  same("the audit", problems, []);
  return { scenes, decision, purchase, ledger, problems };
}

async function playScene(demo: Demo, client: Client, scene: Scene): Promise<PlayedScene> {
  const opened = await openAsAgent(demo, client, `open-${scene.deliverable}`, scene.amount);
  const sourceUrl = demo.seller.urlOf(scene.deliverable);
  const verified = await client.send<WarrantBody>(
    {
      method: "POST",
      path: PATHS.verify(opened.id),
      as: bearer(demo.cast.apiKey),
      idempotencyKey: keyOf(demo, `verify-${scene.deliverable}`),
      body: { source_url: sourceUrl },
    },
    200,
  );
  const check = readCheck(demo, scene.name, opened.id, scene.codes);
  same(`the state of ${scene.name}`, verified.state, scene.state);
  return { scene, opened, sourceUrl, check, verified };
}

/** The check of a warrant. Throws where its clauses have other reason codes than these. */
function readCheck({ server }: Demo, name: string, warrantId: string, codes: Scene["codes"]): Check {
  const [check] = server.ctx.store.reader.checks.of(warrantId);
  if (!check) throw new Error(`${name} left no record of its check`);
  const found = check.details.map((detail) => detail.reason_code);
  same(`the clauses of ${name}`, found, codes);
  return check;
}

/** Opens a warrant of the tour's promise with the agent's key. */
export async function openAsAgent(
  demo: Demo,
  client: Client,
  intent: string,
  amount: bigint,
): Promise<WarrantBody> {
  const opened = await client.send<WarrantBody>(
    {
      method: "POST",
      path: PATHS.warrants,
      as: bearer(demo.cast.apiKey),
      idempotencyKey: keyOf(demo, intent),
      body: {
        amount: `${amount}`,
        payee: PAYEE,
        deadline: inAMonth(),
        agent_id: demo.cast.agent.id,
        spec: { clauses: CLAUSES },
      },
    },
    201,
  );
  same(`the warrant of ${intent}`, opened.state, "held");
  return opened;
}

export const inAMonth = (): string => new Date(Date.now() + 30 * 24 * 3_600_000).toISOString();

/** An Idempotency-Key that no earlier run has used. */
const keyOf = ({ cast }: Demo, intent: string): string => `${cast.organisation.id}-${intent}`;

/** The agent's key is refused what only a person may do. Then the owner signs in and decides. */
async function decideAsOwner(demo: Demo, client: Client, warrantId: string): Promise<Decision> {
  const { cast } = demo;
  const refused = await client.send<{ error: { code: string } }>(
    {
      method: "POST",
      path: PATHS.release(warrantId),
      as: bearer(cast.apiKey),
      idempotencyKey: keyOf(demo, "not-allowed"),
    },
    403,
  );
  same("the answer to the agent's key", refused.error.code, "user_session_required");
  const { releasedBps, note } = JUDGEMENT;
  const { warrant } = await client.send<{ warrant: WarrantBody }>(
    {
      method: "POST",
      path: PATHS.resolve(warrantId),
      as: await client.signIn(cast.owner.email, cast.owner.password),
      idempotencyKey: keyOf(demo, "decide"),
      body: { decision: "partial_release", released_bps: releasedBps, note },
    },
    200,
  );
  same("the state after the owner's decision", warrant.state, JUDGEMENT.state);
  return { refusedCode: refused.error.code, warrant };
}

/** The agent buys what the seller delivers for payment only. The seller takes a voucher; the settlement on the books pays. */
async function buyAsAgent(demo: Demo, client: Client): Promise<Purchase> {
  const { seller, cast } = demo;
  const url = seller.urlOf("paid");
  const payment = await client.send<PaymentBody>(
    {
      method: "POST",
      path: PATHS.pay,
      as: bearer(cast.apiKey),
      idempotencyKey: keyOf(demo, "buy"),
      body: {
        url,
        max_amount: `${PURCHASE.maxAmount}`,
        agent_id: cast.agent.id,
        spec: { clauses: CLAUSES },
      },
    },
    200,
  );
  const { warrant_id: id, state, quoted, paid, passed, status } = payment;
  same("the quote", quoted, PURCHASE.terms);
  same("the purchase", [state, paid, passed, status], [PURCHASE.state, true, true, 200]);
  const [voucher, ...others] = seller.vouchers();
  if (id === null || !voucher) throw new Error("the purchase left no warrant or no voucher");
  same("the vouchers that the seller took", [voucher.warrant, ...others], [id]);
  const check = readCheck(
    demo,
    "the purchase",
    id,
    CLAUSES.map(() => null),
  );
  const receipt = await readReceipt(client, "the purchase", id);
  const states = receipt.trace.map((entry) => entry.to);
  same("the way of the purchase", states, PURCHASE.path);
  return { url, payment, voucher, check, receipt };
}

/** The receipt, read without a credential, as anybody can. */
async function readReceipt(client: Client, name: string, warrantId: string): Promise<ReceiptBody> {
  const path = PATHS.receipt(warrantId);
  const receipt = await client.send<ReceiptBody>({ method: "GET", path }, 200);
  same(`the receipt of ${name}`, [receipt.warrant.id, receipt.mode], [warrantId, "sandbox"]);
  return receipt;
}
