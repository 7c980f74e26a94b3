import { amount, boolean, form, is, object, oneOf, orNull, text, time, type Wire } from "../core/form.ts";
import type { Organisation } from "../core/organisation.ts";
import { isoTime } from "../core/time.ts";

const organisationForm = form("Organisation", () =>
  object({
    id: text,
    object: is("organisation"),
    name: text,
    kill_switch: boolean,
    passkey_threshold: orNull(amount),
    receipt_specs: oneOf(["shown", "hidden"]),
    second_factor: boolean,
    messaging_decisions: boolean,
    created_at: time,
  }),
);

export const organisationResource = (organisation: Organisation): Wire<typeof organisationForm> => ({
  id: organisation.id,
  object: "organisation",
  name: organisation.name,
  kill_switch: organisation.killSwitch,
  passkey_threshold: organisation.passkeyThreshold?.toString() ?? null,
  receipt_specs: organisation.hidesSpecs ? "hidden" : "shown",
  second_factor: organisation.secondFactor,
  messaging_decisions: organisation.messagingDecisions,
  created_at: isoTime(organisation.createdAt),
});
