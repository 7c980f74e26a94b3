/** Imported with `{ type: "text" }`: the file as it is, embedded in the binary. */
declare module "*.md" {
  const text: string;
  export = text;
}
