import { columns } from "../core/columns.ts";
import { displayAmount, shareOf } from "../core/money.ts";
import type { Check } from "../core/records.ts";
import type { receiptResource } from "../services/resources.ts";
import type { Client } from "./client.ts";
import type { Demo } from "./demo.ts";
import { same } from "./same.ts";
import { PAYEE, POLICY_NAME, PROMISE, RULES } from "./scenes.ts";
import type { LedgerLine, Played, WarrantBody } from "./story.ts";

/** The words of the tour. */

const OBSERVED_LENGTH_MAX = 44;
const ASSET = "USDC";

const percent = (bps: number): string => `${bps / 100} %`;

export function tellPolicy({ paint, print }: Demo): void {
  print(`\n${paint.bold("The policy decides by the share of clauses that pass")}`);
  const tell = (when: string, outcome: string, means: string) =>
    print(`  ${when.padEnd(18)} ${outcome.padEnd(16)} ${paint.quiet(means)}`.trimEnd());
  const meanings = {
    release: "pay all of it",
    escalate: "keep it held until a person decides",
    refund: "return all of it",
  };
  for (const band of RULES.bands) {
    const means =
      band.outcome === "partial_release"
        ? `pay ${percent(band.releasedBps)}, return the rest`
        : meanings[band.outcome];
    const when =
      band.minScore === 1
        ? "all"
        : band.minScore === 0
          ? "less"
          : `${percent(band.minScore * 10_000)} or more`;
    tell(when, band.outcome, means);
  }
  for (const code of RULES.alwaysEscalate) tell(code, "escalate", "whatever the share");
  for (const code of RULES.alwaysRefund) tell(code, "refund", "whatever the share");
  tell(`above ${displayAmount(BigInt(RULES.maxAmount), ASSET)}`, "refused", "when it is opened");
}

export function tellPromise({ paint, print }: Demo): void {
  print(`\n${paint.bold("The promise: a week's weather for Oslo")}`);
  for (const { clause, asks, inWords } of PROMISE) {
    print(`  ${clause.kind.padEnd(16)} ${asks.padEnd(16)} ${paint.quiet(inWords)}`);
  }
}

export function tellClauses({ paint, print }: Demo, check: Check): void {
  for (const [index, { kind, passed, reason_code: code, observed }] of check.details.entries()) {
    const asks = PROMISE[index]?.asks ?? "";
    const found = code === null ? "" : `${paint.bad(code)}  `;
    const seen = observed === null ? "" : paint.quiet(`saw ${shown(kind, observed)}`);
    print(
      `      ${passed ? paint.pass : paint.fail} ${kind.padEnd(15)} ${asks.padEnd(15)} ${found}${seen}`.trimEnd(),
    );
  }
}

function shown(kind: string, observed: unknown): string {
  if (kind === "data.freshness") return `an age of ${Math.round(Number(observed))} s`;
  const text = JSON.stringify(observed);
  return text.length > OBSERVED_LENGTH_MAX ? `${text.slice(0, OBSERVED_LENGTH_MAX)}…` : text;
}

/** Which rule of the policy decided: a reason code that is always so, else the band. */
export function tellDecision({ print }: Demo, check: Check): void {
  const passed = check.details.filter((detail) => detail.passed).length;
  const always: readonly string[] = [...RULES.alwaysEscalate, ...RULES.alwaysRefund];
  const code = check.reasonCodes.find((candidate) => always.includes(candidate));
  const rule = check.bandLabel === null ? `${code} does so whatever the share` : `band "${check.bandLabel}"`;
  print(`    ${passed} of ${check.details.length} passed: ${POLICY_NAME} says ${check.outcome} (${rule})`);
}

/** What the state means for the money. */
export function tellOutcome({ paint, print }: Demo, warrant: WarrantBody): void {
  const amount = BigInt(warrant.amount);
  const paid = shareOf(amount, warrant.released_bps ?? 0);
  const money = (units: bigint) => displayAmount(units, warrant.asset);
  const state = warrant.state.toUpperCase();
  if (warrant.state === "held") {
    print(`    ${paint.waiting(state)}: ${money(amount)} for ${PAYEE}, who is not paid yet`);
  } else if (warrant.state === "escalated") {
    print(`    ${paint.waiting(state)}: ${money(amount)} stay held until a person decides`);
  } else if (paid === 0n) {
    print(`    ${paint.bad(state)}: ${money(amount)} return, ${PAYEE} gets nothing`);
  } else {
    const rest = paid < amount ? `, ${money(amount - paid)} return` : "";
    print(`    ${paint.good(state)}: ${PAYEE} gets ${money(paid)}${rest}`);
  }
}

export function tellMoney({ paint, print }: Demo, ledger: readonly LedgerLine[]): void {
  print(`\n${paint.bold("What happened to the money")}`);
  const [header = "", ...lines] = columns([
    ["", "available", "held", "paid"],
    ...ledger.map(({ step, books: { available, held, paid } }) => [
      step,
      ...[available, held, paid].map((amount) => displayAmount(amount, ASSET)),
    ]),
  ]);
  print(`  ${paint.quiet(header)}`);
  for (const line of lines) print(`  ${line}`);
}

/** The receipts are read as anybody can: without a credential. */
export async function tellReceipts(
  { paint, print, url }: Demo,
  client: Client,
  warrants: Played["warrants"],
): Promise<void> {
  print(`\n${paint.bold("Receipts, for anybody to read")}`);
  for (const { scene, id } of warrants) {
    const path = `/t/${id}`;
    const receipt = await client.send<ReturnType<typeof receiptResource>>({ method: "GET", path }, 200);
    same(`the receipt of ${scene.name}`, [receipt.warrant.id, receipt.mode], [id, "sandbox"]);
    print(`  ${scene.deliverable.padEnd(7)} ${url}${path}`);
  }
}

export function tellAudit({ paint, print, server }: Demo): void {
  same("the audit", server.ctx.store.reader.audit(), []);
  print(
    `\n  ${paint.pass} The audit agrees: the books balance, and every state has its trace and its money.`,
  );
}
