import type { Check } from "../core/records.ts";
import type { warrantResource } from "../services/resources.ts";
import { bearer, type Client } from "./client.ts";
import type { Demo } from "./demo.ts";
import { same } from "./same.ts";
import { type Books, CLAUSES, FUNDS, JUDGEMENT, PAYEE, SCENES, type Scene } from "./scenes.ts";
import { readBooks } from "./stage.ts";
import { tellClauses, tellDecision, tellOutcome } from "./tell.ts";

export type WarrantBody = ReturnType<typeof warrantResource>;

/** The books after a step. */
export type LedgerLine = { readonly step: string; readonly books: Books };

export type Played = {
  readonly warrants: readonly { readonly scene: Scene; readonly id: string }[];
  readonly ledger: readonly LedgerLine[];
};

/** Plays every scene over HTTP, as a client would, then lets the owner decide what was left to a person. */
export async function playStory(demo: Demo, client: Client): Promise<Played> {
  const ledger: LedgerLine[] = [{ step: "before", books: await readBooks(demo.server.ctx, demo.cast) }];
  same("the balance before", ledger[0]?.books, { available: FUNDS, held: 0n, paid: 0n });
  const warrants: { scene: Scene; id: string }[] = [];
  for (const [index, scene] of SCENES.entries()) {
    demo.print(`\n${demo.paint.bold(`${index + 1} of ${SCENES.length}  ${scene.name}`)}`);
    const { id } = await playScene(demo, client, scene);
    warrants.push({ scene, id });
    ledger.push({
      step: `${index + 1}  ${scene.deliverable}: ${scene.state}`,
      books: await checkBooks(demo, scene.name, scene.books),
    });
  }
  const waiting = warrants.find(({ scene }) => scene.state === "escalated");
  if (waiting) {
    await decideAsOwner(demo, client, waiting.id);
    ledger.push({
      step: `   ${waiting.scene.deliverable}: the owner decides`,
      books: await checkBooks(demo, "the owner's decision", JUDGEMENT.books),
    });
  }
  return { warrants, ledger };
}

async function playScene(demo: Demo, client: Client, scene: Scene): Promise<WarrantBody> {
  const { paint, print, seller, cast } = demo;
  const as = bearer(cast.apiKey);
  const opened = await client.send<WarrantBody>(
    {
      method: "POST",
      path: "/v1/warrants",
      as,
      idempotencyKey: `${cast.organisationId}-open-${scene.deliverable}`,
      body: warrantFor(demo, scene.amount),
    },
    201,
  );
  same(`the warrant of ${scene.name}`, opened.state, "held");
  print(`  ${paint.quiet("POST /v1/warrants")}`);
  tellOutcome(demo, opened);
  const source = seller.urlOf(scene.deliverable);
  print(`  ${paint.quiet(`POST /v1/warrants/${opened.id}/verify`)}`);
  print(`    Holdfast itself fetches ${source}`);
  const settled = await client.send<WarrantBody>(
    {
      method: "POST",
      path: `/v1/warrants/${opened.id}/verify`,
      as,
      idempotencyKey: `${cast.organisationId}-verify-${scene.deliverable}`,
      body: { source_url: source },
    },
    200,
  );
  const [check] = demo.server.ctx.store.reader.checks.of(opened.id);
  if (!check) throw new Error(`${scene.name} left no record of its check`);
  tellClauses(demo, check);
  tellDecision(demo, check);
  checkScene(scene, settled, check);
  tellOutcome(demo, settled);
  return settled;
}

/** The body of an open: the same promise each time, for a month, in the agent's name. */
export const warrantFor = ({ cast }: Demo, amount: bigint) => ({
  amount: `${amount}`,
  payee: PAYEE,
  deadline: new Date(Date.now() + 30 * 24 * 3_600_000).toISOString(),
  agent_id: cast.agentId,
  spec: { clauses: CLAUSES },
});

function checkScene(scene: Scene, settled: WarrantBody, check: Check): void {
  const codes = check.details.map((detail) => detail.reason_code);
  same(`the clauses of ${scene.name}`, codes, scene.codes);
  same(`the state of ${scene.name}`, settled.state, scene.state);
}

async function checkBooks(demo: Demo, after: string, wanted: Books): Promise<Books> {
  const books = await readBooks(demo.server.ctx, demo.cast);
  same(`the balance after ${after}`, books, wanted);
  return books;
}

/** The key is refused what only a person may do; the owner signs in and decides. */
async function decideAsOwner(demo: Demo, client: Client, warrantId: string): Promise<void> {
  const { paint, print, cast } = demo;
  print(`\n${paint.bold("A person decides what the policy left open")}`);
  const release = { method: "POST", path: `/v1/warrants/${warrantId}/release` } as const;
  const refused = await client.send<{ error: { code: string } }>(
    { ...release, as: bearer(cast.apiKey), idempotencyKey: `${cast.organisationId}-not-allowed` },
    403,
  );
  same("the answer to the agent's key", refused.error.code, "user_session_required");
  print(`  ${paint.quiet(`POST ${release.path}`)}`);
  print(`    ${paint.fail} with the agent's key: 403 ${paint.bad(refused.error.code)}`);
  print(`  ${paint.quiet("POST /auth/session")}`);
  const as = await client.signIn(cast.owner.email, cast.owner.password);
  print(`    ${paint.pass} ${cast.owner.email} signs in`);
  const { releasedBps, note } = JUDGEMENT;
  const path = `/v1/console/escalations/${warrantId}/resolve`;
  const { warrant } = await client.send<{ warrant: WarrantBody }>(
    {
      method: "POST",
      path,
      as,
      idempotencyKey: `${cast.organisationId}-decide`,
      body: { decision: "partial_release", released_bps: releasedBps, note },
    },
    200,
  );
  print(`  ${paint.quiet(`POST ${path}`)}`);
  print(`    "${note}"`);
  same("the state after the owner's decision", warrant.state, JUDGEMENT.state);
  tellOutcome(demo, warrant);
}
