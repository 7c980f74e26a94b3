-- Which values of columns go together, so that the planner does not guess. Each list below is read in the order of its last rows, from an
-- index of these columns. By guessing that a state is as common in every scope, PostgreSQL would go through the primary key instead until
-- it has found enough rows, which for a rare one is the whole table.

CREATE STATISTICS agents_in_scopes (mcv) ON organisation_id, mode FROM agents;
CREATE STATISTICS api_keys_in_scopes (mcv) ON organisation_id, mode FROM api_keys;
CREATE STATISTICS capsules_in_scopes (mcv) ON organisation_id, mode FROM capsules;
CREATE STATISTICS chain_transfers_in_statuses (mcv) ON watch, status FROM chain_transfers;
CREATE STATISTICS escalations_in_statuses (mcv) ON organisation_id, mode, status FROM escalations;
CREATE STATISTICS notices_in_queues (mcv) ON organisation_id, mode, channel FROM notices;
CREATE STATISTICS payouts_in_statuses (mcv) ON account, status FROM payouts;
CREATE STATISTICS planned_notices_in_scopes (mcv) ON organisation_id, mode FROM planned_notices;
CREATE STATISTICS purchases_in_scopes (mcv) ON organisation_id, mode FROM purchases;
CREATE STATISTICS warrants_in_states (mcv) ON scope, state FROM warrants;
CREATE STATISTICS warrants_of_agents_in_states (mcv) ON agent, state FROM warrants;
CREATE STATISTICS webhook_deliveries_in_scopes (mcv) ON organisation_id, mode FROM webhook_deliveries;
