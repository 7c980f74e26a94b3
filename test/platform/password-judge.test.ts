import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { createPasswordJudge } from "../../src/platform/password-judge.ts";

const judge = createPasswordJudge();
const known = ["ada.lovelace@analytical.example", "lovelace", "analytical engines"];

describe("a password that is easy to guess is refused, in words that say why", () => {
  for (const [password, why] of [
    ["password1234", "similar to a commonly used password"],
    ["thisismypassword", "in lists of stolen passwords"],
    ["ThisIsMyPassword", "in lists of stolen passwords"],
    ["aaaaaaaaaaaa", 'Repeated characters like "aaa"'],
    ["abcabcabcabcabc", 'like "abcabcabc"'],
    ["P@$$w0rd2030!", "Add more words"],
    ["another one.", "Add more words"],
    ["Lovelace1815", "your e-mail, your name or your organisation's name"],
    ["analytical engines", "your e-mail, your name or your organisation's name"],
    ["ADA.LOVELACE@analytical.example", "your e-mail, your name or your organisation's name"],
  ] as const) {
    test(password, async () => {
      const weakness = await judge({ password, known });
      expect(weakness).toStartWith("must be harder to guess. ");
      expect(weakness).toContain(why);
      expect(weakness?.toLowerCase()).not.toContain(password.toLowerCase());
    });
  }
});

test("words that have nothing to do with each other are good enough, and so is what a machine draws", async () => {
  for (const password of [
    "correct horse battery staple",
    "kettle violin orbit",
    "Xk9$mQ2v!pL7",
    "пароль верблюд окно",
  ])
    expect(await judge({ password, known })).toBeNull();
});

test("what somebody knows of the person makes the difference", async () => {
  const password = "quetzalcoatlus";
  expect(await judge({ password, known: [] })).toBeNull();
  expect(await judge({ password, known: ["quetzalcoatlus"] })).toContain("your name");
});

test("the longest passwords are judged soon, several at once too", async () => {
  await judge({ password: "is the thread there?", known });
  const startedAt = performance.now();
  // Without the limits of length and substitutions each of them takes 2 to 6 s.
  const slowest = ["19", "1", "1l0v3y0u", "4@8({[<3691!|170$5+2"].map((part) =>
    part.repeat(256).slice(0, 256),
  );
  const found = await Promise.all(slowest.map((password) => judge({ password, known })));
  expect(performance.now() - startedAt).toBeLessThan(4 * 750);
  expect(found.map((weakness) => weakness === null)).toEqual([false, false, false, true]);
});

test("a password after a pause is judged too, and a process ends after its last one without a pause", async () => {
  const program = `
    import { createPasswordJudge } from ${JSON.stringify(join(import.meta.dir, "../../src/platform/password-judge.ts"))};
    const judge = createPasswordJudge(1);
    const found = [await judge({ password: "password1234", known: [] })];
    await Bun.sleep(100); // The thread ends meanwhile.
    found.push(await judge({ password: "kettle violin orbit", known: [] }));
    found.push(await createPasswordJudge()({ password: "kettle violin orbit", known: [] }));
    console.log(found.map((weakness) => weakness === null).join());
  `;
  const startedAt = performance.now();
  const child = Bun.spawn([process.execPath, "-e", program], { stdout: "pipe", stderr: "inherit" });
  expect(await new Response(child.stdout).text()).toBe("false,true,true\n");
  expect(await child.exited).toBe(0);
  expect(performance.now() - startedAt).toBeLessThan(10_000);
}, 20_000);
