import type { Check } from "../core/check.ts";
import { columns } from "../core/columns.ts";
import { displayAmount, shareOf } from "../core/money.ts";
import { SECOND_MS } from "../core/time.ts";
import { PATHS } from "./client.ts";
import type { Narrator } from "./demo.ts";
import { LOG } from "./folder.ts";
import type { Output } from "./paint.ts";
import {
  FUNDS,
  JUDGEMENT,
  PAYEE,
  POLICY_NAME,
  PROMISE,
  PURCHASE,
  RULES,
  SCENES,
  SCHEMA_NAME,
} from "./scenes.ts";
import type { Demo } from "./stage.ts";
import type {
  BalanceLine,
  Decision,
  PlayedScene,
  Purchase,
  ReceiptBody,
  Story,
  WarrantBody,
} from "./story.ts";
import { printWhatToTry } from "./try-it.ts";

const OBSERVED_LENGTH_MAX = 44;
const ASSET = "USDC";

/** The tour for people. */
export const inWords = (output: Output): Narrator => ({
  ready(demo) {
    narrateStage(output, demo);
    narratePolicy(output);
    narratePromise(output);
  },
  played(demo, { scenes, decision, purchase, balances }, yours) {
    for (const [index, scene] of scenes.entries()) narrateScene(output, index, scene);
    narrateJudgement(output, demo, decision);
    narratePurchase(output, demo, purchase);
    narrateMoney(output, balances);
    narrateReceipts(output, demo, scenes, purchase);
    // A story in which the audit found a problem is not printed.
    output.print(
      `\n  ${output.paint.pass} The audit agrees: the ledger balances, and every state has its trace and its money.`,
    );
    if (yours) printWhatToTry(output, demo, yours);
  },
  over({ folder, keepServing }) {
    output.print(
      `\n${keepServing ? "Stopped" : "Done"}. The data stays in ${folder}: delete it when you like.`,
    );
  },
});

function narrateStage({ paint, print }: Output, { url, portTaken, folder, seller, cast }: Demo): void {
  print(`${paint.bold("Holdfast, a guided tour")}   ${paint.sandbox("SANDBOX")} no real money moves\n`);
  print(paint.bold("Getting ready"));
  const { organisation, owner, agent, apiKey } = cast;
  const elsewhere = portTaken === null ? "" : `, since port ${portTaken} is taken`;
  for (const line of [
    `server   ${url}${elsewhere}`,
    `data     ${folder}, with the server's log in ${LOG}`,
    `seller   ${seller.url}, with ${SCENES.length} forecasts: one is good; a fifth is for sale`,
    `owner    ${owner.email} owns the organisation ${organisation.name}`,
    `balance  ${displayAmount(FUNDS, ASSET)} of play money came in`,
    `agent    ${agent.name} has an API key, ${apiKey.slice(0, 12)}…: it opens and verifies, and cannot settle`,
    `rules    the schema ${SCHEMA_NAME} and the policy ${POLICY_NAME} are saved`,
  ])
    print(`  ${paint.pass} ${line}`);
}

const percent = (bps: number): string => `${bps / 100} %`;

function narratePolicy({ paint, print }: Output): void {
  print(`\n${paint.bold("The policy decides by the share of clauses that pass")}`);
  const printRule = (when: string, outcome: string, means: string) =>
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
    printRule(when, band.outcome, means);
  }
  for (const code of RULES.alwaysEscalate) printRule(code, "escalate", "whatever the share");
  for (const code of RULES.alwaysRefund) printRule(code, "refund", "whatever the share");
  printRule(`above ${displayAmount(BigInt(RULES.maxAmount), ASSET)}`, "refused", "when it is opened");
}

function narratePromise({ paint, print }: Output): void {
  print(`\n${paint.bold("The promise: a week's weather for Oslo")}`);
  for (const { clause, asks, inWords } of PROMISE) {
    print(`  ${clause.kind.padEnd(16)} ${asks.padEnd(16)} ${paint.quiet(inWords)}`);
  }
}

function narrateScene(
  output: Output,
  index: number,
  { scene, opened, sourceUrl, check, verified }: PlayedScene,
): void {
  const { paint, print } = output;
  print(`\n${paint.bold(`${index + 1} of ${SCENES.length}  ${scene.name}`)}`);
  print(`  ${paint.quiet(`POST ${PATHS.warrants}`)}`);
  narrateOutcome(output, opened);
  print(`  ${paint.quiet(`POST ${PATHS.verify(opened.id)}`)}`);
  print(`    Holdfast itself fetches ${sourceUrl}`);
  narrateClauses(output, check);
  narrateRule(output, check);
  narrateOutcome(output, verified);
}

