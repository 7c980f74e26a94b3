/** Who vouches for what was evaluated. A source that has signed it cannot deny it (docs/security, "Signed sources"). */
export const EVIDENCE_KINDS = ["observed by this instance", "signed by the source"] as const;
