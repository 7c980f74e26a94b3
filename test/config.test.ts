import { describe, expect, test } from "bun:test";
import { type Config, clearsLines, NO_SECRETS, readConfig, readSecrets } from "../src/config.ts";
import { isRefusal } from "../src/core/errors.ts";
import type { Mode } from "../src/core/roles.ts";
import type { TreasuryPlan, TreasuryToken } from "../src/core/treasury.ts";

const DEFAULTS: Config = {
  data: "./data",
  databasePlaintext: false,
  host: "127.0.0.1",
  port: 8080,
  baseUrl: null,
  docsUrl: null,
  allowNetworks: [],
  fetchSeconds: 10,
  trustProxy: [],
  connections: null,
  rateLimits: { read: 600, write: 60, bench: 30 },
  idempotencyDays: 30,
  contentBytes: 1_073_741_824,
  capsuleDays: 90,
  capsuleBytes: 1_073_741_824,
  sigstoreRoot: null,
  x402AllowNetworks: [],
  x402Assets: [],
  evmRpc: new Map(),
  checkpointMs: 10_000,
  auditMs: 3_600_000,
  auditFolder: null,
  witnessFor: [],
  witnesses: [],
  witnessAllowNetworks: [],
  anchor: null,
  treasury: {
    tokens: [],
    rules: { confirmations: 12, feeMax: 100_000_000_000n },
    payoutMinutes: 10,
  },
  solvencyHours: 0,
  backups: null,
  mailFrom: null,
  messagingUrl: "https://api.telegram.org",
  pushContact: null,
  log: "faults",
};

const TOKEN = "0x036CbD53842c5426634e7929541eC2318f3dCF7e";
const OTHER_TOKEN = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913";

/** What a setting of a treasury is read as. Which chain has real money is a type of its own there. */
const treasury = (mode: Mode, chainId: number, token: string, asset: string, most: bigint) =>
  ({
    ...{ mode, chainId, token: token.toLowerCase(), asset, limits: { payoutMax: most, dayMax: 10n * most } },
  }) as TreasuryToken;

const rules = (changed: Partial<TreasuryPlan["rules"]>) => ({
  treasury: { ...DEFAULTS.treasury, rules: { ...DEFAULTS.treasury.rules, ...changed } },
});

test("without settings the defaults hold", () => {
  expect(readConfig({}, {})).toEqual(DEFAULTS);
  expect(readConfig({}, { PATH: "/bin", HOLDFASTER: "1", holdfast_port: "1", PORT: "1" })).toEqual(DEFAULTS);
});

describe("anchors on a chain", () => {
  const RPC = "eip155:8453=https://rpc.example/v2/the-key";
  const set = (more: Record<string, string>) => {
    const given = Object.entries({ ANCHOR: "evm", ...more });
    return readConfig({}, Object.fromEntries(given.map(([name, value]) => [`HOLDFAST_${name}`, value])));
  };

  test("need a chain, and have defaults besides", () => {
    const plan = {
      ...{ chainId: 8_453, url: "https://rpc.example/v2/the-key" },
      ...{ confirmations: 12, everyMinutes: 60, feeMax: 100_000_000_000n },
    };
    expect(set({ ANCHOR_RPC: RPC })).toEqual({ ...DEFAULTS, anchor: plan });
    expect(set({})).toMatchObject({
      refused: "validation_failed",
      message: expect.stringMatching(/^HOLDFAST_ANCHOR_RPC: must be set where HOLDFAST_ANCHOR is evm/),
    });
    expect(set({ ANCHOR: "local", ANCHOR_RPC: RPC })).toEqual(DEFAULTS);
  });

  test("are made as often, waited for as long and paid for as is said", () => {
    const more = { ANCHOR_CONFIRMATIONS: "3", ANCHOR_MINUTES: "1440", ANCHOR_FEE_MAX: "0.05" };
    expect(set({ ANCHOR_RPC: RPC, ...more })).toMatchObject({
      anchor: { confirmations: 3, everyMinutes: 1_440, feeMax: 50_000_000n },
    });
  });

  test("never show their endpoint in a message: it may hold a key", () => {
    const refusal = set({ ANCHOR_RPC: `${RPC},${RPC}` });
    expect(isRefusal(refusal) && refusal.message).toStartWith("HOLDFAST_ANCHOR_RPC: must be one chain");
    expect(isRefusal(refusal) && refusal.message).not.toContain("the-key");
  });
});

