/**
 * `did:web`: identifiers that resolve to a document at an address (W3C CCG, did:web Method Specification). They
 * follow from the base URL at which the instance is reached now, and are kept nowhere.
 */

/**
 * The instance's identifier. Its document is at `<base URL>/.well-known/did.json`. The method leaves these two segments
 * out for a host alone; under a path only the file's name is left out.
 */
export function didOfInstance(baseUrl: string): string {
  const { did, hasPath } = didOfUrl(baseUrl);
  return hasPath ? `${did}:.well-known` : did;
}

/** An agent's identifier. Its document is at `<base URL>/agents/<id>/did.json`. */
export const didOfAgent = (baseUrl: string, agentId: string): string =>
  `${didOfUrl(baseUrl).did}:agents:${agentId}`;

/** The host, in which a port's colon is percent-encoded, and each segment of the path, with colons between. */
function didOfUrl(baseUrl: string) {
  const { host, pathname } = new URL(baseUrl);
  const path = pathname.split("/").filter((segment) => segment !== "");
  const segments = [host, ...path.map(decodeURIComponent)].map(encodeURIComponent);
  return { did: `did:web:${segments.join(":")}`, hasPath: path.length > 0 };
}
