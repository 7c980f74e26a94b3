/** Requests that need a place, and how long their answers took. */

const SPEC = { clauses: [{ kind: "http.status", equals: 200 }] };

export type Reply = { readonly status: number; readonly retryAfter: string | null; readonly ms: number };

export function clientOf(url: string, source: string) {
  async function post(path: string, key: string, body: object): Promise<Response> {
    return fetch(`${url}${path}`, {
      method: "POST",
      headers: {
        Authorization: `Bearer ${key}`,
        "Content-Type": "application/json",
        "Idempotency-Key": crypto.randomUUID(),
      },
      body: JSON.stringify(body),
    });
  }
  async function timed(send: () => Promise<Response>): Promise<Reply> {
    const startedAt = performance.now();
    const response = await send();
    await response.arrayBuffer();
    const { status, headers } = response;
    return { status, retryAfter: headers.get("retry-after"), ms: performance.now() - startedAt };
  }
  return {
    buy: (key: string, pace: string): Promise<Reply> =>
      timed(() => post("/v1/x402/pay", key, { url: `${source}/${pace}`, max_amount: "1", spec: SPEC })),
    async check(key: string, pace: string): Promise<Reply> {
      const deadline = new Date(Date.now() + 3_600_000).toISOString();
      const opened = await post("/v1/warrants", key, { amount: "1", payee: "seller", deadline, spec: SPEC });
      const { id } = (await opened.json()) as { readonly id: string };
      return timed(() => post(`/v1/warrants/${id}/verify`, key, { source_url: `${source}/${pace}` }));
    },
  };
}

/** Sends again after each answer, as soon as it allows, and answers them all. */
export async function again(until: number, send: () => Promise<Reply>): Promise<Reply[]> {
  const replies: Reply[] = [];
  while (performance.now() < until) {
    const reply = await send();
    replies.push(reply);
    await Bun.sleep(1_000 * Number(reply.retryAfter ?? 0));
  }
  return replies;
}