describe("a good value", () => {
  const RATES = DEFAULTS.rateLimits;
  const TABLE: readonly (readonly [name: string, value: string, config: Partial<Config>])[] = [
    ["DATA", "/var/lib/holdfast", { data: "/var/lib/holdfast" }],
    ["DATABASE_PLAINTEXT", "true", { databasePlaintext: true }],
    ["DATABASE_PLAINTEXT", "false", {}],
    ["HOST", "::", { host: "::" }],
    ["PORT", "0", { port: 0 }],
    ["PORT", "65535", { port: 65_535 }],
    ["BASE_URL", "https://holdfast.example", { baseUrl: "https://holdfast.example" }],
    ["BASE_URL", "http://localhost:8080/under/", { baseUrl: "http://localhost:8080/under" }],
    ["DOCS_URL", "https://docs.example//", { docsUrl: "https://docs.example" }],
    ["ALLOW_NETWORKS", "10.0.0.0/8", { allowNetworks: ["10.0.0.0/8"] }],
    [
      "ALLOW_NETWORKS",
      "10.0.0.0/8, fc00::/7,127.0.0.1",
      { allowNetworks: ["10.0.0.0/8", "fc00::/7", "127.0.0.1"] },
    ],
    ["FETCH_SECONDS", "1", { fetchSeconds: 1 }],
    ["FETCH_SECONDS", "60", { fetchSeconds: 60 }],
    ["CHECKPOINT_MS", "10", { checkpointMs: 10 }],
    ["CHECKPOINT_MS", "3600000", { checkpointMs: 3_600_000 }],
    ["CONNECTIONS", "8", { connections: 8 }],
    ["CONNECTIONS", "1000000", { connections: 1_000_000 }],
    ["RATE_READ", "1", { rateLimits: { ...RATES, read: 1 } }],
    ["RATE_WRITE", "100000000", { rateLimits: { ...RATES, write: 100_000_000 } }],
    ["BACKUP_FOLDER", "/backups", { backups: { folder: "/backups", keep: 7, hour: 3 } }],
    ["RATE_BENCH", "007", { rateLimits: { ...RATES, bench: 7 } }],
    ["X402_ALLOW_NETWORKS", "10.0.0.0/8", { x402AllowNetworks: ["10.0.0.0/8"] }],
    ["X402_ASSETS", `eip155:84532/${TOKEN}=USDC:USDC:2`, { x402Assets: [rule()] }],
    [
      "X402_ASSETS",
      `eip155:84532/${TOKEN}=USDC:USDC:2, eip155:31337/${TOKEN}=EURC:USD Coin:1.0`,
      {
        x402Assets: [
          rule(),
          rule({ chainId: 31_337, asset: "EURC", tokenName: "USD Coin", tokenVersion: "1.0" }),
        ],
      },
    ],
    [
      "EVM_RPC",
      "eip155:1=https://rpc.example/v2/key?a=b",
      { evmRpc: new Map([[1, "https://rpc.example/v2/key?a=b"]]) },
    ],
    [
      "EVM_RPC",
      "eip155:84532=http://127.0.0.1:8545, eip155:8453=https://rpc.example",
      {
        evmRpc: new Map([
          [84_532, "http://127.0.0.1:8545"],
          [8_453, "https://rpc.example"],
        ]),
      },
    ],
    [
      "TREASURY_SANDBOX",
      `eip155:84532/${TOKEN}=USDC:5:50, eip155:11155111/${TOKEN}=EURC:0:0`,
      {
        treasury: {
          ...DEFAULTS.treasury,
          tokens: [
            treasury("sandbox", 84_532, TOKEN, "USDC", 5n),
            treasury("sandbox", 11_155_111, TOKEN, "EURC", 0n),
          ],
        },
      },
    ],
    [
      "TREASURY_LIVE",
      `eip155:8453/${OTHER_TOKEN}=USDC:7:70`,
      { treasury: { ...DEFAULTS.treasury, tokens: [treasury("live", 8_453, OTHER_TOKEN, "USDC", 7n)] } },
    ],
    ["TREASURY_CONFIRMATIONS", "100", rules({ confirmations: 100 })],
    ["TREASURY_FEE_MAX", "0.05", rules({ feeMax: 50_000_000n })],
    ["PAYOUT_MINUTES", "1", { treasury: { ...DEFAULTS.treasury, payoutMinutes: 1 } }],
    ["SOLVENCY_HOURS", "24", { solvencyHours: 24 }],
    ["SOLVENCY_HOURS", "0", {}],
    ["IDEMPOTENCY_DAYS", "3650", { idempotencyDays: 3_650 }],
    ["CONTENT_BYTES", "10485760", { contentBytes: 10_485_760 }],
    ["CONTENT_BYTES", "9007199254740991", { contentBytes: Number.MAX_SAFE_INTEGER }],
    ["CAPSULE_DAYS", "365", { capsuleDays: 365 }],
    ["CAPSULE_BYTES", "20971520", { capsuleBytes: 20_971_520 }],
    ["AUDIT_MINUTES", "1440", { auditMs: 86_400_000 }],
    ["AUDIT_FOLDER", "/var/tmp", { auditFolder: "/var/tmp" }],
    ["LOG", "requests", { log: "requests" }],
    ["LOG", "faults", { log: "faults" }],
  ];
  for (const [name, value, config] of TABLE) {
    test(`of ${name}, ${value}, is taken from the environment and from a flag`, () => {
      expect(readConfig({}, { [`HOLDFAST_${name}`]: value })).toEqual({ ...DEFAULTS, ...config });
      expect(readConfig({ [name]: value }, {})).toEqual({ ...DEFAULTS, ...config });
    });
  }

  test("of BACKUP_KEEP or BACKUP_HOUR counts only with BACKUP_FOLDER", () => {
    const settings = { HOLDFAST_BACKUP_KEEP: "2", HOLDFAST_BACKUP_HOUR: "0" };
    expect(readConfig({}, settings)).toEqual(DEFAULTS);
    expect(readConfig({}, { ...settings, HOLDFAST_BACKUP_FOLDER: "/backups" })).toEqual({
      ...DEFAULTS,
      backups: { folder: "/backups", keep: 2, hour: 0 },
    });
  });

  test("of TRUST_PROXY is taken as networks", () => {
    const config = readConfig({}, { HOLDFAST_TRUST_PROXY: "192.0.2.0/24,::1" }) as Config;
    expect(config.trustProxy.map(([base, bits]) => `${base.toString()}/${bits}`)).toEqual([
      "192.0.2.0/24",
      "::1/128",
    ]);
  });
});

