/** What a server must be at the start of an instance, and what is refused by name (docs/postgresql, "The server"). */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SQL } from "bun";
import {
  connectionOptions,
  type PostgresAddress,
  parsePostgresAddress,
} from "../../src/store/postgres/address.ts";
import { createSessions, PATIENCE } from "../../src/store/postgres/client.ts";
import { reportedReplicas } from "../../src/store/postgres/reported-replicas.ts";
import { problemAt } from "../../src/store/postgres/server.ts";
import { type Postgres, startPostgres } from "../support/postgres-server.ts";
import { LOCALHOST_CERTIFICATE } from "../support/tls.ts";
import { until } from "../support/until.ts";

const TEST_MS = 120_000;
const VERSION = "1.2.3";

let postgres: Postgres;
let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-start-"));
  writeFileSync(join(folder, "ca.pem"), LOCALHOST_CERTIFICATE);
  writeFileSync(join(folder, "not.pem"), "no certificate");
  postgres = await startPostgres();
}, TEST_MS);
afterAll(async () => {
  await postgres.close();
  rmSync(folder, { recursive: true, force: true });
}, TEST_MS);

function addressOf(url: string): PostgresAddress {
  const address = parsePostgresAddress(url);
  if ("problem" in address) throw new Error(address.problem);
  return address;
}

/** Without TLS, as the test's server is on this machine. */
const here = (): PostgresAddress => addressOf(postgres.url());
const verified = (authorities: string | null): PostgresAddress => ({
  ...here(),
  tls: { authorities: authorities && join(folder, authorities) },
});
const problem = (address: PostgresAddress, now = Date.now) => problemAt(address, VERSION, now);

/** Works while the server has a setting, which needs no restart. */
async function withSetting(name: string, value: string, work: () => Promise<void>): Promise<void> {
  const becomes = (wanted: string) =>
    until(`${name} is ${wanted}`, async () => {
      const [row] = await postgres.run(`SELECT current_setting('${name}') AS value`);
      return row?.value === wanted;
    });
  const [before] = await postgres.run(`SELECT current_setting('${name}') AS value`);
  await postgres.run(`ALTER SYSTEM SET ${name} = ${value}`);
  await postgres.run("SELECT pg_reload_conf()");
  try {
    await becomes(value);
    await work();
  } finally {
    await postgres.run(`ALTER SYSTEM RESET ${name}`);
    await postgres.run("SELECT pg_reload_conf()");
    await becomes(String(before?.value));
  }
}

test("a server is taken without TLS on this machine, and with TLS by the authority that is named", async () => {
  expect(await problem(here())).toBeNull();
  expect(await problem(verified("ca.pem"))).toBeNull();
});

test("the authority and the name of a server are verified, whatever the environment says", async () => {
  const unverified = "the server's certificate cannot be verified";
  const before = process.env.NODE_TLS_REJECT_UNAUTHORIZED;
  process.env.NODE_TLS_REJECT_UNAUTHORIZED = "0";
  try {
    expect(await problem(verified(null))).toStartWith(unverified);
    expect(await problem({ ...verified("ca.pem"), host: "127.1" })).toStartWith(unverified);
  } finally {
    if (before === undefined) delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
    else process.env.NODE_TLS_REJECT_UNAUTHORIZED = before;
  }
  for (const file of ["nowhere.pem", "not.pem"])
    expect(await problem(verified(file))).toStartWith("sslrootcert must be a file of certificates in PEM");
});

test("a password comes from the address alone", async () => {
  const before = process.env.PGPASSWORD;
  process.env.PGPASSWORD = here().password;
  try {
    const refused = await problem({ ...here(), password: "" });
    expect(refused).toStartWith("the server refuses the user or the password");
  } finally {
    if (before === undefined) delete process.env.PGPASSWORD;
    else process.env.PGPASSWORD = before;
  }
});

test("a wrong user, password or database, and a server that is not there, are named; no password is", async () => {
  const WRONG = "a-wrong-passw0rd";
  for (const [address, start] of [
    [{ ...here(), password: WRONG }, "the server refuses the user or the password"],
    [{ ...here(), user: "nobody" }, "the server refuses the user or the password"],
    [{ ...here(), database: "none" }, "there is no such database; make it with createdb"],
    [{ ...here(), port: 1 }, "the server cannot be reached"],
    [{ ...here(), host: folder }, "the server cannot be reached"],
  ] as const) {
    const refused = await problem(address);
    expect(refused).toStartWith(start);
    expect(refused).not.toContain(WRONG);
    expect(refused).not.toContain(here().password);
  }
});

test("a server that answers nothing is not waited for", async () => {
  const silent = createServer((socket) => void socket.on("error", () => {})).listen(0, "127.0.0.1");
  try {
    const { port } = silent.address() as { port: number };
    expect(await problem({ ...here(), port })).toStartWith("the server cannot be reached");
  } finally {
    silent.close();
  }
});

test(
  "a server that may lose what it has committed, or takes no writes, is refused",
  async () => {
    await withSetting("fsync", "off", async () => {
      expect(await problem(here())).toStartWith("the server runs with fsync=off");
    });
    await withSetting("full_page_writes", "off", async () => {
      expect(await problem(here())).toStartWith("the server runs with full_page_writes=off");
    });
    await withSetting("default_transaction_read_only", "on", async () => {
      expect(await problem(here())).toStartWith("the server takes no writes");
    });
    expect(await problem(here())).toBeNull();
  },
  TEST_MS,
);

test("a database of another encoding is refused", async () => {
  await postgres.run(
    "CREATE DATABASE latin ENCODING 'LATIN1' LOCALE_PROVIDER libc LOCALE 'C' TEMPLATE template0",
  );
  expect(await problem({ ...here(), database: "latin" })).toStartWith("the database's encoding is LATIN1");
});

test("a clock that is more than 5 s from the server's is refused", async () => {
  for (const ms of [-7_000, 7_000])
    expect(await problem(here(), () => Date.now() + ms)).toMatch(/^the clocks .* are [67] s apart/);
});

test(
  "a replica is refused, and its server says how late it is",
  async () => {
    const replica = await postgres.addSynchronousReplica();
    const reportedAt = (port: number) =>
      reportedReplicas(
        createSessions(
          new SQL({ ...connectionOptions({ ...here(), port }, VERSION), max: 1, connectionTimeout: 2 }),
          PATIENCE,
        ),
        () => performance.now(),
      );
    const reported = reportedAt(postgres.port);
    try {
      expect(await problem(addressOf(replica.url()))).toStartWith("the server is a replica");
      const [found, ...more] = await reported();
      expect(more).toEqual([]);
      expect(found).toMatchObject({ name: "walreceiver", isSynchronous: true });
      await until("it has everything", async () => (await reported())[0]?.lagMs === 0);
    } finally {
      await replica.close();
    }
    expect(await reportedAt(1)()).toEqual([]);
  },
  TEST_MS,
);
