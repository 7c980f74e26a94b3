CREATE TABLE `imported_tables` (
	`name` text PRIMARY KEY NOT NULL,
	`last` integer NOT NULL,
	`digest` integer
);
