import type { SessionLimits } from "../../src/core/session-limits.ts";

/** The limits of a session that has none besides its ceiling. */
export const UNLIMITED: SessionLimits = {
  payees: null,
  sourceOrigins: null,
  perWarrantMax: null,
  hourlyMax: null,
  dailyMax: null,
};
