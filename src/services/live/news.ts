import type { Write } from "../../store/change.ts";
import { keyOf } from "./changes.ts";
import { type Heard, heardOf, isOfPeople } from "./heard.ts";

/** What pages hear of a commit. */
export type News = {
  readonly heard: readonly Heard[];
  /** Whether it may end or change somebody's sign-in. */
  readonly isOfPeople: boolean;
};

/**
 * How many names another instance is told of a commit, and in how many places (of an organisation, a mode and a role). So the text has
 * about 3 kB at most.
 */
const NAMES_MAX = 32;
const PLACES_MAX = 16;

export const newsOf = (writes: readonly Write[]): News => ({
  heard: writes.flatMap(heardOf),
  isOfPeople: writes.some(isOfPeople),
});

/**
 * The news of a commit as a text, which `newsIn` of the same version reads at other instances. Of many names it says that anything may
 * have changed in their places; null where these too are many.
 */
export function newsTextOf(writes: readonly Write[]): string | null {
  const { heard, isOfPeople } = newsOf(writes);
  const places = placesOf(heard);
  if (places.length > PLACES_MAX) return null;
  const isLong = places.reduce((count, { names }) => count + names.size, 0) > NAMES_MAX;
  const told = places.map(({ scope, role, names }) => ({ scope, role, names: isLong ? null : [...names] }));
  return JSON.stringify({ heard: told, isOfPeople } satisfies News);
}

export const newsIn = (text: string): News => JSON.parse(text);

/** What is heard, once for each place. */
function placesOf(heard: readonly Heard[]) {
  const places = new Map<string, Pick<Heard, "scope" | "role"> & { readonly names: Set<string> }>();
  for (const { scope, role, names } of heard) {
    const key = `${keyOf(scope)} ${role}`;
    const place = places.get(key) ?? { scope, role, names: new Set() };
    places.set(key, place);
    for (const name of names ?? []) place.names.add(name);
  }
  return [...places.values()];
}
