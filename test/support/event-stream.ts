/** A reader of server-sent events, as a browser's EventSource reads them. */

export type ServerEvent = { readonly type: string; readonly id: string; readonly data: string };

export type EventReader = {
  readonly status: number;
  readonly headers: Headers;
  /** The next event; null at the end of the stream. */
  next(): Promise<ServerEvent | null>;
  /** The names in the next `changed`; null where anything may have changed. */
  nextNames(): Promise<readonly string[] | null>;
  /** Closes the connection. */
  leave(): void;
};

export async function readEvents(
  url: string,
  headers: Readonly<Record<string, string>>,
): Promise<EventReader> {
  const leaving = new AbortController();
  const response = await fetch(url, {
    headers: { Accept: "text/event-stream", ...headers },
    signal: leaving.signal,
  });
  const events = response.body ? eventsOf(response.body) : null;
  const next = async () => (await events?.next())?.value ?? null;
  return {
    status: response.status,
    headers: response.headers,
    next,
    async nextNames() {
      const event = await next();
      if (event?.type !== "changed") throw new Error(`not a change: ${JSON.stringify(event)}`);
      return (JSON.parse(event.data) as { readonly names: readonly string[] | null }).names;
    },
    leave: () => leaving.abort(),
  };
}

export async function* eventsOf(body: ReadableStream<Uint8Array>): AsyncGenerator<ServerEvent, null> {
  const decoder = new TextDecoder();
  let buffer = "";
  for await (const chunk of body as unknown as AsyncIterable<Uint8Array>) {
    buffer += decoder.decode(chunk, { stream: true });
    const blocks = buffer.split("\n\n");
    buffer = blocks.pop() ?? "";
    for (const block of blocks) {
      const fields = new Map(
        block.split("\n").map((line) => [line.split(":")[0] ?? "", line.slice(line.indexOf(":") + 2)]),
      );
      if (fields.has("data")) {
        yield {
          type: fields.get("event") ?? "message",
          id: fields.get("id") ?? "",
          data: fields.get("data") ?? "",
        };
      }
    }
  }
  return null;
}