function narrateClauses({ paint, print }: Output, check: Check): void {
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

/** Which rule of the policy decided: a reason code that always escalates or refunds, else the band of the score. */
function narrateRule({ print }: Output, check: Check): void {
  const passed = check.details.filter((detail) => detail.passed).length;
  const decidedByCode: readonly string[] = [...RULES.alwaysEscalate, ...RULES.alwaysRefund];
  const code = check.reasonCodes.find((candidate) => decidedByCode.includes(candidate));
  const rule =
    check.bandLabel === null ? `${code} decides it, whatever share passed` : `band "${check.bandLabel}"`;
  print(`    ${passed} of ${check.details.length} passed: ${POLICY_NAME} says ${check.outcome} (${rule})`);
}

type Outcome = Pick<WarrantBody, "state" | "amount" | "asset" | "released_bps">;

/** Prints a warrant's state, and what it means for the money. */
function narrateOutcome({ paint, print }: Output, warrant: Outcome): void {
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

function narrateJudgement(output: Output, { cast }: Demo, { refusedCode, warrant }: Decision): void {
  const { paint, print } = output;
  print(`\n${paint.bold("A person decides what the policy left open")}`);
  print(`  ${paint.quiet(`POST ${PATHS.release(warrant.id)}`)}`);
  print(`    ${paint.fail} with the agent's key: 403 ${paint.bad(refusedCode)}`);
  print(`  ${paint.quiet(`POST ${PATHS.signIn}`)}`);
  print(`    ${paint.pass} ${cast.owner.email} signs in`);
  print(`  ${paint.quiet(`POST ${PATHS.resolve(warrant.id)}`)}`);
  print(`    "${JUDGEMENT.note}"`);
  narrateOutcome(output, warrant);
}

function narratePurchase(
  output: Output,
  { url: service }: Demo,
  { url, voucher, payment, check, receipt }: Purchase,
): void {
  const { paint, print } = output;
  const { amount, asset, payee } = voucher;
  const price = displayAmount(BigInt(amount), asset);
  print(`\n${paint.bold("The agent buys from a seller that asks for money first (x402)")}`);
  print(`  ${paint.quiet(`POST ${PATHS.pay}`)}`);
  print(`    The agent pays ${displayAmount(PURCHASE.maxAmount, asset)} at most, for the same promise`);
  print(`    Holdfast itself asks ${url}`);
  print(`    402: the seller asks ${price} for ${payee}`);
  narrateOutcome(output, { state: "held", amount, asset, released_bps: null });
  print(`    Holdfast asks again, with a signed voucher for ${price}, good until ${clockTime(voucher.exp)}`);
  print(`      ${paint.pass} the seller checks it by ${service}${PATHS.keys}`);
  print(`    ${payment.status}: the seller delivers`);
  narrateClauses(output, check);
  narrateRule(output, check);
  narrateOutcome(output, receipt.warrant);
}

/** @param seconds epoch seconds, as JWT has them */
const clockTime = (seconds: number): string =>
  `${new Date(seconds * SECOND_MS).toISOString().slice(11, 19)} UTC`;

function narrateMoney({ paint, print }: Output, lines: readonly BalanceLine[]): void {
  print(`\n${paint.bold("What happened to the money")}`);
  const [header = "", ...rows] = columns([
    ["", "available", "held", "paid"],
    ...lines.map(({ step, balance: { available, held, paid } }) => [
      step,
      ...[available, held, paid].map((amount) => displayAmount(amount, ASSET)),
    ]),
  ]);
  print(`  ${paint.quiet(header)}`);
  for (const row of rows) print(`  ${row}`);
}

function narrateReceipts(
  { paint, print }: Output,
  { url }: Demo,
  scenes: Story["scenes"],
  purchase: Purchase,
): void {
  print(`\n${paint.bold("Receipts, for anybody to read")}`);
  const printReceipt = (what: string, { warrant }: ReceiptBody) =>
    print(`  ${what.padEnd(7)} ${url}${PATHS.receipt(warrant.id)}`);
  for (const { scene, receipt } of scenes) printReceipt(scene.deliverable, receipt);
  printReceipt("paid", purchase.receipt);
}
