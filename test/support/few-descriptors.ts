/**
 * A process that has taken every descriptor that it can get, as strangers' connections would. Its arguments
 * say whether it keeps the reserve, and what to fetch. It prints what it can still open.
 */
import { openSync } from "node:fs";
import { createAddressRules } from "../../src/platform/addresses.ts";
import { descriptorLimit, holdReserve, startFetching, withReserve } from "../../src/platform/descriptors.ts";
import { RequestFailure, requestSafely } from "../../src/platform/safe-request.ts";
import { createWebhookSender } from "../../src/platform/webhook-sender.ts";

const [kept, url = ""] = process.argv.slice(2);
const limit = descriptorLimit() ?? 0;
const controller = new AbortController();
const fetchOnce = (): Promise<string> =>
  requestSafely(
    { rules: createAddressRules(["127.0.0.0/8"]) },
    { url: new URL(url), signal: controller.signal },
  ).then(
    ({ status }) => `answered ${status}`,
    (error) =>
      error instanceof RequestFailure ? `${error.code}, connected: ${error.connected}` : String(error),
  );

/** Longer than it takes until the length of answers is looked at, which needs a descriptor too. */
const LOOKED_AT_MS = 600;

/** What comes of an attempt of a webhook. */
const attempted = async (): Promise<number | string | null> => {
  const sender = createWebhookSender({ allowNetworks: ["127.0.0.0/8"], timeoutMs: 10_000 });
  const { code, responseStart } = await sender.send({ url, headers: {}, body: "{}" });
  return code ?? responseStart;
};

/** What comes of many fetches, each outcome once: another thread opens their sockets, now sooner and now later. */
async function fetched(): Promise<string[]> {
  const outcomes = new Set<string>();
  for (let fetches = 0; fetches < 100; fetches++) outcomes.add(await fetchOnce());
  return [...outcomes];
}

await startFetching();
if (kept === "reserve") holdReserve(limit);
let taken = 0;
try {
  for (;;) {
    openSync("/dev/null", "r");
    taken += 1;
  }
} catch {
  // None is left.
}
const opened = (): boolean => {
  try {
    return withReserve("this thread", () => openSync("/dev/null", "r")) > 0;
  } catch {
    return false;
  }
};
const left = limit - taken;
console.log(
  JSON.stringify({ left, opened: opened(), fetched: await fetched(), attempted: await attempted() }),
);
await Bun.sleep(LOOKED_AT_MS);
process.exit(0);
