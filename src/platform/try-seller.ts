import { isoTime } from "../core/time.ts";
import type { EvidenceOwner } from "./evidence-room.ts";
import { createFetcher, type Fetched, type FetcherOptions } from "./fetcher.ts";

type Seller = {
  readonly url: string;
  readonly fetchEvidence: (
    url: string,
    owner: EvidenceOwner,
    mayFollow: (target: URL) => boolean,
  ) => Promise<Fetched>;
};

/** What the seller delivers: a forecast that is as old as the request. */
const forecast = () => ({ city: "Oslo", generated_at: isoTime(Date.now()), days: 7 });

/**
 * Runs a seller at a free port of the loopback address while some work is done, so that the first warrant of a sandbox is
 * fetched and checked like any other, without the internet. It has a fetcher of its own: that of all other checks refuses
 * loopback addresses.
 */
export const createTrySeller =
  (options: Pick<FetcherOptions, "budget" | "timeoutMs" | "ownListeners">) =>
  async <Answer>(work: (seller: Seller) => Promise<Answer>): Promise<Answer> => {
    const { fetch } = createFetcher({ ...options, allowNetworks: ["127.0.0.1/32"] });
    const server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => Response.json(forecast()) });
    try {
      return await work({ url: `http://127.0.0.1:${server.port}/forecast.json`, fetchEvidence: fetch });
    } finally {
      await server.stop(true);
    }
  };
