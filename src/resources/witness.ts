import { Type } from "@sinclair/typebox";
import { closed, plainText } from "./input.ts";

/** What is asked of a witness. */

/** The service reads the text (`src/core/witness.ts`). */
export const checkpointBody = Type.String({
  description: "an old size, a consistency proof and a checkpoint, as C2SP tlog-witness writes them",
});

export const originQuery = Type.Object(
  { origin: plainText({ lengthMin: 1, lengthMax: 1_024, description: "the origin of a log" }) },
  closed,
);
