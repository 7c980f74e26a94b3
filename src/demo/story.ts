import type { Check } from "../core/check.ts";
import type { Wire } from "../core/form.ts";
import type { Progress } from "../core/progress.ts";
import type { VoucherClaims } from "../core/x402/voucher.ts";
import type { paymentResource } from "../resources/purchase.ts";
import type { receiptForm } from "../resources/receipt.ts";
import type { warrantResource } from "../resources/warrant.ts";
import { bearer, type Client, PATHS } from "./client.ts";
import { same } from "./same.ts";
import { type Balance, CLAUSES, FUNDS, JUDGEMENT, PAYEE, PURCHASE, SCENES, type Scene } from "./scenes.ts";
import { type Demo, readBalance } from "./stage.ts";

/** What happens in the tour, as data. `narrate.ts` prints it for people, `record.ts` for programs. */

export type WarrantBody = ReturnType<typeof warrantResource>;
export type ReceiptBody = Wire<typeof receiptForm>;
export type PaymentBody = ReturnType<typeof paymentResource>;

/** What happened in a scene: the warrant as open and verify answered it, and the check between them. */
export type PlayedScene = {
  readonly scene: Scene;
  readonly opened: WarrantBody;
  readonly sourceUrl: string;
  readonly check: Check;
  readonly verified: WarrantBody;
};

/** How the owner decided the escalated warrant, after the agent's key was refused. */
export type Decision = { readonly refusedCode: string; readonly warrant: WarrantBody };

/** What the agent bought by x402: the voucher as the seller read it, and the check of what the seller delivered. */
export type Purchase = {
  readonly url: string;
  readonly payment: PaymentBody;
  readonly voucher: VoucherClaims;
  readonly check: Check;
  readonly receipt: ReceiptBody;
};

/** The balance after a step. */
export type BalanceLine = { readonly step: string; readonly balance: Balance };

export type Story = {
  /** The scenes, with their receipts at the end of the story. */
  readonly scenes: readonly (PlayedScene & { readonly receipt: ReceiptBody })[];
  readonly decision: Decision;
  readonly purchase: Purchase;
  /** The balance before, after each scene, after the decision, and after the purchase. */
  readonly balances: readonly BalanceLine[];
  /** What the audit found. A story in which it finds anything is not printed. */
  readonly problems: readonly string[];
};

/** How many steps `playStory` reports. */
const STEPS = SCENES.length + 2;

/**
 * Plays every scene over HTTP, as a client would, lets the owner decide the escalated warrant, and buys by x402.
 *
 * @param update is called after each step
 */
export async function playStory(demo: Demo, client: Client, update: Progress["update"]): Promise<Story> {
  const balances: BalanceLine[] = [];
  const enter = async (step: string, wanted: Balance) => {
    const balance = await readBalance(demo.server.ctx, demo.cast);
    same(`the balance, ${step}`, balance, wanted);
    update(balances.length, STEPS);
    balances.push({ step, balance });
  };
  await enter("before", { available: FUNDS, held: 0n, paid: 0n });
  const played: PlayedScene[] = [];
  for (const scene of SCENES) {
    played.push(await playScene(demo, client, scene));
    await enter(`${scene.deliverable}: ${scene.state}`, scene.balance);
  }
  const waiting = played.find(({ verified }) => verified.state === "escalated");
  if (!waiting) throw new Error("no scene left a warrant escalated");
  const decision = await decideAsOwner(demo, client, waiting.opened.id);
  await enter(`${waiting.scene.deliverable}: the owner decides`, JUDGEMENT.balance);
  const purchase = await buyAsAgent(demo, client);
  await enter(`paid: ${PURCHASE.state}`, PURCHASE.balance);
  const scenes = await Promise.all(
    played.map(async (one) => ({
      ...one,
      receipt: await readReceipt(client, one.scene.name, one.opened.id),
    })),
  );
  const problems = await demo.server.ctx.store.audit();
  same("the audit", problems, []);
  return { scenes, decision, purchase, balances, problems };
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
  const check = await readCheck(demo, scene.name, opened.id, scene.codes);
  same(`the state of ${scene.name}`, verified.state, scene.state);
  return { scene, opened, sourceUrl, check, verified };
}

/** The check of a warrant. Its clauses must have these reason codes; null is a pass. */
async function readCheck(
  { server }: Demo,
  name: string,
  warrantId: string,
  codes: Scene["codes"],
): Promise<Check> {
  const [check] = await server.ctx.store.read((reader) => reader.checks.of(warrantId));
  if (!check) throw new Error(`${name} left no record of its check`);
  const found = check.details.map((detail) => detail.reason_code);
  same(`the clauses of ${name}`, found, codes);
  return check;
}

/** Opens a warrant with the tour's clauses, with the agent's key. */
export async function openAsAgent(
  demo: Demo,
  client: Client,
  name: string,
  amount: bigint,
): Promise<WarrantBody> {
  const opened = await client.send<WarrantBody>(
    {
      method: "POST",
      path: PATHS.warrants,
      as: bearer(demo.cast.apiKey),
      idempotencyKey: keyOf(demo, name),
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
  same(`the warrant of ${name}`, opened.state, "held");
  return opened;
}

export const inAMonth = (): string => new Date(Date.now() + 30 * 24 * 3_600_000).toISOString();

/** An Idempotency-Key that no earlier run in the same folder has used. */
const keyOf = ({ cast }: Demo, name: string): string => `${cast.organisation.id}-${name}`;

/** Tries to release with the agent's key, which is refused: only a person may. Then it signs the owner in, who decides. */
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

/** Buys, with the agent's key, what the seller delivers only for payment. The seller accepts a voucher, and the settlement pays it. */
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
  same("the vouchers that the seller accepted", [voucher.warrant, ...others], [id]);
  const check = await readCheck(
    demo,
    "the purchase",
    id,
    CLAUSES.map(() => null),
  );
  const receipt = await readReceipt(client, "the purchase", id);
  const states = receipt.trace.map((entry) => entry.to);
  same("the states of the purchase", states, PURCHASE.path);
  return { url, payment, voucher, check, receipt };
}

/** Reads a receipt as anybody can: without a credential. */
async function readReceipt(client: Client, name: string, warrantId: string): Promise<ReceiptBody> {
  const path = PATHS.receipt(warrantId);
  const receipt = await client.send<ReceiptBody>({ method: "GET", path }, 200);
  same(`the receipt of ${name}`, [receipt.warrant.id, receipt.mode], [warrantId, "sandbox"]);
  return receipt;
}
