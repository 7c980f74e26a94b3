/** The engine that the tests run on: the embedded one, or PostgreSQL where `TEST_ENGINE` says so. */
export const ENGINE: "embedded" | "postgres" = engineOf(process.env.TEST_ENGINE);

function engineOf(named: string | undefined): typeof ENGINE {
  if (named === undefined || named === "embedded") return "embedded";
  if (named === "postgres") return named;
  throw new Error(`TEST_ENGINE must be embedded or postgres, not ${named}`);
}
