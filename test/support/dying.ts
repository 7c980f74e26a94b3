/** A process that dies at the n-th thing that it waits for: before that is done, or when it is done. */
export type Dying = {
  /** The same thing, whose named methods the process waits for. */
  of<Of extends object>(of: Of, names: readonly string[]): Of;
  died(): boolean;
};

export const STORE_CALLS = ["read", "execute"];
export const WALLET_CALLS = [
  ...["look", "gasOf", "sign", "send", "balanceOf", "refusalOf", "receipt", "missingIn"],
];

export function dyingAt(n: number, when: "before" | "after"): Dying {
  let count = 0;
  let hasDied = false;
  return {
    of: (of, names) =>
      new Proxy(of, {
        get(target, name) {
          const value = Reflect.get(target, name) as unknown;
          if (typeof value !== "function" || !names.includes(String(name))) return value;
          return async (...asked: unknown[]) => {
            count += 1;
            hasDied ||= count === n;
            // What is dead does nothing more.
            if (hasDied && (when === "before" || count > n)) throw new Error("killed");
            const answer = await (value as (...asked: unknown[]) => unknown).apply(target, asked);
            if (hasDied) throw new Error("killed");
            return answer;
          };
        },
      }),
    died: () => hasDied,
  };
}
