import { sha256Bytes } from "./canonical.ts";
import { parseVerifierKey } from "./signed-note.ts";
import { checkSourceUrl } from "./source-url.ts";
import { type LogToWitness, WITNESSES_MAX, type Witness } from "./witness.ts";

/** How the settings of witnesses are read (docs/witnesses, "Set it up"). */

const LOGS_MAX = 100;

type Problem = { readonly problem: string };

const entriesOf = (text: string): readonly string[] => text.split(",").map((entry) => entry.trim());

const NO_KEY = "is not a key as `holdfast witness show` prints it, such as name+1a2b3c4d+AQ…";

/**
 * Logs by their verifier keys: `name+id+key`, with commas between. A log's origin is the key's name, or what stands before it:
 * `origin=name+id+key`. The keys of one origin may be several.
 */
export function parseLogs(text: string): readonly LogToWitness[] | Problem {
  const logs = new Map<string, LogToWitness>();
  for (const entry of entriesOf(text)) {
    const [, origin, encoded = ""] = /^(?:(.+)=)?([^=+]+\+[^+]+\+.+)$/.exec(entry) ?? [];
    const key = parseVerifierKey(encoded, sha256Bytes);
    if (!key) return { problem: `must be keys of logs, with commas between; ${entry} ${NO_KEY}` };
    if (key.type !== "ed25519") {
      return { problem: `must be keys of logs; ${entry} is the key of a witness` };
    }
    const name = origin ?? key.name;
    logs.set(name, { origin: name, keys: [...(logs.get(name)?.keys ?? []), key] });
  }
  return logs.size > LOGS_MAX ? { problem: `must be at most ${LOGS_MAX} logs` } : [...logs.values()];
}

/** Witnesses by their verifier keys and URLs: `name+id+key=https://…`, with commas between. */
export function parseWitnesses(text: string): readonly Witness[] | Problem {
  const witnesses: Witness[] = [];
  for (const entry of entriesOf(text)) {
    const [, encoded = "", url = ""] = /^([^=]+)=(https?:.+)$/.exec(entry) ?? [];
    const key = parseVerifierKey(encoded, sha256Bytes);
    if (!key) {
      return {
        problem: `must be keys of witnesses and their URLs, such as name+1a2b3c4d+BA…=https://…; ${entry} ${NO_KEY}`,
      };
    }
    if (key.type !== "cosignature") {
      return { problem: `must be keys of witnesses; ${entry} has the key of a log` };
    }
    if (checkSourceUrl(url) !== null || /[?#]/.test(url)) {
      return { problem: `must have an http or https URL without ? and # after each key; ${entry} has none` };
    }
    if (witnesses.some((known) => known.key.name === key.name)) {
      return { problem: `must be witnesses, each named once; ${key.name} is named twice` };
    }
    witnesses.push({ key, url: url.replace(/\/+$/, "") });
  }
  return witnesses.length > WITNESSES_MAX
    ? { problem: `must be at most ${WITNESSES_MAX} witnesses` }
    : witnesses;
}
