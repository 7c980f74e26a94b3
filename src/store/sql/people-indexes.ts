import type { SqlValue } from "./database.ts";
import { PEOPLE_SQL } from "./notice-rows.ts";

type Asked = SqlValue[];
/** How the statements of indexes are made. */
type Statements = {
  readonly first: (text: string) => (of: Asked) => string | null;
  readonly all: (text: string) => (of: Asked) => readonly string[];
  readonly isThere: (text: string) => (of: Asked) => boolean;
};

/** Organisations, their people, and what people sign in with. */
export const peopleIndexes = ({ first, all, isThere }: Statements) => ({
  anyOrganisation: isThere("SELECT id AS key FROM organisations LIMIT 1"),
  countingPasskey: isThere(
    `SELECT passkeys.id AS key FROM passkeys JOIN users ON users.id = passkeys.user_id
       WHERE passkeys.organisation_id = ? AND counts_for_threshold = 1 AND users.removed_at IS NULL LIMIT 1`,
  ),
  userByEmail: first("SELECT id AS key FROM users WHERE email = ? AND removed_at IS NULL"),
  otherOwner: isThere(
    "SELECT id AS key FROM users WHERE organisation_id = ? AND id <> ? AND role = 'owner' AND removed_at IS NULL LIMIT 1",
  ),
  secondPerson: isThere(
    "SELECT id AS key FROM users WHERE organisation_id = ? AND id <> ? AND role IN ('admin', 'owner') AND removed_at IS NULL LIMIT 1",
  ),
  passkeysOf: all("SELECT id AS key FROM passkeys WHERE user_id = ? ORDER BY created_at, id"),
  sessionsOf: all("SELECT token_hash AS key FROM auth_sessions WHERE user_id = ? ORDER BY token_hash"),
  peopleOf: all(PEOPLE_SQL),
  unusedResetsOf: all(
    "SELECT token_hash AS key FROM password_resets WHERE user_id = ? AND used_at IS NULL ORDER BY token_hash",
  ),
  pushSubscriptionsOf: all(
    "SELECT id AS key FROM push_subscriptions WHERE user_id = ? ORDER BY created_at, id",
  ),
  pushSubscriptionAt: first("SELECT id AS key FROM push_subscriptions WHERE endpoint = ?"),
});
