import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Holding } from "../../src/core/solvency/judgement.ts";
import { checkProof } from "../../src/core/solvency/proof.ts";
import { chainOfMode } from "../../src/core/x402/chains.ts";
import { signStatement } from "../../src/services/solvency/sign.ts";
import { openConsole } from "../support/console.ts";
import { must, type TestOrganisation } from "../support/organisations.ts";
import { type Service, startTestServer } from "../support/server.ts";

/** What the console shows of the newest statement of solvency: one's own part of it, and the proof of that. */

const PAGE = "/console/money/solvency";

let service: Service;
beforeAll(async () => {
  service = await startTestServer();
});
afterAll(() => service?.close());

async function released(of: TestOrganisation, payee: string, amount: string): Promise<void> {
  const { id } = await service.opened(of, { payee, amount });
  const reply = await service.post(`/v1/warrants/${id}/release`, {}, { as: of.people.operator.as });
  expect(reply.status).toBe(200);
}

test("the page shows one's own part of the newest statement, as it was, and gives its proof", async () => {
  const [home, other] = [await service.organisation(5_000_000n), await service.organisation(7_000_000n)];
  await released(home, "acme", "1500000");
  await released(other, "theirs", "2000000");
  const browser = openConsole(service, home.people.viewer.as);
  expect((await browser.get(PAGE)).text).toContain("No statement was signed yet");
  expect((await browser.get(`${PAGE}/proof`)).status).toBe(404);
  const { entryHash } = must(await signStatement(service.ctx));
  await released(home, "acme", "500000");

  const page = await browser.get(PAGE);
  for (const shown of ["The statement 1", entryHash, "3.50 USDC", "1.50 USDC", "12.00 USDC"])
    expect(page.text).toContain(shown);
  for (const hidden of ["theirs", " 2.00 USDC", " 5.00 USDC"]) expect(page.text).not.toContain(hidden);
  const published = await (await fetch(`${service.url}/.well-known/holdfast/solvency/1`)).text();
  expect(new Bun.CryptoHasher("sha256").update(published).digest("hex")).toBe(entryHash);

  const own = async (query: string) => {
    const answer = await service.get(`${PAGE}/proof${query}`, { as: home.people.viewer.as });
    expect(answer.headers.get("content-disposition")).toBe(
      'attachment; filename="holdfast-live-solvency.json"',
    );
    const { problems, leaves } = await checkProof(answer.text, service.ctx.tokens.jwks);
    return [problems, leaves.map(({ organisation_id, payee, amount }) => [organisation_id, payee, amount])];
  };
  expect(await own("")).toEqual([[], [[home.id, null, "3500000"]]]);
  expect(await own("?payee=acme")).toEqual([[], [[home.id, "acme", "1500000"]]]);
  expect((await browser.get(`${PAGE}/proof?payee=theirs`)).status).toBe(404);
});

test("what is owed of each asset stands beside what its wallet held, with the block", async () => {
  const home = await service.organisation(1_000_000n);
  const treasury = {
    ...({ mode: "live", chainId: chainOfMode("live", 8_453)!, asset: "USDC" } as const),
    ...{ token: `0x${"ab".repeat(20)}`, address: `0x${"cd".repeat(20)}` },
    limits: { payoutMax: 0n, dayMax: 0n },
  };
  const signsWith = async (held: Holding | { away: "timeout" }) =>
    must(await signStatement({ ...service.ctx, treasuries: [treasury], holdingOf: async () => held }));
  const shown = async () => (await openConsole(service, home.people.viewer.as).get(PAGE)).text;
  const holding = {
    balance: 77_250_000n,
    block: 4_711,
    blockHash: `0x${"ef".repeat(32)}`,
    blockTime: 0,
    newestTime: 0,
  };
  await signsWith(holding);
  const text = await shown();
  for (const part of ["77.25 USDC", "4711", treasury.address]) expect(text).toContain(part);
  await signsWith({ away: "timeout" });
  expect(await shown()).toMatch(/the chain did not say/);
});
