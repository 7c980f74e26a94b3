import { parseJsonText } from "../core/json-text.ts";
import { optionFailure } from "./failure.ts";

/** Turns the texts of a command line into the input of a verb. The verb checks the values. */

const FILE_BYTES_MAX = 1024 * 1024;

/** The fields that were given, without those that are undefined. */
export const given = <Fields extends object>(fields: Fields) =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [Name in keyof Fields]?: Exclude<Fields[Name], undefined>;
  };

/** A whole number. Other text becomes NaN, which every verb refuses with a message that names the field. */
const wholeNumber = (text: string): number => (/^[0-9]{1,15}$/.test(text) ? Number(text) : Number.NaN);

export const wholeNumberIfGiven = (text: string | undefined): number | undefined =>
  text === undefined ? undefined : wholeNumber(text);

/** The values of an option that takes several, with commas and blanks between. */
export const listIfGiven = (text: string | undefined): readonly string[] | undefined =>
  text?.split(",").map((one) => one.replace(/^ +| +$/g, ""));

/** The value of an option that takes JSON, or a file that holds it as `@file`. */
export async function readJson(option: string, text: string): Promise<unknown> {
  const parsed = parseJsonText(text.startsWith("@") ? await readText(option, text.slice(1)) : text);
  if ("problem" in parsed) throw optionFailure(option, parsed.problem);
  return parsed.value;
}

/** A file that holds JSON. */
export async function readJsonFile(argument: string, path: string, bytesMax?: number): Promise<unknown> {
  const parsed = parseJsonText(await readText(argument, path, bytesMax));
  if ("problem" in parsed) throw optionFailure(argument, `${path} ${parsed.problem}`);
  return parsed.value;
}

/** A secret, given as an option's value or in a file. A file is safer: other users of the machine can see options. */
export async function readSecret(
  option: string,
  text: string | undefined,
  file: string | undefined,
): Promise<string> {
  if (text !== undefined && file === undefined) return text;
  if (text !== undefined) throw optionFailure(option, `cannot be given together with ${option}-file`);
  if (file === undefined) throw optionFailure(option, `is missing: give it, or ${option}-file`);
  return readSecretFile(`${option}-file`, file);
}

/** A secret in a file, without the file's last newline. */
export const readSecretFile = async (option: string, file: string): Promise<string> =>
  (await readText(option, file)).replace(/\r?\n$/, "");

/** A file as text, without the byte-order mark that it may begin with; `-` is the standard input. */
const readText = async (option: string, path: string, bytesMax = FILE_BYTES_MAX): Promise<string> =>
  (await readExactText(option, path, bytesMax)).replace(/^\ufeff/, "");

/** A file as text that has the same bytes again. */
export async function readExactText(option: string, path: string, bytesMax: number): Promise<string> {
  const file = path === "-" ? Bun.stdin : Bun.file(path);
  let bytes: Uint8Array;
  try {
    bytes = await file.bytes();
  } catch (error) {
    const { code } = error as { code?: unknown };
    throw optionFailure(option, `cannot read ${path}${typeof code === "string" ? ` (${code})` : ""}`);
  }
  if (bytes.length > bytesMax)
    throw optionFailure(option, `${path} is larger than ${bytesMax / FILE_BYTES_MAX} MiB`);
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw optionFailure(option, `${path} is not text in UTF-8`);
  }
}
