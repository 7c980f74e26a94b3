import type { Child } from "hono/jsx";

/** What a component shows. Text in it is escaped. */
export type Markup = Child;
