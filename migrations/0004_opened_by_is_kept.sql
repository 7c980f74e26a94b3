-- Who opened a warrant is one of its terms: the kill rule decides by it.
DROP TRIGGER `warrants_keep_their_terms`;
--> statement-breakpoint
CREATE TRIGGER `warrants_keep_their_terms` BEFORE UPDATE OF `position`, `id`, `scope`, `account`, `amount`, `payee`,
  `spec`, `spec_hash`, `agent`, `session`, `verifier`, `policy`, `rules_hash`, `deadline`, `opened_at`,
  `opened_by_agent`, `opened_by_user` ON `warrants`
BEGIN SELECT RAISE(ABORT, 'the terms of a warrant are fixed at open'); END;
