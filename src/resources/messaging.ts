import { Type } from "@sinclair/typebox";

/** The service reads the text (`src/core/messaging.ts`): an update has many fields that nobody needs. */
export const updateBody = Type.String({ description: "an update in JSON, as the bot API posts it" });
