/** A local chain in a process of its own, so that a test can stop it: prints its URL, and lives as long as its input is open. */
import { createHardhatRuntimeEnvironment } from "hardhat/hre";

const { network } = await createHardhatRuntimeEnvironment(
  {
    networks: {
      local: {
        type: "edr-simulated",
        chainType: "l1",
        chainId: Number(process.argv[2]),
        // Without this, fifty payments in one second move the chain's clock fifty seconds ahead, and authorizations expire.
        allowBlocksWithSameTimestamp: true,
      },
    },
  },
  {},
  import.meta.dir,
);
const server = await network.createServer("local", "127.0.0.1", 0);
const { address, port } = await server.listen();
console.log(`http://${address}:${port}`);
for await (const _ of Bun.stdin.stream());
process.exit();
