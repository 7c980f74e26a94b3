import { form, is, object, oneOf, orNull, text, time, type Wire } from "../core/form.ts";
import { ROLES } from "../core/roles.ts";
import { isoTime, isoTimeOrNull } from "../core/time.ts";
import type { User } from "../core/user.ts";
import { readBackForm } from "./list.ts";

const userForm = form("User", () =>
  object({
    id: text,
    object: is("user"),
    organisation_id: text,
    email: text,
    name: text,
    role: oneOf(ROLES),
    created_at: time,
    removed_at: orNull(time),
  }),
);

export const userResource = (user: User): Wire<typeof userForm> => ({
  id: user.id,
  object: "user",
  organisation_id: user.organisationId,
  email: user.email,
  name: user.name,
  role: user.role,
  created_at: isoTime(user.createdAt),
  removed_at: isoTimeOrNull(user.removedAt),
});

export const userListForm = form("UserList", () => readBackForm(userForm(), {}));
