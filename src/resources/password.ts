import { Type } from "@sinclair/typebox";
import { closed, newPassword, password, plainText } from "./input.ts";

/** The bodies with which a person changes a password. Their answers are empty. */

export const passwordBody = Type.Object({ current_password: password, new_password: newPassword }, closed);

export const passwordResetBody = Type.Object(
  {
    token: plainText({ lengthMin: 1, lengthMax: 256, description: "the text after the link's #" }),
    new_password: newPassword,
  },
  closed,
);
