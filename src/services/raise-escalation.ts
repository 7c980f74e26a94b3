import type { Escalation } from "../core/escalation.ts";
import { planOf } from "../core/notice.ts";
import type { Put } from "../store/change.ts";

/** What raising an escalation writes: the escalation, and that people are to hear of it. */
export const raised = (row: Escalation): readonly Put[] => [
  { kind: "escalation", before: null, row },
  { kind: "plannedNotice", before: null, row: planOf(row) },
];
