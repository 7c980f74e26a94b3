/** A source on 127.0.0.1 that gives the answers of a test. */
export type Source = {
  /** A URL that gives this answer (default status: 200). An object is sent as JSON. */
  gives(body: string | Uint8Array<ArrayBuffer> | object, init?: ResponseInit): string;
  /** A URL whose requests wait until `release` gives the answer. */
  holds(): Held;
  /** The paths that were asked for, in order. */
  readonly asked: readonly string[];
  stop(): void;
};

export type Held = {
  readonly url: string;
  /** Resolves when the first request has come. */
  readonly arrived: Promise<void>;
  /** Gives this answer to every request that waits, and to those that come later. */
  release(body: string, init?: ResponseInit): void;
};

export function startSource(): Source {
  const answers = new Map<string, (request: Request) => Response | Promise<Response>>();
  const asked: string[] = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    fetch(request) {
      const { pathname } = new URL(request.url);
      asked.push(pathname);
      return answers.get(pathname)?.(request) ?? new Response("nothing here", { status: 404 });
    },
  });
  const urlOf = (answer: (request: Request) => Response | Promise<Response>): string => {
    const path = `/${answers.size}`;
    answers.set(path, answer);
    return `http://127.0.0.1:${server.port}${path}`;
  };
  return {
    asked,
    gives(body, init) {
      const isRaw = typeof body === "string" || body instanceof Uint8Array;
      return urlOf(() => new Response(isRaw ? (body as string) : JSON.stringify(body), init));
    },
    holds() {
      const arrived = Promise.withResolvers<void>();
      const answered = Promise.withResolvers<() => Response>();
      const url = urlOf(async () => {
        arrived.resolve();
        return (await answered.promise)();
      });
      return {
        url,
        arrived: arrived.promise,
        release: (body, init) => answered.resolve(() => new Response(body, init)),
      };
    },
    stop: () => void server.stop(true),
  };
}
