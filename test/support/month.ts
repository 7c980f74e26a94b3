import { UNSEEN_ANSWER } from "../../src/core/capsule.ts";
import { reachedEvidence, unreachedEvidence } from "../../src/core/clauses/evidence.ts";
import type { KeyCaller } from "../../src/core/roles.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { fundBalance } from "../../src/services/admin/balances.ts";
import { createOrganisation } from "../../src/services/admin/organisations.ts";
import type { FetchedEvidence } from "../../src/services/context.ts";
import { verifyWarrant } from "../../src/services/warrants/verify.ts";
import { createTestContext, type TestContext } from "./context.ts";
import {
  createCaller,
  idempotencyOf,
  must,
  open,
  type Stage,
  settle,
  signedIn,
  type WarrantBody,
  warrantIn,
} from "./stage.ts";

/** A month of an organisation that buys forecasts: what the pictures of the documentation show. It is the same each time. */

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
const DAYS = 29;

const CLAUSES = [
  { kind: "http.status", equals: 200 },
  { kind: "json.jsonpath", path: "$.city", equals: "Lisbon" },
  { kind: "json.jsonpath", path: "$.days[4].high" },
  { kind: "data.freshness", maxAgeSeconds: 3600 },
];
const SELLERS = ["Meridian Forecasts", "Harbour Weather", "Atlas Climate", "Lumen Data"];
/** What is wrong with a deliverable. Most are good. */
const FLAWS = ["short", "stale", "other city", "missing", "slow", "short", "stale", "short"] as const;
type Flaw = (typeof FLAWS)[number];

const DAY = { high: 17, low: 11, rain: 0.2 };

const FETCH_MS = 214;

/** What a source answers, some time after it was asked. The fragment of its URL says what is wrong with it. */
function answerOf(url: string, clock: TestContext["clock"]): FetchedEvidence {
  clock.now += FETCH_MS;
  const flaw = decodeURIComponent(new URL(url).hash.slice(1)) as Flaw | "";
  const seen = { durationMs: FETCH_MS, answer: UNSEEN_ANSWER };
  if (flaw === "slow")
    return { ...seen, evidence: unreachedEvidence("source_timeout"), status: null, bytes: 0 };
  const body = Buffer.from(
    JSON.stringify({
      city: flaw === "other city" ? "Lima" : "Lisbon",
      generated_at: new Date(clock.now - (flaw === "stale" ? 9 * 60 : 4) * MINUTE_MS).toISOString(),
      days: Array.from({ length: flaw === "short" ? 3 : 5 }, () => DAY),
    }),
  );
  const status = flaw === "missing" ? 404 : 200;
  return { ...seen, evidence: reachedEvidence({ status, body }), status, bytes: body.length };
}

/** Numbers from 0 to 1 that look random, and are the same each time. */
function numbers(): () => number {
  let last = 7;
  return () => {
    last = (last * 16_807) % 2_147_483_647;
    return last / 2_147_483_647;
  };
}

type Month = {
  readonly ctx: TestContext;
  readonly organisationId: string;
  /** The newest warrant that was released. */
  readonly released: WarrantBody;
};

/**
 * Plays the month into a new ledger, up to some minutes before `now`, epoch ms. Three warrants wait for a person, and some are
 * held. Whoever starts a server on the context's folder closes its store first.
 */
export async function playMonth(now: number): Promise<Month> {
  const ctx: TestContext = createTestContext({ fetchEvidence: async (url) => answerOf(url, ctx.clock) });
  const to = (time: number): void => {
    ctx.clock.now = time;
  };
  to(now - DAYS * DAY_MS);
  const { stage, buyer } = await northwind(ctx);
  const random = numbers();
  let released: WarrantBody | null = null;
  const buy = async (
    flaw: Flaw | null,
    payee = SELLERS[Math.floor(random() * SELLERS.length)]!,
    quarters = 1 + Math.floor(random() * 119),
  ): Promise<WarrantBody> => {
    const { id } = await opened(stage, buyer, payee, quarters);
    to(ctx.now() + 2 * FETCH_MS);
    const sourceUrl = `https://${payee.split(" ")[0]!.toLowerCase()}.example/lisbon#${flaw ?? ""}`;
    return warrantIn(
      await verifyWarrant(ctx, buyer, { warrantId: id, sourceUrl, ifMatch: null }, idempotencyOf()),
    );
  };
  for (let day = DAYS - 1; day >= 1; day--) {
    const count = 3 + Math.floor(random() * 6);
    for (let one = 0; one < count; one++) {
      to(now - day * DAY_MS + one * 40 * MINUTE_MS);
      const flaw = random() < 0.15 ? FLAWS[Math.floor(random() * FLAWS.length)]! : null;
      const { id, state } = await buy(flaw);
      if (state !== "escalated") continue;
      to(ctx.now() + 20 * MINUTE_MS);
      const [decision, releasedBps] =
        random() < 0.5 ? (["refund", null] as const) : (["partial_release", 6000] as const);
      must(await settle(stage, stage.owner, id, decision, { releasedBps }));
    }
  }
  for (const [minutes, flaw, payee, quarters] of LAST_HOURS) {
    to(now - minutes * MINUTE_MS);
    const warrant = await buy(flaw, payee, quarters);
    if (warrant.state === "released") released = warrant;
  }
  for (const payee of SELLERS) await opened(stage, buyer, payee, 24);
  if (!released) throw new Error("nothing was released");
  return { ctx, organisationId: stage.organisationId, released };
}

/** How many minutes ago, what was wrong, of whom, and the amount in quarters of a USDC. */
const LAST_HOURS: readonly (readonly [number, Flaw | null, string, number])[] = [
  [310, "short", "Meridian Forecasts", 192],
  [250, null, "Harbour Weather", 70],
  [130, "stale", "Atlas Climate", 83],
  [75, null, "Lumen Data", 34],
  [40, "other city", "Harbour Weather", 117],
  [12, null, "Meridian Forecasts", 81],
];

async function northwind(ctx: TestContext): Promise<{ readonly stage: Stage; readonly buyer: KeyCaller }> {
  const { organisation, owner: user } = must(
    await createOrganisation(ctx, {
      name: "Northwind",
      owner_email: "grace@northwind.example",
      owner_password: "correct horse battery staple",
    }),
  );
  const at = { organisationId: organisation.id, mode: "live" } as const;
  must(
    await fundBalance(ctx, MACHINE, {
      organisation_id: organisation.id,
      mode: "live",
      amount: "12000000000",
    }),
  );
  const owner = await signedIn(ctx, { kind: "person", userId: user.id, role: "owner", ...at });
  const stage = { ctx, ...at, operator: owner, admin: owner, owner };
  return { stage, buyer: await createCaller(stage, { name: "planner" }) };
}

/** @param quarters the amount, in quarters of a USDC */
const opened = async (
  stage: Stage,
  buyer: KeyCaller,
  payee: string,
  quarters: number,
): Promise<WarrantBody> =>
  warrantIn(
    await open(stage, buyer, {
      payee,
      amount: String(quarters * 250_000),
      deadline: new Date(stage.ctx.now() + 5 * DAY_MS).toISOString(),
      spec: { clauses: CLAUSES },
    }),
  );
