import { afterEach, beforeEach, expect, test } from "bun:test";
import { witnessJobs } from "../../src/app/witnessing.ts";
import { cosign, formatSignatureLine } from "../../src/core/signed-note.ts";
import { checkpointIn } from "../../src/core/witness.ts";
import { noteSignerOf } from "../../src/platform/note-keys.ts";
import type { WitnessAnswer } from "../../src/platform/witness-client.ts";
import { anchor } from "../../src/services/log/anchor.ts";
import { begunJobs } from "../support/begun-jobs.ts";
import { createTestContext, NO_WITNESSES, type TestContext } from "../support/context.ts";
import { createCaller, createStage, open } from "../support/stage.ts";

/** What the metrics say of the witnesses that are configured. */

const [one, other] = ["one", "other"].map((name, index) =>
  noteSignerOf(name, "cosignature", new Uint8Array(32).fill(index)),
);
let ctx: TestContext;
let isAway: boolean;
beforeEach(() => {
  isAway = false;
  ctx = createTestContext({
    witness: {
      ...NO_WITNESSES,
      witnesses: [one!, other!].map(({ key }) => ({ key, url: `https://${key.name}.example` })),
      async ask(url, body = ""): Promise<WitnessAnswer> {
        if (isAway || url.startsWith("https://other.")) return { failed: "source_timeout" };
        const { text } = checkpointIn(body.slice(body.indexOf("\n\n") + 2)).note;
        return { status: 200, text: formatSignatureLine(await cosign(text, one!.key, 1, one!.sign)) };
      },
    },
  });
});
afterEach(() => ctx.close());

test("without witnesses there is no job, and nothing is shown", async () => {
  const { jobs, figures } = witnessJobs({ ...ctx, witness: NO_WITNESSES });
  expect([jobs, await figures()]).toEqual([[], []]);
});

test("a witness has signed the newest checkpoint, or not yet; what it did not sign is counted", async () => {
  const { jobs, figures } = witnessJobs(ctx);
  const begun = begunJobs(jobs, ctx);
  const run = () => Promise.all(begun.map((job) => job.run()));
  const shown = async () =>
    (await figures()).map(({ hasSigned, failures }) => [hasSigned, failures.away ?? 0]);
  expect(await shown()).toEqual([
    [null, 0],
    [null, 0],
  ]);
  const stage = await createStage(ctx);
  const caller = await createCaller(stage);
  await open(stage, caller);
  await anchor(ctx);
  expect((await shown()).map(([hasSigned]) => hasSigned)).toEqual([false, false]);
  await run();
  expect(await shown()).toEqual([
    [true, 0],
    [false, 1],
  ]);
  // The next checkpoint is another one.
  await open(stage, caller);
  await anchor(ctx);
  isAway = true;
  await run();
  expect(await shown()).toEqual([
    [false, 1],
    [false, 1],
  ]);
});

test("each witness has a job of its own, so one that hangs holds up no other", async () => {
  const { jobs } = witnessJobs(ctx);
  expect(jobs.map(({ name }) => name)).toEqual(["witness one", "witness other"]);
});
