-- Only what a chain contradicts is acknowledged, and once.
CREATE TRIGGER `purchases_acknowledged_once` BEFORE UPDATE OF `acknowledged_at` ON `purchases`
WHEN NEW.`acknowledged_at` IS NOT OLD.`acknowledged_at`
  AND (OLD.`acknowledged_at` IS NOT NULL OR NEW.`chain_said` IS NULL OR NEW.`chain_said` = NEW.`known`)
BEGIN SELECT RAISE(ABORT, 'only what a chain contradicts is acknowledged, and once'); END;
