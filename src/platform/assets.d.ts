/** Imported with `{ type: "text" }`: the file as it is, embedded in the binary. */
declare module "*.txt" {
  const text: string;
  export = text;
}
