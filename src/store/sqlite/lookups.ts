import { and, asc, type Column, eq, inArray, isNull, max, ne, or, type SQL, sql } from "drizzle-orm";
import type { Role } from "../../core/roles.ts";
import type { Tables } from "./open.ts";
import { withoutPosition } from "./rows.ts";
import * as directory from "./tables/directory.ts";
import * as ledger from "./tables/ledger.ts";
import { purchases } from "./tables/purchases.ts";
import { deliveries, webhooks } from "./tables/webhooks.ts";

/** The look-ups of commands, prepared once. */

const { placeholder } = sql;

/** Where a look-up finds the scope's organisation, and its mode. */
const inOrganisation = (table: { readonly organisationId: Column }) =>
  eq(table.organisationId, placeholder("organisationId"));
const inScope = (table: { readonly organisationId: Column; readonly mode: Column }) =>
  and(inOrganisation(table), eq(table.mode, placeholder("mode")));

/** The id of an owner's newest policy row. By `max`: SQLite would plan a `LIMIT ?` anew at every call. */
function newestPolicy(tables: Tables, owner: SQL | undefined) {
  const { policies } = directory;
  const newest = tables
    .select({ position: max(policies.position) })
    .from(policies)
    .where(and(inOrganisation(policies), owner));
  return tables.select({ id: policies.id }).from(policies).where(eq(policies.position, newest)).prepare();
}

export function prepareDirectoryLookups(tables: Tables) {
  const { agents, apiKeys, organisations, passkeys, policies, schemas, users, verifiers } = directory;
  const byId = (table: typeof agents | typeof apiKeys | typeof policies | typeof verifiers) =>
    eq(table.id, placeholder("id"));
  return {
    organisation: tables
      .select()
      .from(organisations)
      .where(eq(organisations.id, placeholder("organisationId")))
      .prepare(),
    agent: tables
      .select()
      .from(agents)
      .where(and(byId(agents), inScope(agents)))
      .prepare(),
    apiKey: tables
      .select()
      .from(apiKeys)
      .where(and(byId(apiKeys), inScope(apiKeys)))
      .prepare(),
    policy: tables
      .select(withoutPosition(policies))
      .from(policies)
      .where(and(byId(policies), inOrganisation(policies)))
      .prepare(),
    policyNamed: newestPolicy(
      tables,
      and(sql`${policies.agentId} IS ${placeholder("agentId")}`, eq(policies.name, placeholder("name"))),
    ),
    agentPolicy: newestPolicy(tables, eq(policies.agentId, placeholder("agentId"))),
    organisationPolicy: newestPolicy(tables, isNull(policies.agentId)),
    countingPasskey: tables
      .select({ id: max(passkeys.id) })
      .from(passkeys)
      .innerJoin(users, eq(users.id, passkeys.userId))
      .where(and(inOrganisation(passkeys), sql`${passkeys.countsForThreshold} = 1`, isNull(users.removedAt)))
      .prepare(),
    verifier: tables
      .select()
      .from(verifiers)
      .where(and(byId(verifiers), inOrganisation(verifiers)))
      .prepare(),
    schema: tables
      .select()
      .from(schemas)
      .where(and(inOrganisation(schemas), eq(schemas.name, placeholder("name"))))
      .prepare(),
  };
}

export function preparePeopleLookups(tables: Tables) {
  const { authSessions, passkeyApprovals, passkeys, passwordResets, users } = directory;
  const someoneElse = (...roles: readonly Role[]) =>
    tables
      .select({ id: max(users.id) })
      .from(users)
      .where(
        and(
          inOrganisation(users),
          isNull(users.removedAt),
          ne(users.id, placeholder("userId")),
          inArray(users.role, [...roles]),
        ),
      )
      .prepare();
  return {
    secondPerson: someoneElse("admin", "owner"),
    otherOwner: someoneElse("owner"),
    user: tables
      .select()
      .from(users)
      .where(and(eq(users.id, placeholder("userId")), inOrganisation(users), isNull(users.removedAt)))
      .prepare(),
    userByEmail: tables
      .select()
      .from(users)
      .where(and(eq(users.email, placeholder("email")), isNull(users.removedAt)))
      .prepare(),
    passkey: tables
      .select()
      .from(passkeys)
      .where(and(eq(passkeys.id, placeholder("id")), inOrganisation(passkeys)))
      .prepare(),
    passkeysOf: tables
      .select()
      .from(passkeys)
      .where(and(eq(passkeys.userId, placeholder("userId")), inOrganisation(passkeys)))
      .orderBy(asc(passkeys.createdAt), asc(passkeys.id))
      .prepare(),
    approval: tables
      .select()
      .from(passkeyApprovals)
      .where(eq(passkeyApprovals.tokenHash, placeholder("hash")))
      .prepare(),
    passwordReset: tables
      .select()
      .from(passwordResets)
      .where(eq(passwordResets.tokenHash, placeholder("hash")))
      .prepare(),
    authSession: tables
      .select()
      .from(authSessions)
      .where(eq(authSessions.tokenHash, placeholder("hash")))
      .prepare(),
  };
}

