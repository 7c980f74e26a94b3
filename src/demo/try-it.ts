import { join } from "node:path";
import { bearer, createClient } from "./client.ts";
import type { Demo } from "./demo.ts";
import { PAYEE } from "./scenes.ts";
import { type WarrantBody, warrantFor } from "./story.ts";

/** One more warrant for whoever watches, so that the lines below can name it. */
const AMOUNT = 10_000_000n;

/** Opens it, and prints lines that work as they stand; each is one line, so that it can be copied whole. */
export async function tellWhatToTry(demo: Demo): Promise<void> {
  const { url, cast, paint, print } = demo;
  const { id } = await createClient(url).send<WarrantBody>(
    {
      method: "POST",
      path: "/v1/warrants",
      as: bearer(cast.apiKey),
      idempotencyKey: `${cast.organisationId}-yours`,
      body: warrantFor(demo, AMOUNT),
    },
    201,
  );
  print(`\n${paint.bold("Your turn")}   server and seller go on until Ctrl-C`);
  print(`  One more warrant is held for you: ${id}, 10.00 USDC.`);
  print(
    `  The seller has /good, /half, /stale and /broken; any other path is 404, which is always refunded.`,
  );
  print(`  Each line works as it stands, in another terminal.`);
  for (const [title, line] of linesFor(demo, id)) print(`\n${paint.quiet(`# ${title}`)}\n${line}`);
  print(`\n${paint.bold("To read")}   ${url}/docs   ${url}/openapi.json`);
}

function linesFor(demo: Demo, id: string): readonly (readonly [title: string, line: string])[] {
  const { url, cast, seller, folder } = demo;
  const jar = join(folder, "cookies.txt");
  const key = `-H 'Authorization: Bearer ${cast.apiKey}'`;
  const intent = (name: string) => `-H 'Idempotency-Key: ${name}'`;
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
    deadline: warrantFor(demo, AMOUNT).deadline,
    spec: { clauses: [{ kind: "http.status", equals: 200 }] },
  };
  return [
    [
      "open a warrant: 3.00 USDC for an answer of 200",
      line(key, intent("try-open"), json(open), `${url}/v1/warrants`),
    ],
    ["read yours", line(key, `${url}/v1/warrants/${id}`)],
    [
      "verify yours, against the stale forecast: it escalates",
      line(
        key,
        intent("try-verify"),
        json({ source_url: seller.urlOf("stale") }),
        `${url}/v1/warrants/${id}/verify`,
      ),
    ],
    [
      "sign in as the owner",
      line(`-c '${jar}'`, json({ email, password, mode: "sandbox" }), `${url}/auth/session`),
    ],
    [
      "release it, as the owner",
      line("-X POST", `-b '${jar}'`, intent("try-release"), `${url}/v1/warrants/${id}/release`),
    ],
    ["its trace, from the first hold to the payment", line(key, `${url}/v1/warrants/${id}/trace`)],
    ["its receipt, without any credential", line(`${url}/t/${id}`)],
    ["all warrants, the newest first", line(key, `'${url}/v1/warrants?sort=created'`)],
    ["the bench: try clauses without holding anything", line(json(bench), `${url}/bench/run`)],
  ];
}
