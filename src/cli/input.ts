import { parseJsonText } from "../core/json-text.ts";
import { optionFailure } from "./failure.ts";

/** How the texts of the command line become the inputs of verbs. The verbs check the values. */

const FILE_BYTES_MAX = 1024 * 1024;

/** The given fields, without those that are undefined. */
export const given = <Fields extends object>(fields: Fields) =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [Name in keyof Fields]?: Exclude<Fields[Name], undefined>;
  };

/** A whole number; NaN, which every verb refuses by the field's name, where it is none. */
const wholeNumber = (text: string): number => (/^[0-9]{1,15}$/.test(text) ? Number(text) : Number.NaN);

export const wholeNumberIfGiven = (text: string | undefined): number | undefined =>
  text === undefined ? undefined : wholeNumber(text);

/** The value of an option that takes JSON text or `@file`. */
export async function readJson(option: string, text: string): Promise<unknown> {
  const parsed = parseJsonText(text.startsWith("@") ? await readText(option, text.slice(1)) : text);
  if ("problem" in parsed) throw optionFailure(option, parsed.problem);
  return parsed.value;
}

/** A secret given in the open, or in a file, where other users of the machine cannot see it among the processes. */
export async function readSecret(
  option: string,
  text: string | undefined,
  file: string | undefined,
): Promise<string> {
  if (text !== undefined && file === undefined) return text;
  if (text !== undefined || file === undefined) throw optionFailure(option, `give it, or ${option}-file`);
  return (await readText(`${option}-file`, file)).replace(/\r?\n$/, "");
}

/** A file as text; `-` is the standard input. */
async function readText(option: string, path: string): Promise<string> {
  const file = path === "-" ? Bun.stdin : Bun.file(path);
  let text: string;
  try {
    text = await file.text();
  } catch (error) {
    const { code } = error as { code?: unknown };
    throw optionFailure(option, `cannot read ${path}${typeof code === "string" ? ` (${code})` : ""}`);
  }
  if (Buffer.byteLength(text) > FILE_BYTES_MAX) throw optionFailure(option, `${path} is larger than 1 MiB`);
  return text;
}
