/**
 * What a value of JSON must look like before anything in it is compared. TypeBox is not used: this also runs in the page of a
 * receipt, which loads no more than it needs. Fields that are not named are allowed, as later versions may add some.
 */

/** What is wrong with a value, each in words that begin with its path. Whoever asks takes no more than it needs. */
export type Shape = (value: unknown, path: string) => Iterable<string>;

export const kind = (must: string, fits: (value: unknown) => boolean): Shape =>
  function* (value, path) {
    if (!fits(value)) yield `${path} must be ${must}`;
  };

/** @param whole what the value is called where it is the whole document */
export const record = (fields: Readonly<Record<string, Shape>>, whole = "it"): Shape =>
  function* (value, path) {
    if (!isRecord(value)) return yield `${path === "" ? whole : path} must be an object`;
    for (const [name, shape] of Object.entries(fields))
      yield* shape(
        Object.hasOwn(value, name) ? value[name] : undefined,
        path === "" ? name : `${path}.${name}`,
      );
  };

export const list = (item: Shape): Shape =>
  function* (value, path) {
    if (!Array.isArray(value)) return yield `${path} must be a list`;
    for (const [index, one] of value.entries()) yield* item(one, `${path}[${index}]`);
  };

export const orNull =
  (shape: Shape): Shape =>
  (value, path) =>
    value === null ? [] : shape(value, path);

export const orAbsent =
  (shape: Shape): Shape =>
  (value, path) =>
    value === undefined ? [] : shape(value, path);

export const matching = (must: string, pattern: RegExp): Shape =>
  kind(must, (value) => typeof value === "string" && pattern.test(value));

export const integerFrom = (minimum: number, maximum: number): Shape =>
  kind(
    maximum === Number.MAX_SAFE_INTEGER ? "a count" : `an integer from ${minimum} to ${maximum}`,
    (value) => Number.isSafeInteger(value) && (value as number) >= minimum && (value as number) <= maximum,
  );

export const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

export const text = kind("a string", (value) => typeof value === "string");
export const yesOrNo = kind("true or false", (value) => typeof value === "boolean");
export const count = integerFrom(0, Number.MAX_SAFE_INTEGER);
/** Counted from 1. */
export const ordinal = integerFrom(1, Number.MAX_SAFE_INTEGER);
export const hash = matching("64 hexadecimal digits in lower case", /^[0-9a-f]{64}$/);
export const amount = matching("an amount in digits", /^(0|[1-9][0-9]{0,18})$/);
export const time = kind("a time such as 2030-01-15T12:00:00.000Z", isTime);
export const exactly = (only: string): Shape => kind(`"${only}"`, (value) => value === only);

function isTime(value: unknown): boolean {
  if (typeof value !== "string" || !/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(value)) return false;
  const milliseconds = Date.parse(value);
  return Number.isFinite(milliseconds) && new Date(milliseconds).toISOString() === value;
}
