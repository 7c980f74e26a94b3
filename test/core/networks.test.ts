import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { isInNetwork, parseAddress, parseNetwork } from "../../src/core/networks.ts";

describe("parseAddress", () => {
  for (const text of [
    "1.2.3.4",
    "0.0.0.0",
    "255.255.255.255",
    "::1",
    "::",
    "2001:db8::1",
    "::ffff:1.2.3.4",
  ]) {
    test(`takes ${text}`, () => expect(parseAddress(text)).not.toBeNull());
  }

  // Programs disagree on which address an octal, hexadecimal, shortened or decimal form means.
  const BAD = [
    ...[
      "",
      "localhost",
      "1.2.3",
      "127.1",
      "2130706433",
      "0x7f000001",
      "0x7f.0.0.1",
      "010.0.0.1",
      "1.2.3.256",
    ],
    ...["1.2.3.4.5", "1.2.3.4 ", " 1.2.3.4", "1.2.3.4\n", "1.2.3.-4", "1.2.3.4:80", "10.0.0.0/8", "１.2.3.4"],
    ...["[::1]", "::1%lo", "fe80::1%eth0", ":::1", "1::2::3", "::12345", "::1/128", "g::1"],
  ];
  for (const text of BAD) {
    test(`refuses ${JSON.stringify(text)}`, () => expect(parseAddress(text)).toBeNull());
  }
});

describe("parseNetwork", () => {
  const GOOD: readonly (readonly [text: string, base: string, bits: number])[] = [
    ["10.0.0.0/8", "10.0.0.0", 8],
    ["0.0.0.0/0", "0.0.0.0", 0],
    ["1.2.3.4/32", "1.2.3.4", 32],
    ["1.2.3.4", "1.2.3.4", 32],
    ["::1", "::1", 128],
    ["::/0", "::", 0],
    ["fc00::/7", "fc00::", 7],
    ["2001:db8::1/128", "2001:db8::1", 128],
  ];
  for (const [text, base, bits] of GOOD) {
    test(`takes ${text}`, () => {
      const network = parseNetwork(text);
      expect([network?.[0].toString(), network?.[1]]).toEqual([base, bits]);
    });
  }

  const BAD = [
    ...["", "/8", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/8/8", "10.0.0.0/255.0.0.0", "::/129"],
    ...["10.0.0/8", "10/8", "0xa.0.0.0/8", "010.0.0.0/8", "10.0.0.0/0x8", "10.0.0.0/8 ", " 10.0.0.0/8"],
    ...["10.0.0.0/8.0", "fe80::%eth0/10", "::1%lo", "private", "*", "10.0.0.0/8,10.0.0.0/8"],
  ];
  for (const text of BAD) {
    test(`refuses ${JSON.stringify(text)}`, () => expect(parseNetwork(text)).toBeNull());
  }
});

describe("isInNetwork", () => {
  const TABLE: readonly (readonly [address: string, network: string, is: boolean])[] = [
    ["10.0.0.0", "10.0.0.0/8", true],
    ["10.255.255.255", "10.0.0.0/8", true],
    ["11.0.0.0", "10.0.0.0/8", false],
    ["9.255.255.255", "10.0.0.0/8", false],
    ["10.9.9.9", "10.1.2.3/8", true],
    ["1.2.3.4", "1.2.3.4", true],
    ["1.2.3.5", "1.2.3.4", false],
    ["203.0.113.9", "0.0.0.0/0", true],
    ["192.168.1.129", "192.168.1.128/25", true],
    ["192.168.1.127", "192.168.1.128/25", false],
    ["fd00::1", "fc00::/7", true],
    ["fe00::1", "fc00::/7", false],
    ["::1", "::1", true],
    ["::2", "::1", false],
    // An IPv4 address is never in a network of IPv6, nor the other way round, not even in one of all addresses.
    ["1.2.3.4", "::/0", false],
    ["::1", "0.0.0.0/0", false],
    ["::ffff:10.0.0.1", "10.0.0.0/8", false],
    ["10.0.0.1", "::ffff:0:0/96", false],
  ];
  for (const [address, network, is] of TABLE) {
    test(`${address} is ${is ? "" : "not "}in ${network}`, () => {
      expect(isInNetwork(parseAddress(address)!, parseNetwork(network)!)).toBe(is);
    });
  }

  test("compares as many leading bits as the prefix says", () => {
    const words = fc.nat(2 ** 32 - 1);
    const dotted = (word: number) => [24, 16, 8, 0].map((shift) => (word >>> shift) & 255).join(".");
    fc.assert(
      fc.property(words, fc.oneof(words, fc.nat(255)), fc.nat(32), (base, other, bits) => {
        // Nearby addresses too: of random ones hardly any would be inside.
        const address = other < 256 ? base ^ other : other;
        const expected = bits === 0 || (base ^ address) >>> (32 - bits) === 0;
        expect(isInNetwork(parseAddress(dotted(address))!, parseNetwork(`${dotted(base)}/${bits}`)!)).toBe(
          expected,
        );
      }),
      { numRuns: 300 },
    );
  });
});
