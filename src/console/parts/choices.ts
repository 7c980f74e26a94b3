import { printable } from "../../core/hidden-characters.ts";
import type { Choice } from "./forms.tsx";

/** A list of choices that is longer weighs more than all the rest of a page, and nobody reads it. */
export const CHOICES_MAX = 200;

type Named = { readonly id: string; readonly name: string };

/**
 * What a form offers of things with a name: the first of them, and the one that is chosen already, wherever it stands.
 *
 * @param none what the empty choice is called
 */
export function choicesOf(
  named: readonly Named[],
  none: string,
  chosen: string | null = null,
): readonly Choice[] {
  const first = named.slice(0, CHOICES_MAX);
  const offered = first.some(({ id }) => id === chosen)
    ? first
    : [...first, ...named.filter(({ id }) => id === chosen)];
  return [
    { value: "", words: none },
    ...offered.map(({ id, name }) => ({ value: id, words: printable(name) })),
  ];
}
