import ipaddr from "ipaddr.js";

export type Address = ipaddr.IPv4 | ipaddr.IPv6;
/** A base address and the length of its prefix in bits. */
export type Network = readonly [Address, number];

/**
 * Whether an address has one of the two accepted forms: four decimal parts, or IPv6 without a zone. ipaddr.js
 * also takes octal, hexadecimal and short forms.
 */
const isWritten = (text: string): boolean =>
  text.includes(":") ? !text.includes("%") : ipaddr.IPv4.isValidFourPartDecimal(text);

export function parseAddress(text: string): Address | null {
  return isWritten(text) && ipaddr.isValid(text) ? ipaddr.parse(text) : null;
}

/** A CIDR such as `10.0.0.0/8`, or a single address; null for any other text. */
export function parseNetwork(text: string): Network | null {
  try {
    if (text.includes("/")) {
      const network = ipaddr.parseCIDR(text);
      return isWritten(text.slice(0, text.indexOf("/"))) ? network : null;
    }
    const address = parseAddress(text);
    return address && [address, address.kind() === "ipv4" ? 32 : 128];
  } catch {
    return null;
  }
}

export function isInNetwork(address: Address, [base, bits]: Network): boolean {
  if (address instanceof ipaddr.IPv4) return base instanceof ipaddr.IPv4 && address.match(base, bits);
  return base instanceof ipaddr.IPv6 && address.match(base, bits);
}
