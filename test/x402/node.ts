import { type Answer, type Listener, listen } from "./listener.ts";

/** What a node is asked. `count` is 1 for the first call of its method. */
export type NodeCall = {
  readonly method: string;
  readonly params: readonly unknown[];
  readonly count: number;
};

/** How a node reacts to a call. */
export type Reaction =
  /** It asks the chain, and passes the answer on. */
  | "forward"
  /** It takes the call, and says nothing. */
  | "never"
  /** It closes the connection, and asks nobody. */
  | "dropped"
  /** It asks the chain, and its answer is lost. */
  | "forward, never"
  | "forward, dropped"
  /** It asks the chain, and something happens before anybody has the answer. */
  | { readonly forwardThen: () => Promise<unknown> }
  /** It asks the chain twice, and passes the second answer on. */
  | "forward twice"
  /** Its answer is the one to the call of that method before. */
  | "stale"
  /** It answers something of its own. */
  | { readonly result: unknown }
  | { readonly error: { readonly code: number; readonly message: string } }
  | { readonly status: number; readonly body: string };

/** A node between a service and the chain, which also does what a bad one does. */
export type Node = Listener & {
  /** All calls so far. */
  readonly calls: readonly NodeCall[];
  /** The signed transactions that it was sent, in order, each time. */
  readonly sent: readonly string[];
  /** From now on it reacts so. It may wait, and do something, before it says how. */
  react(how: (call: NodeCall) => Reaction | Promise<Reaction>): void;
  /** From now on it is a good one. */
  recover(): void;
};

/** What a bad node does to any call that it is asked. */
export const BAD_REACTIONS: readonly Reaction[] = [
  ...(["never", "dropped", "forward, dropped", "forward twice", "stale"] as const),
  { error: { code: -32_603, message: "internal error" } },
  ...[null, [], "garbage", "0x0", "0x1"].map((result) => ({ result })),
  { status: 200, body: "garbage" },
  { status: 503, body: "" },
];

const isGood = (): Reaction => "forward";

export async function startNode({ url }: { readonly url: string }): Promise<Node> {
  const calls: NodeCall[] = [];
  const sent: string[] = [];
  const answers = new Map<string, string>();
  let how: (call: NodeCall) => Reaction | Promise<Reaction> = isGood;

  async function forward(method: string, body: string): Promise<string> {
    const reply = await fetch(url, { method: "POST", headers: { "Content-Type": "application/json" }, body });
    const text = await reply.text();
    answers.set(method, text);
    return text;
  }

  const listener = await listen(async (request): Promise<Answer> => {
    const body = await request.text();
    const { id, method, params = [] } = JSON.parse(body);
    const call = { method, params, count: 1 + calls.filter((one) => one.method === method).length };
    calls.push(call);
    if (method === "eth_sendRawTransaction") sent.push(params[0]);
    const own = (rest: object) => Response.json({ jsonrpc: "2.0", id, ...rest });
    const reaction = await how(call);
    switch (reaction) {
      case "never":
      case "dropped":
        return reaction;
      case "forward, never":
      case "forward, dropped":
        await forward(method, body);
        return reaction === "forward, never" ? "never" : "dropped";
      case "forward twice":
        await forward(method, body);
        return new Response(await forward(method, body), { headers: JSON_TYPE });
      case "forward":
        return new Response(await forward(method, body), { headers: JSON_TYPE });
      case "stale": {
        const { result, error } = JSON.parse(answers.get(method) ?? (await forward(method, body)));
        return own(error ? { error } : { result });
      }
    }
    if ("forwardThen" in reaction) {
      await forward(method, body);
      await reaction.forwardThen();
      return "dropped";
    }
    if ("body" in reaction) return new Response(reaction.body, { status: reaction.status });
    return own(reaction);
  });
  return {
    ...listener,
    calls,
    sent,
    react(next) {
      how = next;
    },
    recover() {
      how = isGood;
    },
  };
}

const JSON_TYPE = { "Content-Type": "application/json" };
