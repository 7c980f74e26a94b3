import { again, clientOf } from "./asking.ts";
import type { Party } from "./places.ts";

/** A process of its own: sends slow purchases and checks of some organisations for a while, and prints the answers. */

/** What each organisation has under way, in each mode. */
const SLOW = 128;

type Given = {
  readonly url: string;
  readonly source: string;
  readonly parties: readonly Party[];
  readonly forMs: number;
};
const { url, source, parties, forMs } = JSON.parse(process.argv[2] ?? "") as Given;
const client = clientOf(url, source);
const until = performance.now() + forMs;
const replies = await Promise.all(
  parties.flatMap((party) =>
    Array.from({ length: SLOW }, () => [
      again(until, () => client.buy(party.sandbox, "slow")),
      again(until, () => client.check(party.live, "slow")),
    ]).flat(),
  ),
);
await Bun.write(Bun.stdout, JSON.stringify(replies.flat()));
