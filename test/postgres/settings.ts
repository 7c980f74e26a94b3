export { postgresSettings } from "../support/postgres-settings.ts";