/** The problems that the tables below name in short. */
function rule(overrides: object = {}) {
  return {
    chainId: 84_532,
    contract: TOKEN.toLowerCase(),
    asset: "USDC",
    tokenName: "USDC",
    tokenVersion: "2",
    ...overrides,
  };
}

describe("a bad value is refused with a message that names it", () => {
  const INTEGERS = ["-1", "+1", "1.5", "1e1", "0x10", " 1", "1 ", "1\n", "one", "١", "9".repeat(30)];
  const URLS = [
    ...["holdfast.example", "ftp://holdfast.example", "/docs", "http://", "https://h.example?q=1"],
    ...["http://:password@h.example", "https:h.example", " https://h.example ", "https://h.example/?"],
  ];
  const NETWORKS = [",", "10.0.0.0/8,", "10.0.0.0/33", "private", "10.0.0.0/8;fc00::/7", "010.0.0.0/8"];
  const TABLE: Readonly<Record<string, readonly string[]>> = {
    PORT: [...INTEGERS, "65536"],
    FETCH_SECONDS: [...INTEGERS, "0", "61"],
    CHECKPOINT_MS: [...INTEGERS, "9", "3600001"],
    CONNECTIONS: [...INTEGERS, "7", "1000001"],
    RATE_READ: [...INTEGERS, "0", "100000001"],
    RATE_WRITE: [...INTEGERS, "0", "100000001"],
    RATE_BENCH: [...INTEGERS, "0", "100000001"],
    IDEMPOTENCY_DAYS: [...INTEGERS, "0", "3651"],
    CONTENT_BYTES: [...INTEGERS, "10485759", "9007199254740992"],
    DATABASE_PLAINTEXT: ["yes", "1", "TRUE", "true "],
    LOG: ["all", "Requests", " faults"],
    BACKUP_KEEP: [...INTEGERS, "0", "10001"],
    BACKUP_HOUR: [...INTEGERS, "24"],
    PUSH_CONTACT: ["ops@example.org", "mailto:", "mailto:a b@example.org", "http://example.org", "https://"],
    MAIL_FROM: ["holdfast", "@example.org", "a b@example.org", "a@b@example.org", "<a@example.org>"],
    BASE_URL: [
      ...URLS,
      "https://h.example/%zz",
      "https://h.example/%ff",
      "https://h.example#f",
      "https://user:password@h.example",
    ],
    DOCS_URL: [...URLS, "https://h.example#f", "https://user:password@h.example"],
    ALLOW_NETWORKS: NETWORKS,
    TRUST_PROXY: NETWORKS,
    X402_ALLOW_NETWORKS: NETWORKS,
    X402_ASSETS: [
      ...[",", `base/${TOKEN}=USDC:USDC:2`, `eip155:0/${TOKEN}=USDC:USDC:2`, `eip155:1/${TOKEN}`],
      ...[`eip155:1/${TOKEN}=USDC`, `eip155:1/${TOKEN}=USDC:USDC`, `eip155:1/${TOKEN}=:USDC:2`],
      ...[`eip155:1/${TOKEN.slice(0, -1)}=USDC:USDC:2`, `eip155:1/${TOKEN}0=USDC:USDC:2`],
      ...[`eip155:1/${TOKEN}=US DC:USDC:2`, `eip155:1/${TOKEN}=USDC:USDC:2,`],
      `eip155:1/${TOKEN}=USDC:USDC:2,eip155:1/${TOKEN.toLowerCase()}=EURC:EURC:2`,
    ],
    ANCHOR: ["on", "EVM", "evm "],
    ANCHOR_RPC: [
      ...["https://rpc.example", "eip155:1", "eip155:1=ftp://rpc.example"],
      "eip155:1=https://a.example,eip155:2=https://b.example",
    ],
    ANCHOR_CONFIRMATIONS: [...INTEGERS, "0", "101"],
    ANCHOR_MINUTES: [...INTEGERS, "0", "10081"],
    ANCHOR_FEE_MAX: [" ", "0", "0.0", "-1", "1e3", ".5", "0.0000000001", "1000000000", "10 gwei"],
    TREASURY_SANDBOX: [
      ...[",", `eip155:84532/${TOKEN}=USDC`, `eip155:84532/${TOKEN}=USDC:5`, `eip155:84532/${TOKEN}=USDC:5:`],
      ...[`eip155:84532/${TOKEN}=USDC:-1:5`, `eip155:84532/${TOKEN}=USDC:5:9223372036854775808`],
      ...[`eip155:84532/${TOKEN}0=USDC:5:5`, `eip155:84532/${TOKEN}=US DC:5:5`, `84532/${TOKEN}=USDC:5:5`],
      // Real money.
      ...[`eip155:1/${TOKEN}=USDC:5:5`, `eip155:8453/${TOKEN}=USDC:5:5`, `eip155:0/${TOKEN}=USDC:5:5`],
      `eip155:84532/${TOKEN}=USDC:5:5,eip155:8453/${OTHER_TOKEN}=EURC:5:5`,
      // One token or asset twice.
      `eip155:84532/${TOKEN}=USDC:5:5,eip155:84532/${TOKEN.toLowerCase()}=EURC:5:5`,
      `eip155:84532/${TOKEN}=USDC:5:5,eip155:84532/${OTHER_TOKEN}=USDC:5:5`,
    ],
    TREASURY_LIVE: [`eip155:84532/${TOKEN}=USDC:5:5`, `eip155:31337/${TOKEN}=USDC:5:5`],
    TREASURY_CONFIRMATIONS: [...INTEGERS, "0", "101"],
    TREASURY_FEE_MAX: ["0", "-1", "10 gwei"],
    PAYOUT_MINUTES: [...INTEGERS, "0", "10081"],
    SOLVENCY_HOURS: [...INTEGERS, "8761"],
    EVM_RPC: [
      ...["https://rpc.example", "eip155:1", "eip155:1=", "eip155:1=rpc.example", "base=https://rpc.example"],
      ...["eip155:01=https://rpc.example", "eip155:1=ftp://rpc.example", "eip155:1=https://a:b@rpc.example"],
      ...["eip155:1=https://rpc.example,", "eip155:1=https://a.example,eip155:1=https://b.example"],
    ],
  };
  for (const [name, values] of Object.entries(TABLE)) {
    for (const value of values) {
      test(`${name} ${JSON.stringify(value)}`, () => {
        for (const refusal of [
          readConfig({}, { [`HOLDFAST_${name}`]: value }),
          readConfig({ [name]: value }, {}),
        ]) {
          expect(refusal).toMatchObject({
            refused: "validation_failed",
            message: expect.stringMatching(new RegExp(`^HOLDFAST_${name}: must be `)),
          });
        }
      });
    }
  }

  test("a contact for push services is a mailto: or https: URL", () => {
    for (const contact of ["mailto:ops@example.org", "https://example.org/contact"])
      expect(readConfig({}, { HOLDFAST_PUSH_CONTACT: contact })).toMatchObject({ pushContact: contact });
  });

  test("in a list is named", () => {
    const refusal = readConfig({}, { HOLDFAST_ALLOW_NETWORKS: "10.0.0.0/8,nowhere" });
    expect(isRefusal(refusal) && refusal.message).toContain("nowhere is not a CIDR");
  });

  test("of an endpoint is not repeated in the message: it may hold a key", () => {
    const refusal = readConfig({}, { HOLDFAST_EVM_RPC: "eip155:one=https://rpc.example/v2/the-key" });
    expect(isRefusal(refusal) && refusal.message).not.toContain("the-key");
  });

  test("even where a flag would win", () => {
    expect(readConfig({ PORT: "1" }, { HOLDFAST_PORT: "x" })).toMatchObject({ refused: "validation_failed" });
  });
});

