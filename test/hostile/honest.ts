import { DAY_MS } from "../bench/load.ts";
import { opening } from "../bench/opening.ts";

/** Opens a warrant and verifies it. Answers its state, or the code of the error. Throws where there is no answer. */
export async function verified(
  url: string,
  secret: string,
  source: string,
  limitMs: number,
): Promise<string> {
  const post = async (path: string, body: unknown) => {
    const response = await fetch(url + path, {
      method: "POST",
      headers: {
        Authorization: `Bearer ${secret}`,
        "Content-Type": "application/json",
        "Idempotency-Key": crypto.randomUUID(),
      },
      body: JSON.stringify(body),
      keepalive: false,
      signal: AbortSignal.timeout(limitMs),
    });
    return (await response.json()) as Answered;
  };
  const { id } = await post("/v1/warrants", opening(Date.now() + DAY_MS));
  const { state, error } = await post(`/v1/warrants/${id}/verify`, { source_url: source });
  return state ?? error?.code ?? "nothing";
}

type Answered = {
  readonly id: string;
  readonly state?: string;
  readonly error?: { readonly code: string };
};
