/** A token that `exact` payments are made with, and its asset in the ledger. */
export type AssetRule = {
  readonly chainId: number;
  /** The token's address, in lower case. */
  readonly contract: string;
  /** The asset in the ledger: 1 to 32 characters of A-Z a-z 0-9 . _ : - */
  readonly asset: string;
  /** The token's EIP-712 domain. The token rejects a signature for any other. */
  readonly tokenName: string;
  readonly tokenVersion: string;
};

const usdc = (chainId: number, contract: string, tokenName: "USDC" | "USD Coin"): AssetRule => ({
  chainId,
  contract: contract.toLowerCase(),
  asset: "USDC",
  tokenName,
  tokenVersion: "2",
});

/**
 * USDC on the chains where it takes EIP-3009 authorizations: the list of @x402/evm (its `DEFAULT_ASSETS` of symbol USDC; a
 * test compares the two), and two test networks of protocol version 1 that are no longer on that list.
 */
export const KNOWN_ASSETS: readonly AssetRule[] = [
  usdc(1, "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48", "USD Coin"),
  usdc(50, "0xfA2958CB79b0491CC627c1557F441eF849Ca8eb1", "USDC"),
  usdc(51, "0xb5AB69F7bBada22B28e79C8FFAECe55eF1c771D4", "USDC"),
  usdc(137, "0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359", "USD Coin"),
  usdc(143, "0x754704Bc059F8C67012fEd69BC8A327a5aafb603", "USDC"),
  usdc(1_328, "0x4fCF1784B31630811181f670Aea7A7bEF803eaED", "USDC"),
  usdc(1_329, "0xe15fC38F6D8c56aF07bbCBe3BAf5708A2Bf42392", "USDC"),
  usdc(8_453, "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913", "USD Coin"),
  usdc(42_161, "0xaf88d065e77c8cC2239327C5EDb3A432268e5831", "USD Coin"),
  usdc(42_220, "0xcebA9300f2b948710d2653dD7B07f33A8B32118C", "USDC"),
  usdc(43_113, "0x5425890298aed601595a70AB815c96711a31Bc65", "USD Coin"),
  usdc(43_114, "0xB97EF9Ef8734C71904D8002F8b6Bc66Dd9c48a6E", "USD Coin"),
  usdc(80_002, "0x41E94Eb019C0762f9Bfcf9Fb1E58725BfB0e7582", "USDC"),
  usdc(84_532, "0x036CbD53842c5426634e7929541eC2318f3dCF7e", "USDC"),
  usdc(421_614, "0x75faf114eafb1BDbe2F0316DF893fd58CE46AA4d", "USD Coin"),
  usdc(11_142_220, "0x01C5C0122039549AD1493B8220cABEdD739BC44E", "USDC"),
];

const EVM_ADDRESS = /^0x[0-9a-fA-F]{40}$/;

export const isEvmAddress = (text: string): boolean => EVM_ADDRESS.test(text);

/** The rule of a token; of two rules for one token, the first. */
export const findAsset = (
  rules: readonly AssetRule[],
  chainId: number,
  contract: string,
): AssetRule | undefined =>
  rules.find((rule) => rule.chainId === chainId && rule.contract === contract.toLowerCase());
