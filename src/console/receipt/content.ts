import { anchorAddressOf, parseEvmChainRef } from "../../core/chain-anchor.ts";
import { printable } from "../../core/hidden-characters.ts";
import { displayAmount, exactAmount, shareOf } from "../../core/money.ts";
import type { Entry, Receipt, ReceiptCheck } from "../../core/receipt/form.ts";
import { caip2Of } from "../../core/x402/chains.ts";
import { capital } from "../capital.ts";
import { sha256 } from "./sha256.ts";

/**
 * What the page of a receipt shows (docs/security, "A receipt's page"). Every value in it was written by others: it is escaped, hidden characters
 * are written out, and it is isolated from the direction of the text around it. It is written by the service, and once more by the
 * page's own script, which compares: so nothing here needs more than a browser has.
 */

/** Markup whose variable parts have been escaped. */
export type Html = string;

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#x27;",
};

export const escapeHtml = (plain: string): Html =>
  printable(plain).replace(/[&<>"']/g, (character) => ENTITIES[character] ?? "");

const text = (value: string | number | null): Html => `<bdi>${escapeHtml(String(value ?? "none"))}</bdi>`;
const code = (value: string | number | null): Html => `<code>${text(value)}</code>`;

/** In units; on hover the exact digits. */
const amountText = (amount: bigint, asset: string): Html =>
  `<span title="${escapeHtml(exactAmount(amount, asset))}">${text(displayAmount(amount, asset))}</span>`;

/** As the receipt has it, in UTC. The page's script writes it in the zone of whoever reads; on hover it stays in UTC. */
const timeText = (at: string): Html =>
  `<time datetime="${escapeHtml(at)}" title="${escapeHtml(at.replace("T", " ").replace("Z", " UTC"))}">${text(at)}</time>`;

export const titleOf = ({ mode, warrant }: Receipt): string =>
  `${mode === "sandbox" ? "SANDBOX · " : ""}Receipt ${warrant.id}`;

/** The body of the page, but for its data and its script. */
export function contentOf(receipt: Receipt, canBeSaved: boolean): Html {
  const { warrant, mode, checks } = receipt;
  const saving = canBeSaved
    ? ` <a class="button" id="save" href="${encodeURIComponent(warrant.id)}/receipt.html" download>Save</a> <a href="../docs/receipts">What a receipt proves</a>`
    : "";
  return `${mode === "sandbox" ? '<p class="sandbox">SANDBOX: no money here is real</p>\n' : ""}<header>
<p class="quiet">Receipt ${code(warrant.id)}</p>
<h1>${amountText(BigInt(warrant.amount), warrant.asset)}</h1>
<p class="lead">promised to ${text(warrant.payee)} <span class="state">${text(capital(warrant.state.replaceAll("_", " ")))}</span></p>
</header>
<main>
<h2>The money</h2>
${moneyOf(warrant)}
<h2>What was promised</h2>
${promiseOf(receipt)}
<h2>What was checked</h2>
${checks.length === 0 ? "<p>Nothing was checked; it was settled without a check.</p>" : checks.map(checkOf).join("\n")}
<h2>How it went</h2>
${timelineOf(receipt.trace)}
<h2>The proof</h2>
${proofOf(receipt)}
<p><button type="button" id="verify" hidden>Verify it in this browser</button>${saving}</p>
<noscript><p class="quiet">Without JavaScript: holdfast receipt verify checks the saved file.</p></noscript>
<ul id="verdict" role="status" hidden></ul>
</main>
<footer><p>Who keeps no checkpoint of the log, and knows no witness that does, trusts its operator not to rewrite it.</p></footer>`;
}

function moneyOf({ amount, asset, released_bps, payee }: Receipt["warrant"]): Html {
  const held = BigInt(amount);
  const paid = shareOf(held, released_bps ?? 0);
  const row = (name: Html, value: bigint) =>
    `<tr><td>${name}</td><td class="number">${amountText(value, asset)}</td></tr>`;
  return `<table>${row("Held", held)}${row(`Paid to ${text(payee)}`, paid)}${row("Returned", held - paid)}</table>`;
}

/** Each clause with the result of the last check. */
function promiseOf({ warrant, checks }: Receipt): Html {
  const results = checks.at(-1)?.details ?? [];
  if (!warrant.spec) return `<p>Its owner shows the hash of the spec alone: ${code(warrant.spec_hash)}</p>`;
  const rows = warrant.spec.clauses.map(({ kind, ...fields }, index) => {
    const asked = Object.entries(fields).map(([name, value]) => `${name} ${JSON.stringify(value)}`);
    return `<tr><td class="kind">${code(kind)}</td><td>${code(asked.join(", "))}</td><td class="result">${resultOf(results[index])}</td></tr>`;
  });
  return `<table><tr><th>Clause</th><th>Asks for</th><th>Result</th></tr>${rows.join("")}</table>`;
}

function resultOf(result: ReceiptCheck["details"][number] | undefined): Html {
  if (!result) return "not checked";
  return result.passed
    ? '<span class="good">✓ passed</span>'
    : `<span class="wrong">✗ ${code(result.reason_code)}</span>`;
}

const fieldsOf = (fields: readonly (readonly [name: string, value: Html])[]): Html =>
  `<dl>${fields.map(([name, value]) => `<dt>${name}</dt><dd>${value}</dd>`).join("")}</dl>`;

const checkOf = (check: ReceiptCheck): Html =>
  fieldsOf([
    ["Source", text(check.source_origin)],
    ["Answer", `status ${text(check.http_status)}, ${text(check.bytes)} bytes`],
    ["Score", `${check.score / 100} %`],
    ["Decision", text(check.outcome.replaceAll("_", " "))],
    ["Reasons", check.reason_codes.length === 0 ? "none" : check.reason_codes.map(code).join(", ")],
    ["When", timeText(check.evaluated_at)],
    ["Evidence", code(check.evidence_hash)],
    ...(check.evidence === undefined ? [] : [["Vouched for", vouchedFor(check.evidence, check)] as const]),
  ]);

const vouchedFor = (evidence: string, { signed_by }: ReceiptCheck): Html =>
  signed_by ? `${text(evidence)}, with the key ${code(signed_by)}` : text(evidence);

function timelineOf(trace: readonly Entry[]): Html {
  const rows = trace.map(({ payload: { to, recorded_at, actor }, entry_hash }) => {
    const who = actor.id === null ? text(actor.kind) : `${text(actor.kind)} ${code(actor.id)}`;
    return `<tr><td>${timeText(recorded_at)}</td><td>${text(to.replaceAll("_", " "))}</td><td>${who}</td><td>${code(`${entry_hash.slice(0, 12)}…`)}</td></tr>`;
  });
  return `<table><tr><th>When</th><th>State</th><th>By</th><th>Entry</th></tr>${rows.join("")}</table>`;
}

function proofOf({ warrant, anchor }: Receipt): Html {
  const hashes = [
    ["Spec", code(warrant.spec_hash)],
    ["Rules", code(warrant.rules_hash)],
  ] as const;
  if (!anchor)
    return `${fieldsOf(hashes)}<p>The settlement is not in the log yet; it will be within minutes.</p>`;
  const { leaf_index, tree_size, chain_ref, checkpoint } = anchor;
  const fields = [
    ...hashes,
    ["In the log", `entry ${leaf_index} of ${tree_size}${chain_ref === null ? "" : `, ${code(chain_ref)}`}`],
    ["On a chain", onChainOf(anchor)],
  ] as const;
  return `${fieldsOf(fields)}<pre>${checkpoint.split("\n").map(text).join("\n")}</pre>`;
}

/** Neither this page nor its verification asks a chain, so it says what to look for. */
function onChainOf({ chain_ref, checkpoint }: NonNullable<Receipt["anchor"]>): Html {
  if (chain_ref === null) return "not confirmed yet";
  const place = parseEvmChainRef(chain_ref);
  if (place === null) return "no";
  const [origin = ""] = checkpoint.split("\n");
  const address = anchorAddressOf(origin, sha256);
  return `block ${text(place.block)} of ${code(caip2Of(place.chainId))}. This page did not ask the chain: an explorer of it must show there a transaction to ${code(address)} whose input data, as text, is the checkpoint below, without the lines of witnesses.`;
}
