import { defineConfig } from "drizzle-kit";

export default defineConfig({
  dialect: "sqlite",
  schema: "./src/store/sql/tables/*.ts",
  out: "./migrations",
});
