import { backTest, type Flip, type ReleasedMore, withFlip } from "../../core/back-test.ts";
import { type Refusal, refuse } from "../../core/errors.ts";
import { createTally } from "../../core/places.ts";
import type { PolicyRules } from "../../core/policy.ts";
import { ACCESS, type PersonCaller, refuseAccess } from "../../core/roles.ts";
import type { Context } from "../context.ts";
import { fromCopy } from "../from-copy.ts";

/** What a draft of a policy would have made of the stored checks. */
export type BackTest = {
  /** How many checks it looked at. */
  readonly looked: number;
  /** Whether there are older ones, at which it did not look. */
  readonly isPartial: boolean;
  /** How many the draft decides differently. */
  readonly flipped: number;
  /** A page of these, newest warrants first. */
  readonly flips: readonly Flip[];
  readonly released: ReleasedMore;
};

export type BackTestAsked = {
  readonly rules: PolicyRules;
  /** The agent whose warrants alone the draft is for; null for the organisation. */
  readonly agentId: string | null;
  /** How many flips come before the page. */
  readonly offset: number;
};

/** How many checks one back-test looks at, and how many warrants for them, of which people may have settled some unchecked. */
const CHECKS_MAX = 5_000;
const WARRANTS_MAX = 10_000;
/** How many warrants are read at once. Between two steps whatever else waits has its turn. */
const STEP = 250;
/** How many flips a page lists. */
export const FLIPS_LISTED = 50;
/** How many back-tests run at once. An organisation has a part of them, and the sandbox half at most. */
const RUNNING_MAX = 8;

export type BackTests = ReturnType<typeof createBackTests>;

/** Runs back-tests, few at a time, each in small steps: what others ask meanwhile is answered between them. */
export function createBackTests(stepWarrants = STEP, checksMax = CHECKS_MAX) {
  const running = createTally(RUNNING_MAX);

  async function run(
    given: Context,
    caller: PersonCaller,
    { rules, agentId, offset }: BackTestAsked,
    gone: AbortSignal,
  ): Promise<BackTest> {
    const ctx = fromCopy(given);
    const organisation = await ctx.store.read((reader) => reader.organisations.get(caller.organisationId));
    const threshold = organisation?.passkeyThreshold ?? null;
    const flips: Flip[] = [];
    let [looked, flipped, warrants, released] = [0, 0, 0, new Map() as ReleasedMore];
    let before: number | null = null;
    do {
      const { checks, last } = await ctx.store.read((reader) =>
        reader.checks.decided(caller, agentId, before, stepWarrants),
      );
      for (const check of checks.slice(0, checksMax - looked)) {
        const flip = backTest(rules, check, threshold);
        if (flip === null) continue;
        if (flipped >= offset && flips.length < FLIPS_LISTED) flips.push(flip);
        released = withFlip(released, flip);
        flipped += 1;
      }
      const isCut = checks.length > checksMax - looked;
      looked = Math.min(checksMax, looked + checks.length);
      warrants += stepWarrants;
      before = last;
      if (isCut) return { looked, isPartial: true, flipped, flips, released };
      await new Promise(setImmediate);
    } while (before !== null && looked < checksMax && warrants < WARRANTS_MAX && !gone.aborted);
    return { looked, isPartial: before !== null, flipped, flips, released };
  }

  return {
    /** @param gone aborts where the browser leaves: then it stops */
    async run(
      ctx: Context,
      caller: PersonCaller,
      asked: BackTestAsked,
      gone: AbortSignal,
    ): Promise<BackTest | Refusal> {
      const refused = refuseAccess(caller, ACCESS.administer);
      if (refused) return refused;
      const party = { organisationId: caller.organisationId, mode: caller.mode };
      if (!running.fits(party)) return TOO_MANY;
      running.add(party);
      try {
        return await run(ctx, caller, asked, gone);
      } finally {
        running.remove(party);
      }
    },
  };
}

const TOO_MANY = refuse("rate_limit_exceeded", "Other back-tests are running. Try again in a moment.");
