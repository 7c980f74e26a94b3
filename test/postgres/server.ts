export { type Postgres, startPostgres } from "../support/postgres-server.ts";