describe("an unknown setting is refused with a message that names it", () => {
  for (const name of [
    "HOLDFAST_PROT",
    "HOLDFAST_",
    "HOLDFAST_port",
    "HOLDFAST_toString",
    "HOLDFAST___proto__",
  ]) {
    test(name, () => {
      const refusal = readConfig({}, Object.fromEntries([[name, "1"]]));
      expect(isRefusal(refusal) && refusal.message).toStartWith(`${name}: is not a setting`);
      expect(isRefusal(refusal) && refusal.message).toContain("HOLDFAST_PORT");
    });
  }

  test("even where it is empty", () => {
    expect(readConfig({}, { HOLDFAST_PROT: "" })).toMatchObject({ refused: "validation_failed" });
  });
});

test("an empty value counts as not set", () => {
  for (const name of ["DATA", "HOST", "PORT", "BASE_URL", "ALLOW_NETWORKS", "TRUST_PROXY", "RATE_READ"]) {
    expect(readConfig({}, { [`HOLDFAST_${name}`]: "" })).toEqual(DEFAULTS);
    expect(readConfig({ [name]: "" }, {})).toEqual(DEFAULTS);
    expect(readConfig({ [name]: undefined }, {})).toEqual(DEFAULTS);
  }
});

describe("a flag", () => {
  test("wins over the environment", () => {
    const config = readConfig(
      { PORT: "1", HOST: "0.0.0.0" },
      { HOLDFAST_PORT: "2", HOLDFAST_HOST: "::", HOLDFAST_DATA: "/d" },
    );
    expect(config).toEqual({ ...DEFAULTS, port: 1, host: "0.0.0.0", data: "/d" });
  });

  test("that is empty or missing leaves the environment's value", () => {
    expect(readConfig({ PORT: "", HOST: undefined }, { HOLDFAST_PORT: "2", HOLDFAST_HOST: "::" })).toEqual({
      ...DEFAULTS,
      port: 2,
      host: "::",
    });
  });
});

