import { readFileSync } from "node:fs";
import { dirname } from "node:path";

/** What a process did with files, from strace: whether what it acknowledged would be there after a power cut. */

const CALLS = [
  ...[
    "openat",
    "mkdir",
    "mkdirat",
    "link",
    "linkat",
    "rename",
    "renameat",
    "renameat2",
    "unlink",
    "unlinkat",
  ],
  ...["write", "writev", "pwrite64", "pwritev", "ftruncate", "copy_file_range", "sendfile", "ioctl"],
  ...["fsync", "fdatasync", "sendto", "sendmsg"],
];

/**
 * The start of a command line: runs the rest of it, and its children, and writes what they do into a file. The process is the
 * program itself, so that signals reach it: strace stands beside it (`-D`).
 */
export const tracedInto = (file: string): readonly string[] => [
  ...[
    "strace",
    "-D",
    "-f",
    "-yy",
    "-qq",
    "-s",
    "4",
    "--seccomp-bpf",
    "-e",
    `trace=${CALLS.join()}`,
    "-o",
    file,
  ],
];

/** Whether strace is there, and may trace. */
export const canTrace = (): boolean => {
  try {
    return Bun.spawnSync([...tracedInto("/dev/null"), "true"]).exitCode === 0;
  } catch {
    return false;
  }
};

/** How the files of the folders that matter are just now. */
type Files = {
  /** Written, and not on disk. */
  readonly unsynced: Set<string>;
  /** Names that their folder does not have on disk. */
  readonly unnamed: Set<string>;
  readonly there: Set<string>;
  /** Files that something was ever written to. */
  readonly written: Set<string>;
};

export type Syncs = {
  /** What an answer, on standard output or on a connection, came too early for. */
  readonly problems: readonly string[];
  readonly answers: number;
};

/**
 * Goes through a trace. Whenever the process answers somebody, all that it wrote in this folder must be on disk, and so must the
 * names of the files; a file must be on disk before it gets its final name; and the write-ahead log must not be cut before
 * everything of it is in the ledger, on disk.
 *
 * @param there the names in the folder before
 */
export function syncsIn(trace: string, folder: string, there: readonly string[] = []): Syncs {
  const files: Files = { unsynced: new Set(), unnamed: new Set(), there: new Set(there), written: new Set() };
  const problems = new Set<string>();
  let answers = 0;
  for (const call of finishedCalls(readFileSync(trace, "utf8"))) {
    if (isAnswer(call)) {
      answers += 1;
      for (const problem of notOnDisk(files)) problems.add(`at an answer, ${problem}`);
    } else for (const problem of follow(files, call, folder)) problems.add(problem);
  }
  return { problems: [...problems], answers };
}

type Call = { readonly name: string; readonly args: string; readonly result: string };

/** The calls in the order in which they ended. A call that another thread's call came between is in two lines. */
function* finishedCalls(text: string): Generator<Call> {
  const begun = new Map<string, string>();
  for (const line of text.split("\n")) {
    const [, thread = "", rest = ""] = /^(\d+)\s+(.*)$/.exec(line) ?? [];
    const resumed = /^<\.\.\. \w+ resumed>(.*)$/.exec(rest)?.[1];
    if (rest.endsWith("<unfinished ...>")) {
      begun.set(thread, rest.slice(0, -"<unfinished ...>".length));
      continue;
    }
    const whole = resumed === undefined ? rest : (begun.get(thread) ?? "") + resumed;
    const [, name, args, result] = /^(\w+)\((.*)\)\s+= (.*)$/.exec(whole) ?? [];
    if (name !== undefined && args !== undefined && result !== undefined) yield { name, args, result };
  }
}

const WRITES = new Set(["write", "writev", "pwrite64", "pwritev", "sendto", "sendmsg"]);

/**
 * Whether it says something to somebody: over a connection, or what a command prints, which is JSON. What a process writes to its own
 * children looks otherwise. A file is nobody, though what is written into it may begin like JSON, by chance where it is encrypted.
 */
const isAnswer = ({ name, args }: Call): boolean =>
  WRITES.has(name) && (/^\d+<TCP/.test(args) || /^\d+<[^/]\S*, "\{/.test(args));

/** The log's index is made anew from the log, and a journal is deleted when its transaction is on disk. */
const isDisposable = (path: string): boolean => /-(shm|journal)$/.test(path);
/** The ledger itself may be behind as long as its log is not cut. */
const isLedger = (path: string): boolean => path.endsWith(".db");

function* notOnDisk({ unsynced, unnamed, written }: Files): Generator<string> {
  for (const path of unsynced)
    if (!isDisposable(path) && !isLedger(path)) yield `${path} was written and not synced`;
  for (const path of unnamed)
    if (!isDisposable(path) && (written.has(path) || path.endsWith("/")))
      yield `the name of ${path} was not synced`;
}

/** The paths that a call names: of open files, and as texts. */
const pathsIn = (args: string): readonly string[] =>
  [...args.matchAll(/\d+<([^>]*)>|"([^"]*)"/g)]
    .map(([, ofFile, text]) => ofFile ?? text ?? "")
    .filter((path) => path.startsWith("/"));

/** Follows what one call does to the files. Gives what is wrong with it. */
function follow(files: Files, { name, args, result }: Call, folder: string): readonly string[] {
  if (result.startsWith("-1")) return [];
  const paths = pathsIn(args).filter((path) => path === folder || path.startsWith(`${folder}/`));
  const [path, other] = paths.slice(-2);
  const last = other ?? path;
  if (last === undefined || path === undefined) return [];
  switch (name) {
    case "mkdir":
    case "mkdirat":
      files.unnamed.add(`${last}/`);
      return [];
    case "openat":
      if (args.includes("O_CREAT") && !files.there.has(last)) {
        files.there.add(last);
        files.unnamed.add(last);
      }
      return [];
    case "fsync":
    case "fdatasync":
      files.unsynced.delete(path);
      for (const named of files.unnamed) if (dirname(named) === path) files.unnamed.delete(named);
      return [];
    case "link":
    case "linkat":
    case "rename":
    case "renameat":
    case "renameat2": {
      const early = files.unsynced.has(path) ? [`${last} got its name before it was synced`] : [];
      for (const set of [files.there, files.unnamed, files.written]) set.add(last);
      if (name.startsWith("rename")) forget(files, path);
      return early;
    }
    case "unlink":
    case "unlinkat":
      forget(files, last);
      return cutTooEarly(files, last);
    case "ftruncate":
      return /, 0$/.test(args) ? cutTooEarly(files, path) : written(files, path);
    case "ioctl":
      return args.includes("FICLONE") ? written(files, path) : [];
    case "copy_file_range":
      return written(files, last);
    default:
      return written(files, path);
  }
}

function written({ unsynced, written: ever }: Files, path: string): readonly string[] {
  unsynced.add(path);
  ever.add(path);
  return [];
}

function forget({ unsynced, unnamed, there, written: ever }: Files, path: string): void {
  // A folder that is deleted may have had any of these.
  for (const set of [unsynced, unnamed, there, ever])
    for (const one of set) if (one === path || one === `${path}/`) set.delete(one);
}

function cutTooEarly({ unsynced }: Files, path: string): readonly string[] {
  const ledger = /^(.*)-wal$/.exec(path)?.[1];
  return ledger !== undefined && unsynced.has(ledger) ? [`${path} was cut before ${ledger} was synced`] : [];
}
