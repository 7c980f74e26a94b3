/**
 * The version of the evaluation, kept with each check. It is raised in the commit after which some evidence could get another
 * result of a clause, another score or another reason code (CONTRIBUTING, "Habits"): not where only a kind is added.
 */
export const EVALUATOR_VERSION = 2;
