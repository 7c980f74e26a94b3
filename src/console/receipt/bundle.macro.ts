/** Runs when the code is bundled or loaded: the page's script becomes a part of the code, so the executable needs no files. */
export function bundledScript(): string {
  const entry = `${import.meta.dir}/browser.ts`;
  const command = [process.execPath, "build", entry, "--target=browser", "--minify"];
  const { success, stdout, stderr } = Bun.spawnSync(command);
  if (!success) throw new Error(stderr.toString());
  return stdout.toString();
}
