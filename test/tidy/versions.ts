import type { SourceFile } from "./source-files.ts";

/** The parts of package.json that these rules read. */
export type Manifest = {
  readonly engines: { readonly bun: string };
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>> & { readonly bun: string };
  readonly scripts: Readonly<Record<string, string>>;
};

/** The dependencies whose version is a range. */
export const rangedVersions = ({ dependencies, devDependencies }: Manifest): string[] =>
  Object.entries({ ...dependencies, ...devDependencies })
    .filter(([, version]) => !/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version))
    .map(([name, version]) => `package.json: ${name} is ${version}; pin one version`);

/** Where a file names another version of Bun than package.json pins. */
export const otherBuns = ({ path, text }: SourceFile, pinned: string): string[] =>
  [...text.matchAll(/\bbun[@:](\d+\.\d+\.\d+)/g)]
    .filter(([, version]) => version !== pinned)
    .map(([mention]) => `${path}: ${mention}, but package.json pins ${pinned}`);

/** The files of test/ that a script of package.json runs by name. */
export const programsOf = ({ scripts }: Manifest): string[] =>
  Object.values(scripts).flatMap((script) =>
    [...script.matchAll(/(?<=^|\s)(?:\.\/)?(test\/\S+\.ts)/g)].map(([, path = ""]) => path),
  );
