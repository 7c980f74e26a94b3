/** One request to the service in a process of its own, which is killed right after so many commits. */
import { openForCommands } from "../../src/app/ledger.ts";
import { docsUrlOf } from "../../src/app/urls.ts";
import { readConfig, readSecrets } from "../../src/config.ts";
import { createShell } from "../../src/http/shell.ts";
import { withCommands } from "../support/failing-commands.ts";
import { must } from "../support/organisations.ts";

const [commits = "1", url = "", headers = "{}", body = "{}"] = process.argv.slice(2);

const config = must(readConfig({}));
const { ctx } = await openForCommands(config, must(readSecrets()));
let left = Number(commits);
const killed = withCommands(ctx, async (_, go) => {
  const answer = await go();
  if (--left === 0) process.kill(process.pid, "SIGKILL");
  return answer;
});
const shell = createShell(killed, {
  docsUrl: docsUrlOf(config),
  rateLimits: config.rateLimits,
  trustedProxies: config.trustProxy,
  onFault: (error) => console.error(error),
});
const answer = await shell(
  new Request(url, { method: "POST", headers: JSON.parse(headers), body }),
  () => "127.0.0.1",
);
console.error(`not killed: ${answer.status} ${await answer.text()}`);
process.exit(1);
