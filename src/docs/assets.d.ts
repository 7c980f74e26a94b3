/** Imported with `{ type: "text" }`: the file as it is, embedded in the binary. */
declare module "*.css" {
  const text: string;
  export = text;
}
declare module "*/search-box.js" {
  const text: string;
  export = text;
}
declare module "*/interactive-start.js" {
  const text: string;
  export = text;
}
/** Imported with `{ type: "file" }`: where the file is, embedded in the binary. */
declare module "*.png" {
  const path: string;
  export = path;
}
declare module "@scalar/standalone" {
  const path: string;
  export = path;
}
