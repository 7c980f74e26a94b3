import { afterEach, beforeEach, describe, expect, spyOn, test } from "bun:test";
import { getServers, setServers } from "node:dns";
import { readFile } from "node:fs/promises";
import { createAddressRules } from "../../src/platform/addresses.ts";
import { RequestFailure, requestSafely } from "../../src/platform/safe-request.ts";

/** Names that no name server answers, and names that need none. `fetcher.test.ts` has the sources that answer. */

const rules = createAddressRules(["127.0.0.0/8"]);
let source: Bun.Server<undefined>;
let nameServer: Bun.udp.Socket<"buffer">;
let asked: PromiseWithResolvers<void>;
let known: readonly string[];
beforeEach(async () => {
  asked = Promise.withResolvers();
  source = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response("hello") });
  // It receives every question, and answers none.
  nameServer = await Bun.udpSocket({ hostname: "127.0.0.1", socket: { data: () => asked.resolve() } });
  known = getServers();
  setServers([`127.0.0.1:${nameServer.port}`]);
});
afterEach(async () => {
  setServers(known);
  nameServer.close();
  await source.stop(true);
});

/** The text of an answer, or why there is none. */
const ask = (host: string, signal: AbortSignal): Promise<string> =>
  requestSafely({ rules }, { url: new URL(`http://${host}:${source.port}/`), signal }).then(
    (response) => response.text(),
    (error) => {
      if (!(error instanceof RequestFailure)) throw error;
      return `${error.code} ${error.connected}`;
    },
  );

describe("a name server that does not answer", () => {
  test("holds up nothing else: neither files nor passwords nor other names", async () => {
    const deadline = new AbortController();
    const hanging = Array.from({ length: 32 }, (_, index) => ask(`h${index}.example.com`, deadline.signal));
    await asked.promise;
    expect(await ask("localhost", deadline.signal)).toBe("hello");
    await Promise.all([readFile(import.meta.path), Bun.password.hash("secret")]);
    deadline.abort();
    expect(new Set(await Promise.all(hanging))).toEqual(new Set(["source_timeout false"]));
  });

  test("is a timeout, also where the resolver gives up first, after some 20 s", async () => {
    const lookup = spyOn(Bun.dns, "lookup").mockRejectedValue({ code: "DNS_ETIMEOUT" });
    try {
      expect(await ask("silent.example.com", new AbortController().signal)).toBe("source_timeout false");
    } finally {
      lookup.mockRestore();
    }
  });
});

test("a name that does not exist is unreachable", async () => {
  setServers(known);
  expect(await ask("nobody.invalid", new AbortController().signal)).toBe("source_unreachable false");
});
