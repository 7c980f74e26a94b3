import { tmpdir } from "node:os";
import { openForCommands } from "../../src/app/ledger.ts";
import { docsUrlOf } from "../../src/app/urls.ts";
import { readConfig } from "../../src/config.ts";
import type { Purchase } from "../../src/core/x402/purchase.ts";
import { createShell } from "../../src/http/shell.ts";
import { reconcilePurchases } from "../../src/jobs/purchases.ts";
import { newSigningKey } from "../../src/platform/tokens.ts";
import { createX402Client } from "../../src/platform/x402-request.ts";
import type { Chains, Context } from "../../src/services/context.ts";
import { atTime } from "../support/at-time.ts";
import { cheapPasswords } from "../support/cheap-passwords.ts";
import {
  type Client,
  type Credentials,
  createClient,
  type Reply,
  type SendOptions,
} from "../support/client.ts";
import { databaseSecrets } from "../support/database-settings.ts";
import { openTestLedger } from "../support/ledger.ts";
import { newLedgerFolder, removeLedgerFolder } from "../support/new-ledger.ts";
import { noContradiction, noFault } from "../support/no-fault.ts";
import { makeOrganisation, must, type TestOrganisation } from "../support/organisations.ts";
import { testSettings } from "../support/server.ts";
import { type Chain, settingsOf, type Wallet } from "./chain.ts";

/** The balance of each mode at the start, and of the wallet where a test gives none. */
export const FUNDS = 1_000_000n;

/** The whole service with a wallet on the chain. A person buys, since failures do not stop a person. */
export type Buyer = {
  readonly ctx: Context;
  readonly client: Client;
  readonly home: TestOrganisation;
  readonly wallet: Wallet;
  /** Signed in to `sandbox`, as everybody here. */
  readonly admin: Credentials;
  pay(url: string, overrides?: object, options?: SendOptions): Promise<Reply>;
  settle(warrantId: unknown, how: "release" | "refund"): Promise<Reply>;
  stateOf(warrantId: unknown): string | undefined;
  /** The codes of its open escalation; empty where there is none. */
  openCodes(warrantId: unknown): readonly string[];
  purchaseOf(warrantId: unknown): Purchase;
  purchases(): readonly Purchase[];
  balance(): { readonly available: bigint; readonly held: bigint; readonly paid: bigint };
  /** Moves the service's clock ahead, and runs the job that asks the chain about payments. */
  findOut(laterBySeconds: number, chains?: Chains): Promise<void>;
  /** Audits the ledger. */
  close(): Promise<void>;
};

/** Long enough for a payment on the chain while all others are made too. */
const PAY_TIMEOUT_MS = 5_000;
/** How long the service here waits for a chain that does not know a receipt's payment yet. */
const PAUSE_MS = 10;

/** Clauses that the goods of the official sellers pass. */
export const SPEC = {
  clauses: [
    { kind: "http.status", equals: 200 },
    { kind: "json.jsonpath", path: "$.ok", equals: true },
  ],
};

/** @param walletFunds the wallet's balance, in the token's smallest unit */
export async function startBuyer(chain: Chain, walletFunds = FUNDS): Promise<Buyer> {
  const folder = newLedgerFolder(tmpdir());
  const wallet = await chain.wallet(walletFunds);
  const config = must(readConfig({ ...testSettings(folder), ...settingsOf(chain) }, {}));
  const signingKey = newSigningKey();
  const secrets = {
    ...databaseSecrets(folder),
    signingKey,
    x402SandboxKey: wallet.key,
    x402LiveKey: wallet.key,
  };
  const opened = await openForCommands(config, secrets);
  let aheadMs = 0;
  const { ctx: real, close } = atTime(opened.ctx, folder, () => Date.now() + aheadMs);
  const ctx: Context = {
    ...real,
    passwords: cheapPasswords(real.passwords),
    x402: {
      ...real.x402,
      ...createX402Client({ allowNetworks: config.x402AllowNetworks, payTimeoutMs: PAY_TIMEOUT_MS }),
      pause: () => Bun.sleep(PAUSE_MS),
    },
  };
  const shell = createShell(ctx, {
    docsUrl: docsUrlOf(config),
    rateLimits: config.rateLimits,
    trustedProxies: config.trustProxy,
    onFault: (error) => console.error(error),
  });
  const client = createClient((request) => shell(request, () => "192.0.2.1"), ctx.baseUrl, docsUrlOf(config));
  const home = await makeOrganisation(ctx, client, FUNDS);
  const { operator, admin } = home.people;
  const [buying, deciding] = await Promise.all([
    home.signIn(operator, "sandbox"),
    home.signIn(admin, "sandbox"),
  ]);
  const scope = { organisationId: home.id, mode: "sandbox" } as const;
  const { reader, close: closeReader } = openTestLedger(folder);
  const purchases = () => reader.purchases.list(scope, null, 200);
  return {
    ctx,
    client,
    home,
    wallet,
    admin: deciding,
    pay: (url, overrides = {}, options = {}) =>
      client.post(
        "/v1/x402/pay",
        { url, max_amount: `${FUNDS}`, spec: SPEC, ...overrides },
        { as: buying, ...options },
      ),
    settle: (warrantId, how) => client.post(`/v1/warrants/${warrantId}/${how}`, undefined, { as: deciding }),
    stateOf: (warrantId) => reader.warrants.find(String(warrantId))?.state,
    openCodes: (warrantId) =>
      reader.escalations
        .list(scope, 200)
        .filter((escalation) => escalation.warrantId === warrantId && escalation.status === "open")
        .flatMap(({ reasonCodes }) => reasonCodes),
    purchaseOf(warrantId) {
      const found = purchases().find((purchase) => purchase.warrantId === warrantId);
      if (!found) throw new Error(`no purchase opened ${warrantId}`);
      return found;
    },
    purchases,
    balance: () => reader.balances.list(scope)[0]?.balance ?? { available: 0n, held: 0n, paid: 0n },
    async findOut(laterBySeconds, chains = ctx.x402.chains) {
      aheadMs += laterBySeconds * 1_000;
      await reconcilePurchases({ ...ctx, x402: { ...ctx.x402, chains } }, noFault, noContradiction);
    },
    async close() {
      const problems = await ctx.store.audit();
      closeReader();
      await close();
      await opened.close();
      removeLedgerFolder(folder);
      if (problems.length > 0)
        throw new Error(`the ledger disagrees with itself: ${JSON.stringify(problems)}`);
    },
  };
}
