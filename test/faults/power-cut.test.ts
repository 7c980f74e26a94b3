import { expect } from "bun:test";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createProgram, type Json, SOURCE } from "../crash/program.ts";
import { createClient } from "../support/client.ts";
import { canTrace, type Syncs, syncsIn, tracedInto } from "../support/file-syncs.ts";
import { onlyEmbedded } from "../support/only-embedded.ts";

const { afterAll, beforeAll, describe, test } = onlyEmbedded(import.meta.path);

/**
 * What was acknowledged is on disk: seen in the system calls, since no test can cut the power. Each step is one program, which
 * strace watches from its start to its end.
 */

const TEST_MS = 60_000;

describe.skipIf(!canTrace())("what was acknowledged survives a power cut (Debian's strace)", () => {
  let folder: string;
  let files: string;
  let organisation: Json;
  let steps = 0;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "holdfast-power-"));
    files = join(folder, "files");
    mkdirSync(join(files, "backups"), { recursive: true });
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  /** Runs a program whose data is in `files`, and gives what it synced. */
  async function traced(
    data: string,
    run: (program: ReturnType<typeof createProgram>) => Promise<unknown>,
  ): Promise<Syncs> {
    const trace = join(folder, `trace-${++steps}`);
    const before = readdirSync(files, { recursive: true }).map((name) => join(files, String(name)));
    const program = createProgram([...tracedInto(trace), ...SOURCE], folder, { HOLDFAST_DATA: data });
    try {
      await run(program);
    } finally {
      await program.killAll();
    }
    const syncs = syncsIn(trace, files, before);
    expect(syncs.answers).toBeGreaterThan(0);
    return syncs;
  }
  const dataIn = (name: string) => join(files, name, "data");
  const DATA = () => dataIn("first");

  test(
    "a new ledger, in new folders, with its first rows",
    async () => {
      const { problems } = await traced(DATA(), async ({ command }) => {
        organisation = (
          await command(
            ...["organisations", "create", "--name", "Power", "--owner-email", "owner@example.com"],
            ...["--owner-password", "correct horse battery staple"],
          )
        ).organisation;
      });
      expect(problems).toEqual([]);
    },
    TEST_MS,
  );

  test(
    "a key that encrypts, and the first secret that it encrypted",
    async () => {
      const { problems } = await traced(DATA(), ({ command }) =>
        command(
          ...["webhooks", "create", "--organisation", organisation.id, "--mode", "live"],
          ...["--url", "https://receiver.example/"],
        ),
      );
      expect(readdirSync(DATA())).toContain("master.key");
      expect(problems).toEqual([]);
    },
    TEST_MS,
  );

  test(
    "what a server answers, and the key that it makes",
    async () => {
      const { command } = createProgram(SOURCE, folder, { HOLDFAST_DATA: DATA() });
      const account = ["--organisation", organisation.id, "--mode", "live"];
      const agent = await command("agents", "create", ...account, "--name", "buyer");
      const { secret } = await command("keys", "create", "--agent", agent.id);
      await command("balances", "fund", ...account, "--amount", "1000");
      const { problems } = await traced(DATA(), async ({ serve }) => {
        const server = await serve();
        const client = createClient(fetch, server.url, `${server.url}/docs`);
        const as = { authorization: `Bearer ${secret}` };
        const body = {
          amount: "100",
          payee: "acme",
          deadline: new Date(Date.now() + 3_600_000).toISOString(),
          spec: { clauses: [{ kind: "http.status", equals: 200 }] },
        };
        for (let count = 0; count < 3; count++)
          expect((await client.post("/v1/warrants", body, { as })).status).toBe(201);
        expect(await server.stop()).toBe(0);
      });
      expect(readdirSync(DATA())).toContain("signing.key");
      expect(problems).toEqual([]);
    },
    TEST_MS,
  );

  test(
    "the folder that a server makes, and its keys, before it listens",
    async () => {
      const { problems } = await traced(dataIn("served"), async ({ serve }) => {
        expect(await (await serve()).stop()).toBe(0);
      });
      expect(readdirSync(dataIn("served"))).toEqual(
        expect.arrayContaining(["backup.key", "master.key", "signing.key"]),
      );
      expect(problems).toEqual([]);
    },
    TEST_MS,
  );

  test(
    "a backup",
    async () => {
      const { problems } = await traced(DATA(), ({ command }) =>
        command("backup", join(files, "backups", "one.backup")),
      );
      expect(problems).toEqual([]);
    },
    TEST_MS,
  );

  test(
    "a restore, with its keys, into new folders",
    async () => {
      const { problems } = await traced(dataIn("second"), ({ command }) =>
        command("restore", join(files, "backups", "one.backup"), "--key", join(DATA(), "backup.key")),
      );
      expect(readdirSync(dataIn("second"))).toEqual(
        expect.arrayContaining(["backup.key", "holdfast.db", "master.key", "signing.key"]),
      );
      expect(problems).toEqual([]);
    },
    TEST_MS,
  );

  const encrypted = () => join(files, "backups", "two.backup");
  const passphraseFile = () => {
    const file = join(folder, "passphrase");
    writeFileSync(file, "five words drawn at random\n");
    return ["--passphrase-file", file];
  };

  test(
    "an encrypted backup",
    async () => {
      const { problems } = await traced(DATA(), ({ command }) =>
        command("backup", encrypted(), ...passphraseFile()),
      );
      expect(problems).toEqual([]);
    },
    TEST_MS,
  );

  test(
    "a restore of an encrypted backup",
    async () => {
      const key = join(DATA(), "backup.key");
      const { problems } = await traced(dataIn("third"), ({ command }) =>
        command("restore", encrypted(), ...passphraseFile(), "--key", key),
      );
      expect(problems).toEqual([]);
      expect(readdirSync(dataIn("third"))).toEqual(
        expect.arrayContaining(["backup.key", "holdfast.db", "master.key"]),
      );
    },
    TEST_MS,
  );
});
