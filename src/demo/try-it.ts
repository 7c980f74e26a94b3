import { join } from "node:path";
import { displayAmount } from "../core/money.ts";
import { PATHS } from "./client.ts";
import type { Yours } from "./demo.ts";
import type { Output } from "./paint.ts";
import { CLAUSES, PAYEE, PURCHASE } from "./scenes.ts";
import type { Demo } from "./stage.ts";
import { inAMonth } from "./story.ts";

/** Prints commands about the warrant that is held for the reader. Each works as it is, and is one line, so that it is easy to copy. */
export function printWhatToTry({ paint, print }: Output, demo: Demo, yours: Yours): void {
  const { url } = demo;
  const { id, amount, asset } = yours.warrant;
  const held = displayAmount(BigInt(amount), asset);
  print(`\n${paint.bold("Your turn")}   server and seller go on until Ctrl-C`);
  print(`  One more warrant is held for you: ${id}, ${held}.`);
  print(`  The seller has /good, /half, /stale and /broken, and sells /paid for a voucher; any other path`);
  print(`  is 404, which is always refunded.`);
  print(`  Each line works as it is, in another terminal.`);
  for (const [title, line] of linesFor(demo, id)) print(`\n${paint.quiet(`# ${title}`)}\n${line}`);
  print(`\n${paint.bold("To read")}   ${url}/docs   ${url}/openapi.json`);
  print(
    `\n${paint.bold("In the browser")}   this link signs you in to the console as the owner, once, within 30 minutes:`,
  );
  print(yours.signInUrl);
}

function linesFor(demo: Demo, id: string): readonly (readonly [title: string, line: string])[] {
  const { url, cast, seller, folder } = demo;
  const jar = join(folder, "cookies.txt");
  const key = `-H 'Authorization: Bearer ${cast.apiKey}'`;
  const idempotencyKey = (name: string) => `-H 'Idempotency-Key: ${name}'`;
  const json = (body: object) => `-H 'Content-Type: application/json' -d '${JSON.stringify(body)}'`;
  const { email, password } = cast.owner;
  const line = (...parts: readonly string[]) => ["curl -sS -w '\\n'", ...parts].join(" ");
  const bench = {
    clauses: [{ kind: "json.jsonpath", path: "$.city", equals: "Oslo" }],
    deliverable: { reached: true, raw: '{"city":"Bergen"}' },
  };
  const open = {
    amount: "3000000",
    payee: PAYEE,
    deadline: inAMonth(),
    spec: { clauses: [{ kind: "http.status", equals: 200 }] },
  };
  const buy = {
    url: seller.urlOf("paid"),
    max_amount: `${PURCHASE.maxAmount}`,
    spec: { clauses: CLAUSES },
  };
  const most = displayAmount(PURCHASE.maxAmount, PURCHASE.terms.asset);
  return [
    [
      "open a warrant: 3.00 USDC for an answer of 200",
      line(key, idempotencyKey("try-open"), json(open), url + PATHS.warrants),
    ],
    ["read yours", line(key, url + PATHS.warrant(id))],
    [
      "verify yours, against the stale forecast: it escalates",
      line(
        key,
        idempotencyKey("try-verify"),
        json({ source_url: seller.urlOf("stale") }),
        url + PATHS.verify(id),
      ),
    ],
    [
      "sign in as the owner",
      line(`-c '${jar}'`, json({ email, password, mode: "sandbox" }), url + PATHS.signIn),
    ],
    [
      "release it, as the owner",
      line("-X POST", `-b '${jar}'`, idempotencyKey("try-release"), url + PATHS.release(id)),
    ],
    ["its trace, from the first hold to the payment", line(key, url + PATHS.trace(id))],
    ["its receipt, without any credential", line(url + PATHS.receipt(id))],
    [
      `buy by x402, from a seller that answers 402: ${most} at most`,
      line(key, idempotencyKey("try-buy"), json(buy), url + PATHS.pay),
    ],
    ["all warrants, the newest first", line(key, `'${url}${PATHS.warrants}?sort=created'`)],
    ["the bench: try clauses without holding anything", line(json(bench), url + PATHS.bench)],
  ];
}
