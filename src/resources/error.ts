import { ERRORS, type ErrorCode, type Refusal, typeOf } from "../core/errors.ts";
import { form, object, oneOf, text, type Wire } from "../core/form.ts";

/** The error envelope (docs/errors, "Errors"): these five fields and no others. */

const CODES = Object.keys(ERRORS) as ErrorCode[];

export const errorForm = form("Error", () =>
  object({
    error: object({
      type: oneOf([...new Set(CODES.map(typeOf))]),
      code: oneOf(CODES),
      message: text,
      doc_url: text,
      request_id: text,
    }),
  }),
);

export const errorResource = (
  refusal: Refusal,
  requestId: string,
  docsUrl: string,
): Wire<typeof errorForm> => ({
  error: {
    type: typeOf(refusal.refused),
    code: refusal.refused,
    message: refusal.message,
    doc_url: `${docsUrl}/api-reference/errors#${refusal.refused}`,
    request_id: requestId,
  },
});
