import { isRefusal, type Refusal, refuseField } from "../core/errors.ts";

/** Ends a command with exit code 1. Without a refusal, what there is to say has been printed. */
export class CommandFailure extends Error {
  /** @param nextStep what the person at the terminal can do now, where the refusal's code does not tell that */
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
