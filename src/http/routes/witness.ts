import { isRefusal } from "../../core/errors.ts";
import { ADD_CHECKPOINT_BYTES_MAX, WITNESS_PATH } from "../../core/witness.ts";
import { checkpointBody, originQuery } from "../../resources/witness.ts";
import { addCheckpoint } from "../../services/witness/add-checkpoint.ts";
import { readWitnessed } from "../../services/witness/read.ts";
import { get, post, type Route, route } from "../route.ts";

const UNPROVED =
  "The proof does not show that the log of this checkpoint begins with the one that was cosigned last.\n";
const TEXT = "text/plain; charset=utf-8";

/** What a witness answers to the logs that its operator named (C2SP, tlog-witness), and to whoever audits them. */
export const witnessRoutes: readonly Route[] = [
  post(
    `${WITNESS_PATH}/add-checkpoint`,
    {
      body: checkpointBody,
      detail: route({
        tags: ["Witness"],
        summary: "Cosign a log's checkpoint (C2SP, tlog-witness)",
        access: null,
        bucket: "write",
        takesText: true,
        bodyBytesMax: ADD_CHECKPOINT_BYTES_MAX,
        answers: "text/plain",
        answersAsText: ["409", "422"],
        responses: {
          "200": "The cosignature, as a signature line of the note.",
          "403": "checkpoint_not_signed",
          "404": "log_not_found",
          "409": "The size of the log at which the witness stands, as text/x.tlog.size.",
          "422": "The proof does not show that the log continues the checkpoint that was cosigned last.",
        },
      }),
    },
    async (call) => {
      const added = await addCheckpoint(call.ctx, call.body);
      if (isRefusal(added)) return added;
      if (added === "unproved") return { status: 422, body: UNPROVED, contentType: TEXT };
      return "stands" in added
        ? { status: 409, body: `${added.stands}\n`, contentType: "text/x.tlog.size" }
        : { status: 200, body: added.lines, contentType: TEXT };
    },
  ),
  get(
    `${WITNESS_PATH}/checkpoint`,
    {
      query: originQuery,
      detail: route({
        tags: ["Witness"],
        summary: "The last checkpoint of a log that this witness cosigned, with both signatures",
        access: null,
        bucket: "read",
        answers: "text/plain",
        responses: { "200": "A signed note.", "404": "log_not_found" },
      }),
    },
    async (call) => {
      const note = await readWitnessed(call.ctx, call.query.origin);
      return isRefusal(note) ? note : { status: 200, body: note, contentType: TEXT };
    },
  ),
];