describe("secrets", () => {
  const KEY = Buffer.alloc(32, 7).toString("base64");
  const files: Readonly<Record<string, string>> = {
    ...{ "/run/worker": "a-worker-secret-of-a-file\n", "/run/empty": "", "/run/blank": " \r\n\n" },
  };
  const read = (environment: Record<string, string>) =>
    readSecrets(environment, (path) => {
      const text = files[path];
      if (text === undefined) throw Object.assign(new Error("no"), { code: "ENOENT" });
      return text;
    });

  test("are null where nothing is set", () => expect(read({ HOLDFAST_MASTER_KEY: "" })).toEqual(NO_SECRETS));

  test("come from the environment, or from a file without its last newline", () => {
    expect(read({ HOLDFAST_MASTER_KEY: KEY, HOLDFAST_WORKER_SECRET_FILE: "/run/worker" })).toEqual({
      ...NO_SECRETS,
      masterKey: new Uint8Array(32).fill(7),
      workerSecret: "a-worker-secret-of-a-file",
      metricsToken: null,
    });
  });

  test("are a database with its password", () => {
    const database = {
      ...{ host: "db.example", port: 5432, user: "holdfast", password: "s3cret", database: "ledger" },
      tls: { authorities: null },
    };
    const address = "postgres://holdfast:s3cret@db.example/ledger";
    expect(read({ HOLDFAST_DATABASE: address })).toEqual({ ...NO_SECRETS, database });
    expect(readSecrets({ HOLDFAST_DATABASE_FILE: "/run/database" }, () => `${address}\n`)).toEqual({
      ...NO_SECRETS,
      database,
    });
  });

  test("of replicas of the database are addresses with commas between", () => {
    const database = "postgres://holdfast:s3cret@db.example/ledger";
    const replicas =
      "postgres://h:a%2Cb@db2.example/ledger, postgres://h:c@db3.example/ledger?sslmode=disable";
    expect(read({ HOLDFAST_DATABASE: database, HOLDFAST_DATABASE_REPLICAS: replicas })).toMatchObject({
      databaseReplicas: [
        { host: "db2.example", password: "a,b", tls: { authorities: null } },
        { host: "db3.example", password: "c", tls: null },
      ],
    });
  });

  test("of backups are a key and a passphrase, which may have spaces", () => {
    const environment = {
      HOLDFAST_BACKUP_KEY: KEY,
      HOLDFAST_BACKUP_PASSPHRASE: "five words drawn at random",
    };
    expect(read(environment)).toEqual({
      ...NO_SECRETS,
      backupKey: new Uint8Array(32).fill(7),
      backupPassphrase: "five words drawn at random",
    });
  });

  test("of web push is 32 bytes", () => {
    expect(read({ HOLDFAST_PUSH_KEY: KEY })).toEqual({ ...NO_SECRETS, pushKey: new Uint8Array(32).fill(7) });
    expect(read({ HOLDFAST_PUSH_KEY: "c2hvcnQ=" })).toMatchObject({
      message: expect.stringContaining("HOLDFAST_PUSH_KEY: must be 32 bytes in base64"),
    });
  });

  test("of wallets are taken with and without 0x, in either case", () => {
    const digits = "aB".repeat(32);
    const environment = {
      HOLDFAST_X402_SANDBOX_KEY: digits,
      HOLDFAST_X402_LIVE_KEY: `0x${digits}`,
      HOLDFAST_ANCHOR_KEY: digits,
      HOLDFAST_TREASURY_SANDBOX_KEY: digits,
      HOLDFAST_TREASURY_LIVE_KEY: `0x${digits}`,
    };
    expect(read(environment)).toEqual({
      ...NO_SECRETS,
      x402SandboxKey: `0x${digits.toLowerCase()}`,
      x402LiveKey: `0x${digits.toLowerCase()}`,
      anchorKey: `0x${digits.toLowerCase()}`,
      treasurySandboxKey: `0x${digits.toLowerCase()}`,
      treasuryLiveKey: `0x${digits.toLowerCase()}`,
    });
  });

  test("of the mail server say how TLS begins", () => {
    const smtp = (url: string) => {
      const secrets = read({ HOLDFAST_SMTP_URL: url });
      return isRefusal(secrets) ? secrets.refused : secrets.smtp;
    };
    const nobody = { user: null, password: null };
    expect(smtp("smtps://me:p%40ss@mail.example.org")).toEqual({
      ...{ host: "mail.example.org", port: 465, tls: "from the start" },
      ...{ user: "me", password: "p@ss" },
    });
    expect(smtp("smtp://mail.example.org")).toEqual({
      ...{ host: "mail.example.org", port: 587, tls: "starttls", ...nobody },
    });
    expect(smtp("smtp://localhost:25")).toEqual({ host: "localhost", port: 25, tls: "none", ...nobody });
    expect(smtp("smtp://[::1]:25")).toEqual({ host: "::1", port: 25, tls: "none", ...nobody });
    for (const bad of [
      "mail.example.org",
      "http://mail.example.org",
      "smtp://h/x",
      "smtp://h?tls=no",
      "smtp://%zz@h",
    ])
      expect([bad, smtp(bad)]).toEqual([bad, "validation_failed"]);
  });

  test("of the messaging bot are its token, and the secret of its webhook as the bot API takes it", () => {
    const bot = (name: string, text: string) => {
      const secrets = read({ [`HOLDFAST_MESSAGING_${name}`]: text });
      return isRefusal(secrets) ? secrets.message : [secrets.messagingToken, secrets.messagingSecret];
    };
    const token = "123456:ABC-DEF1234ghIkl-zyx57W2v1u123ew11";
    expect(bot("TOKEN", token)).toEqual([token, null]);
    expect(bot("SECRET", "a_secret-of-16-ch")).toEqual([null, "a_secret-of-16-ch"]);
    for (const wrong of ["short", `${token}/../getMe`, `${token} `, "a".repeat(257)]) {
      for (const name of ["TOKEN", "SECRET"]) {
        expect(bot(name, wrong)).toStartWith(`HOLDFAST_MESSAGING_${name}: must be`);
        expect(bot(name, wrong)).not.toContain(wrong);
      }
    }
    expect(bot("SECRET", token)).toContain("HOLDFAST_MESSAGING_SECRET: must be 16 to 256 characters");
  });

  test("its token goes through TLS, or stays on this machine", () => {
    const url = (text: string) => {
      const config = readConfig({}, { HOLDFAST_MESSAGING_URL: text });
      return isRefusal(config) ? config.refused : config.messagingUrl;
    };
    expect(url("")).toBe("https://api.telegram.org");
    expect(url("https://bots.example.org/api/")).toBe("https://bots.example.org/api");
    expect(url("http://127.0.0.1:8081")).toBe("http://127.0.0.1:8081");
    for (const bad of [
      "http://bots.example.org",
      "http://10.0.0.1",
      "ftp://x",
      "api.telegram.org",
      "https://a/?b",
    ])
      expect([bad, url(bad)]).toEqual([bad, "validation_failed"]);
  });

  const NO_KEYS = [
    "ab".repeat(31),
    `${"ab".repeat(32)}00`,
    "xy".repeat(32),
    "00".repeat(32),
    "ff".repeat(32),
  ];
  const REFUSED: readonly (readonly [environment: Record<string, string>, start: string])[] = [
    ...NO_KEYS.map(
      (key) => [{ HOLDFAST_X402_LIVE_KEY: key }, "HOLDFAST_X402_LIVE_KEY: must be a wallet's"] as const,
    ),
    [{ HOLDFAST_ANCHOR_KEY: "0x11" }, "HOLDFAST_ANCHOR_KEY: must be a wallet's"],
    [{ HOLDFAST_X402_SANDBOX_KEY: "0x" }, "HOLDFAST_X402_SANDBOX_KEY: must be a wallet's"],
    [{ HOLDFAST_MASTER_KEY: "c2hvcnQ=" }, "HOLDFAST_MASTER_KEY: must be 32 bytes"],
    [{ HOLDFAST_BACKUP_KEY: "c2hvcnQ=" }, "HOLDFAST_BACKUP_KEY: must be 32 bytes"],
    [
      { HOLDFAST_BACKUP_PASSPHRASE: "eleven char" },
      "HOLDFAST_BACKUP_PASSPHRASE: must be 12 to 1024 characters",
    ],
    [{ HOLDFAST_BACKUP_PASSPHRASE: "in two lines\nof a file" }, "HOLDFAST_BACKUP_PASSPHRASE: must be 12 to"],
    [
      { HOLDFAST_DATABASE: "postgres://holdfast:s3cret@db.example/ledger?sslmode=require" },
      "HOLDFAST_DATABASE: sslmode=require does not verify that the server is db.example",
    ],
    [
      { HOLDFAST_DATABASE_REPLICAS: "postgres://holdfast:s3cret@db.example/ledger" },
      "HOLDFAST_DATABASE_REPLICAS: names replicas of the database of HOLDFAST_DATABASE, which is not set",
    ],
    [
      {
        HOLDFAST_DATABASE: "postgres://holdfast:s3cret@db.example/ledger",
        HOLDFAST_DATABASE_REPLICAS: "postgres://h:one@db2.example/ledger,postgres://h:two@db3.example",
      },
      "HOLDFAST_DATABASE_REPLICAS: must name a database, as in postgres://USER:PASSWORD@HOST:5432/DATABASE (address 2 of 2",
    ],
    [
      {
        HOLDFAST_DATABASE: "postgres://holdfast:s3cret@db.example/ledger",
        HOLDFAST_DATABASE_REPLICAS:
          "postgres://h:one@db2.example/ledger,postgres://h:two@db2.example:5432/ledger",
      },
      "HOLDFAST_DATABASE_REPLICAS: names ledger at db2.example:5432 twice",
    ],
    [{ HOLDFAST_WORKER_SECRET: "tooshort" }, "HOLDFAST_WORKER_SECRET: must be 16 to 256"],
    [{ HOLDFAST_METRICS_TOKEN: "with spaces in it, long" }, "HOLDFAST_METRICS_TOKEN: must be 16 to 256"],
    ...["/run/empty", "/run/blank"].flatMap((file) =>
      ["DATABASE", "MASTER_KEY", "SIGNING_KEY", "BACKUP_PASSPHRASE", "SMTP_URL"].map(
        (name) =>
          [
            { [`HOLDFAST_${name}_FILE`]: file },
            `HOLDFAST_${name}_FILE: names a file that is empty: write into it what HOLDFAST_${name} would be`,
          ] as const,
      ),
    ),
    ...[
      ["DATABASE", "postgres://holdfast:s3cret@db.example/one\npostgres://holdfast:s3cret@db.example/two"],
      ["DATABASE_REPLICAS", "postgres://h:one@db2.example/ledger,\npostgres://h:two@db3.example/ledger"],
      ["SMTP_URL", "smtp://mail.example.org\nsmtp://mail.example.com"],
    ].map(
      ([name, text = ""]) =>
        [{ [`HOLDFAST_${name}`]: text }, `HOLDFAST_${name}: must be one line, without control`] as const,
    ),
    [{ HOLDFAST_WORKER_SECRET_FILE: "/nowhere" }, "HOLDFAST_WORKER_SECRET_FILE: cannot be read (ENOENT)"],
    [
      { HOLDFAST_MASTER_KEY: KEY, HOLDFAST_MASTER_KEY_FILE: "/run/worker" },
      "HOLDFAST_MASTER_KEY_FILE: set it or HOLDFAST_MASTER_KEY, not both",
    ],
  ];
  for (const [environment, start] of REFUSED) {
    test(`are refused by name, without being repeated: ${start}`, () => {
      const refused = read(environment);
      if (!("refused" in refused)) throw new Error("taken");
      expect(refused.message.slice(0, start.length)).toBe(start);
      for (const value of Object.values(environment)) expect(refused.message).not.toContain(value);
    });
  }

  test("are settings that the configuration knows", () =>
    expect(readConfig({}, { HOLDFAST_MASTER_KEY: KEY, HOLDFAST_WORKER_SECRET_FILE: "/x" })).toEqual(
      DEFAULTS,
    ));
});

test("a terminal clears lines where TERM names one, and not a dumb one", () => {
  expect([{ TERM: "xterm" }, { TERM: "dumb" }, {}].map(clearsLines)).toEqual([true, false, false]);
});
