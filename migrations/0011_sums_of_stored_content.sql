-- What purchases count for in the stored content: as much as an answer can have where it is still to come, else its length, 4 kB at least.
UPDATE `purchases` SET `content_bytes` = CASE
  WHEN `phase` IN ('held', 'signed') THEN 10485760
  ELSE max(4096, (SELECT length(`bytes`) FROM `contents` WHERE `hash` = `response_hash`))
END
WHERE `phase` IN ('held', 'signed') OR `response_hash` IN (SELECT `hash` FROM `contents`);
--> statement-breakpoint
INSERT INTO `content_sums` (`scope`, `bought`, `bytes`)
SELECT `position`, `warrant_id` IS NOT NULL, sum(`content_bytes`)
FROM `purchases` JOIN `scopes` USING (`organisation_id`, `mode`) WHERE `content_bytes` > 0
GROUP BY 1, 2;
