/** A client of Holdfast as anybody could write it: HTTP with JSON bodies. */
export type Client = {
  /** Sends one request and answers the body. Throws where the status is another. */
  send<Body>(request: ClientRequest, status: number): Promise<Body>;
  /** Signs a person in to the sandbox. The answer is the headers that identify them from then on. */
  signIn(email: string, password: string): Promise<Credentials>;
};

export type Credentials = Readonly<Record<string, string>>;

export type ClientRequest = {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly as?: Credentials;
  /** The same key for every retry of a request. */
  readonly idempotencyKey?: string;
  readonly body?: object;
};

const TIMEOUT_MS = 30_000;

/** The paths that the tour calls, and prints. */
export const PATHS = {
  warrants: "/v1/warrants",
  warrant: (id: string) => `/v1/warrants/${id}`,
  verify: (id: string) => `/v1/warrants/${id}/verify`,
  release: (id: string) => `/v1/warrants/${id}/release`,
  trace: (id: string) => `/v1/warrants/${id}/trace`,
  resolve: (id: string) => `/v1/console/escalations/${id}/resolve`,
  receipt: (id: string) => `/t/${id}`,
  signIn: "/auth/session",
  pay: "/v1/x402/pay",
  keys: "/.well-known/jwks.json",
  bench: "/bench/run",
} as const;

export const bearer = (apiKey: string): Credentials => ({ Authorization: `Bearer ${apiKey}` });

export function createClient(url: string): Client {
  async function request({ method, path, as, idempotencyKey, body }: ClientRequest, status: number) {
    const response = await fetch(url + path, {
      method,
      headers: {
        ...as,
        ...(idempotencyKey !== undefined && { "Idempotency-Key": idempotencyKey }),
        ...(body && { "Content-Type": "application/json" }),
      },
      body: body ? JSON.stringify(body) : null,
      signal: AbortSignal.timeout(TIMEOUT_MS),
      proxy: false,
    });
    if (response.status !== status) {
      throw new Error(`${method} ${path} answered ${response.status}: ${await response.text()}`);
    }
    return response;
  }
  return {
    send: async <Body>(sent: ClientRequest, status: number) =>
      (await request(sent, status)).json() as Promise<Body>,
    async signIn(email, password) {
      const body = { email, password, mode: "sandbox" };
      const response = await request({ method: "POST", path: PATHS.signIn, body }, 201);
      const cookie = response.headers.getSetCookie()[0]?.split(";")[0];
      if (cookie === undefined) throw new Error("the sign-in set no cookie");
      return { Cookie: cookie };
    },
  };
}
