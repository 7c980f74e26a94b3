CREATE TRIGGER `capsules_are_not_changed` BEFORE UPDATE ON `capsules` BEGIN SELECT RAISE(ABORT, 'a capsule is not changed'); END;
