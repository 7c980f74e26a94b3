import { isRefusal, type Refusal, refuseField } from "../core/errors.ts";

/** Ends a command with exit code 1. Without a refusal, the command has already printed what is wrong. */
export class CommandFailure extends Error {
  /** @param nextStep what the person at the terminal can do now, where it does not follow from the refusal's code */
  constructor(
    readonly refusal: Refusal | null,
    readonly nextStep?: string,
  ) {
    super(refusal?.message ?? "failed");
  }
}

/** The answer; throws the refusal, which ends the command. */
export function orFail<Answer>(answer: Answer | Refusal): Answer {
  if (isRefusal(answer)) throw new CommandFailure(answer);
  return answer;
}

export const optionFailure = (option: string, problem: string): CommandFailure =>
  new CommandFailure(refuseField(option, problem));