export const prepareOperationLookups = (tables: Tables) => ({
  instance: tables.select().from(directory.instances).prepare(),
  webhooks: tables
    .select()
    .from(webhooks)
    .where(and(inScope(webhooks), sql`${webhooks.disabled} = 0`))
    .prepare(),
  webhook: tables
    .select()
    .from(webhooks)
    .where(and(eq(webhooks.id, placeholder("id")), inScope(webhooks)))
    .prepare(),
  delivery: tables
    .select()
    .from(deliveries)
    .where(and(eq(deliveries.id, placeholder("id")), inScope(deliveries)))
    .prepare(),
});

export const preparePurchaseLookups = (tables: Tables) => ({
  purchase: tables
    .select()
    .from(purchases)
    .where(and(eq(purchases.id, placeholder("id")), inScope(purchases)))
    .prepare(),
  purchaseOfWarrant: tables
    .select()
    .from(purchases)
    .where(eq(purchases.warrantId, placeholder("warrantId")))
    .prepare(),
  /** Signed or about to be, and known neither to be spent nor to be void. */
  openAuthorizations: sumOfWallet(
    tables,
    sql`${purchases.known} IS NOT 'paid' AND ${purchases.known} IS NOT 'unpaid'`,
  ),
  /** Known to be spent, and perhaps only after the balance was read. */
  paidSince: sumOfWallet(
    tables,
    sql`${purchases.known} = 'paid' AND ${purchases.answeredAt} >= ${placeholder("since")}`,
  ),
});

/** What a wallet's purchases with a token come to, of those of a condition. Each condition has a partial index. */
const sumOfWallet = (tables: Tables, condition: SQL) =>
  tables
    .select({ sum: sql<bigint | null>`sum(${purchases.quotedAmount})` })
    .from(purchases)
    .where(
      and(
        eq(purchases.payer, placeholder("payer")),
        eq(purchases.chainId, placeholder("chainId")),
        eq(purchases.contract, placeholder("contract")),
        condition,
      ),
    )
    .prepare();

export function prepareLedgerLookups(tables: Tables) {
  const { balances, escalations, idempotencyKeys, warrants } = ledger;
  const { spendSessions } = directory;
  const spendSession = withoutPosition(spendSessions);
  const newestEscalation = tables
    .select({ id: max(escalations.id) })
    .from(escalations)
    .where(or(eq(escalations.id, placeholder("id")), eq(escalations.warrantId, placeholder("id"))));
  const newestSession = tables
    .select({ position: max(spendSessions.position) })
    .from(spendSessions)
    .where(eq(spendSessions.agentId, placeholder("agentId")));
  return {
    session: tables
      .select(spendSession)
      .from(spendSessions)
      .where(eq(spendSessions.id, placeholder("id")))
      .prepare(),
    newestSession: tables
      .select(spendSession)
      .from(spendSessions)
      .where(eq(spendSessions.position, newestSession))
      .prepare(),
    idempotency: tables
      .select()
      .from(idempotencyKeys)
      .where(and(inScope(idempotencyKeys), eq(idempotencyKeys.key, placeholder("key"))))
      .prepare(),
    warrant: tables
      .select()
      .from(warrants)
      .where(and(eq(warrants.id, placeholder("id")), inScope(warrants)))
      .prepare(),
    balance: tables
      .select()
      .from(balances)
      .where(and(inScope(balances), eq(balances.asset, placeholder("asset"))))
      .prepare(),
    escalation: tables
      .select()
      .from(escalations)
      .where(and(eq(escalations.id, newestEscalation), inScope(escalations)))
      .prepare(),
  };
}
