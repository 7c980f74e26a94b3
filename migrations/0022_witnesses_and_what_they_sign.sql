CREATE TABLE `cosignatures` (
	`size` integer NOT NULL,
	`witness` text NOT NULL,
	`line` text NOT NULL,
	PRIMARY KEY(`size`, `witness`)
);
--> statement-breakpoint
CREATE TABLE `witnessed_logs` (
	`origin` text PRIMARY KEY NOT NULL,
	`note` text NOT NULL,
	`cosigned_at` integer NOT NULL
);
