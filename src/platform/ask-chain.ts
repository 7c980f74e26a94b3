import { BaseError, type Client, createClient, HttpRequestError, http, TimeoutError } from "viem";
import { getChainId } from "viem/actions";
import { SECOND_MS } from "../core/time.ts";
import { caip2Of } from "../core/x402/chains.ts";
import { logUnverified } from "./certificates.ts";
import { withReserve } from "./descriptors.ts";

/**
 * Why nothing is known. `none`: there is no endpoint to ask. `timeout`: no answer in time. `unreachable`: no connection, or no
 * JSON-RPC there. `wrong_chain`: the endpoint is of another chain. `no_answer`: an error, or what was asked for is missing.
 */
export type Away = { readonly away: "none" | "timeout" | "unreachable" | "wrong_chain" | "no_answer" };

export type AskOptions = {
  /** The time limit of one request. */
  readonly timeoutMs?: number;
  /** How often a request is tried again, after a short wait that doubles each time. */
  readonly retries?: number;
  readonly retryDelayMs?: number;
};

/** Asks the operator's endpoint of a chain. It never throws: a chain that does not answer is `Away`. */
export type ChainAsker = <Answer>(
  chainId: number,
  question: (client: Client) => Promise<Answer>,
) => Promise<Answer | Away>;

const TIMEOUT_MS = 5 * SECOND_MS;
const RETRIES = 3;
const RETRY_DELAY_MS = 200;

/** `endpoints` are JSON-RPC URLs by chain id. Nothing is asked before the first question. */
export function createChainAsker(
  endpoints: ReadonlyMap<number, string>,
  { timeoutMs = TIMEOUT_MS, retries = RETRIES, retryDelayMs = RETRY_DELAY_MS }: AskOptions = {},
): ChainAsker {
  const clients = new Map<number, Client>();
  const checked = new Set<number>();

  const clientOf = (chainId: number, url: string): Client => {
    const known = clients.get(chainId);
    if (known) return known;
    const transport = http(url, {
      timeout: timeoutMs,
      retryCount: retries,
      retryDelay: retryDelayMs,
      fetchOptions: { redirect: "error" },
      fetchFn: (input, init) =>
        withReserve("another", () => fetch(input, init)).catch((error: unknown) => {
          // The chain's name, since the endpoint's URL may hold a key.
          logUnverified(error, caip2Of(chainId));
          throw error;
        }),
    });
    const client = createClient({ transport });
    clients.set(chainId, client);
    return client;
  };

  return async (chainId, question) => {
    const url = endpoints.get(chainId);
    if (url === undefined) return { away: "none" };
    const client = clientOf(chainId, url);
    try {
      // The endpoint has to confirm its chain first: the answer of another chain would be wrong.
      if (!checked.has(chainId)) {
        if ((await getChainId(client)) !== chainId) return { away: "wrong_chain" };
        checked.add(chainId);
      }
      return await question(client);
    } catch (error) {
      return { away: reasonOf(error) };
    }
  };
}

/** viem wraps the cause of an error. Its messages hold the endpoint's URL, which may hold a key, so they are not passed on. */
function reasonOf(error: unknown): Away["away"] {
  if (!(error instanceof BaseError)) return "no_answer";
  if (error.walk((cause) => cause instanceof TimeoutError) !== null) return "timeout";
  return error.walk((cause) => cause instanceof HttpRequestError) === null ? "no_answer" : "unreachable";
}
