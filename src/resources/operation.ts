import { arrayOf, boolean, form, is, object, orNull, text, type Wire } from "../core/form.ts";
import type { Readiness } from "../core/operation.ts";

/** The answers to an operator's tools about the service. */

export const healthForm = form("Health", () => object({ object: is("health"), status: is("ok") }));

export const healthResource = (): Wire<typeof healthForm> => ({ object: "health", status: "ok" });

export const readinessForm = form("Readiness", () =>
  object({
    object: is("readiness"),
    ready: boolean,
    checks: arrayOf(object({ name: text, ok: boolean, message: orNull(text) })),
  }),
);

export const readinessResource = ({
  ready,
  checks,
}: Pick<Readiness, "ready" | "checks">): Wire<typeof readinessForm> => ({
  object: "readiness",
  ready,
  checks: checks.map(({ name, ok, message }) => ({ name, ok, message })),
});
