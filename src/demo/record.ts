import { PATHS } from "./client.ts";
import type { Narrator, Yours } from "./demo.ts";
import { PURCHASE } from "./scenes.ts";
import type { Demo } from "./stage.ts";
import type { BalanceLine, Purchase, Story } from "./story.ts";

/** The tour for programs: one object when the story is over, and nothing before or after it. */
export const inJson = (print: (text: string) => void): Narrator => ({
  ready() {},
  played: (demo, story, yours) => print(JSON.stringify(demoRecord(demo, story, yours))),
  over() {},
});

const demoRecord = (demo: Demo, { scenes, purchase, balances, problems }: Story, yours: Yours | null) => ({
  object: "demo" as const,
  mode: "sandbox" as const,
  url: demo.url,
  data_folder: demo.folder,
  organisation: demo.cast.organisation,
  warrants: scenes.map((scene) => warrantRecord(demo, scene)),
  purchase: purchaseRecord(demo, purchase),
  balances: balances.map(balanceRecord),
  audit: { ok: problems.length === 0, problems },
  // The credentials are printed only where the server continues, since they are useless otherwise.
  yours: yours && {
    warrant: yours.warrant,
    sign_in_url: yours.signInUrl,
    api_key: demo.cast.apiKey,
    owner: { email: demo.cast.owner.email, password: demo.cast.owner.password },
    seller_url: demo.seller.url,
  },
});

/** A warrant as on its receipt, with its check and the policy's decision. */
const warrantRecord = ({ url }: Demo, { scene, check, receipt }: Story["scenes"][number]) => ({
  deliverable: scene.deliverable,
  id: receipt.warrant.id,
  state: receipt.warrant.state,
  amount: receipt.warrant.amount,
  asset: receipt.warrant.asset,
  released_bps: receipt.warrant.released_bps,
  score: check.score,
  passed: check.passed,
  reason_codes: check.reasonCodes,
  outcome: check.outcome,
  receipt_url: url + PATHS.receipt(receipt.warrant.id),
});

/** The purchase as the service answered it, and the voucher that the seller got. */
const purchaseRecord = ({ url: service }: Demo, { url, payment, voucher, check }: Purchase) => ({
  url,
  max_amount: `${PURCHASE.maxAmount}`,
  quoted: payment.quoted,
  voucher,
  warrant_id: voucher.warrant,
  state: payment.state,
  paid: payment.paid,
  released_bps: payment.released_bps,
  status: payment.status,
  score: check.score,
  passed: payment.passed,
  reason_codes: payment.reason_codes,
  outcome: check.outcome,
  receipt_url: service + PATHS.receipt(voucher.warrant),
});

const balanceRecord = ({ step, balance }: BalanceLine) => ({
  step,
  available: `${balance.available}`,
  held: `${balance.held}`,
  paid: `${balance.paid}`,
});
