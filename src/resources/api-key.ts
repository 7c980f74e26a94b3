import type { ApiKey } from "../core/api-key.ts";
import { form, is, object, oneOf, orNull, text, time, type Wire } from "../core/form.ts";
import { MODES } from "../core/roles.ts";
import { isoTime, isoTimeOrNull } from "../core/time.ts";
import { readBackForm } from "./list.ts";

/** An API key without its secret. The secret is shown only once, when the key is created. */

const apiKeyForm = form("ApiKey", () =>
  object({
    id: text,
    object: is("api_key"),
    agent_id: text,
    mode: oneOf(MODES),
    last_four: text,
    created_at: time,
    expires_at: orNull(time),
    last_used_at: orNull(time),
    revoked_at: orNull(time),
  }),
);

export const apiKeyResource = (key: ApiKey): Wire<typeof apiKeyForm> => ({
  id: key.id,
  object: "api_key",
  agent_id: key.agentId,
  mode: key.mode,
  last_four: key.lastFour,
  created_at: isoTime(key.createdAt),
  expires_at: isoTimeOrNull(key.expiresAt),
  last_used_at: isoTimeOrNull(key.lastUsedAt),
  revoked_at: isoTimeOrNull(key.revokedAt),
});

export const apiKeyListForm = form("ApiKeyList", () => readBackForm(apiKeyForm(), {}));
