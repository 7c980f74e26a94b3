import { type ImportGraph, reachedFrom } from "./imports.ts";

/** The circles of a graph: each is the sorted list of nodes that can all reach one another. */
export function circlesOf(graph: ImportGraph): string[][] {
  const reached = new Map([...graph.keys()].map((node) => [node, reachedFrom([node], graph)]));
  const canReach = (from: string, to: string): boolean => reached.get(from)?.has(to) ?? false;
  const inCircles = [...graph.keys()].filter((node) => canReach(node, node)).sort();
  const circles = inCircles.map((node) =>
    inCircles.filter((other) => canReach(node, other) && canReach(other, node)),
  );
  // Every node of a circle gives the same list, so the list of its first node is enough.
  return circles.filter((circle, index) => circle[0] === inCircles[index]);
}

/**
 * The imports between folders that lie side by side: where `a/b/x.ts` imports `a/c/d/y.ts`, `a/b` imports `a/c`. An import
 * between a folder and the files of the folder around it does not count.
 */
export function folderGraph(graph: ImportGraph): ImportGraph {
  const folders = new Map<string, Set<string>>();
  for (const [path, targets] of graph) {
    for (const target of targets) {
      const [from, to] = sideBySide(path.split("/"), target.split("/"));
      if (from === null || to === null) continue;
      folders.set(from, (folders.get(from) ?? new Set()).add(to));
    }
  }
  return folders;
}

/** The folders at which two paths differ for the first time; null where one of the paths has its file's name there. */
function sideBySide(from: readonly string[], to: readonly string[]): readonly [string | null, string | null] {
  const depth = from.findIndex((part, index) => part !== to[index]);
  const folderAt = (parts: readonly string[]): string | null =>
    depth >= 0 && depth < parts.length - 1 ? parts.slice(0, depth + 1).join("/") : null;
  return [folderAt(from), folderAt(to)];
}
