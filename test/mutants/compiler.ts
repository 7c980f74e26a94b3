import { join, resolve } from "node:path";
import { API, type Project } from "typescript/unstable/async";

export const ROOT = resolve(import.meta.dir, "../..");
const CONFIG = join(ROOT, "tsconfig.json");

/** "declared but never used", of a variable, an import, a property. */
const UNUSED = new Set([6133, 6138, 6192, 6196, 6198, 6199]);

/** The type check of the project, with the text of a file replaced. No file is touched. */
export function createCompiler() {
  /** What the compiler reads instead of the file on disk. */
  const overlay = new Map<string, string>();
  const api = new API({ cwd: ROOT, fs: { readFile: (file) => overlay.get(file) } });

  async function open(params: Parameters<typeof api.updateSnapshot>[0]): Promise<Project> {
    const project = (await api.updateSnapshot(params)).getProject(CONFIG);
    if (!project) throw new Error(`${CONFIG} is not a project`);
    return project;
  }

  return {
    open: (): Promise<Project> => open({ openProjects: [CONFIG] }),
    close: (): Promise<void> => api.close(),
    /**
     * Whether the project with this text in the place of the file's has a type error: in the file itself, or with
     * `everywhere` in any file. A variable that is no longer used does not count.
     */
    async hasTypeError(file: string, text: string, everywhere = false): Promise<boolean> {
      overlay.set(file, text);
      const { program } = await open({ fileChanges: { changed: [file] } });
      const diagnostics = await (everywhere
        ? program.getSemanticDiagnostics()
        : program.getSemanticDiagnostics(file));
      overlay.delete(file);
      await open({ fileChanges: { changed: [file] } });
      return diagnostics.some(
        ({ reportsUnnecessary, code }) => reportsUnnecessary !== true && !UNUSED.has(code),
      );
    },
  };
}
export type Compiler = ReturnType<typeof createCompiler>;
