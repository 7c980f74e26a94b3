import { describe, expect, test } from "bun:test";
import { networkInterfaces } from "node:os";
import fc from "fast-check";
import { createAddressRules, networkProblem } from "../../src/platform/addresses.ts";

const none = createAddressRules([]);
const everything = createAddressRules(["0.0.0.0/0", "::/0"]);

describe("without an allow list", () => {
  test.each([
    "1.1.1.1",
    "8.8.8.8",
    "100.63.255.255",
    "100.128.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "192.169.0.1",
    "223.255.255.255",
    "2606:4700::1111",
    "2001:4860:4860::8888",
    "2a00::1",
  ])("%s is allowed", (address) => expect(none.allows(address, 80)).toBe(true));

  test.each([
    "0.0.0.0",
    "10.0.0.1",
    "100.64.0.1",
    "127.0.0.1",
    "127.255.255.254",
    "169.254.0.1",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.1",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "168.63.129.16",
    "::",
    "::1",
    "::ffff:8.8.8.8",
    "::ffff:127.0.0.1",
    "::8.8.8.8",
    "64:ff9b::808:808",
    "64:ff9b:1::1",
    "100::1",
    "2001::1",
    "2001:db8::1",
    "2002:808:808::1",
    "3fff::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "ff02::1",
    "",
    "localhost",
    "example.com",
    "127.1",
    "0x7f000001",
    "2130706433",
    "0177.0.0.1",
    "1.1.1.1:80",
    "[::1]",
  ])("%p is refused", (address) => expect(none.allows(address, 80)).toBe(false));

  /** Each refused range: its name, its first and last address, and an address just outside that is allowed. */
  const REFUSED: readonly (readonly [range: string, first: string, last: string, outside: string])[] = [
    ["0.0.0.0/8 this network", "0.0.0.0", "0.255.255.255", "1.0.0.0"],
    ["10.0.0.0/8 private", "10.0.0.0", "10.255.255.255", "11.0.0.0"],
    ["100.64.0.0/10 carrier-grade NAT", "100.64.0.0", "100.127.255.255", "100.128.0.0"],
    ["127.0.0.0/8 loopback", "127.0.0.0", "127.255.255.255", "128.0.0.0"],
    ["169.254.0.0/16 link-local", "169.254.0.0", "169.254.255.255", "169.255.0.0"],
    ["172.16.0.0/12 private", "172.16.0.0", "172.31.255.255", "172.32.0.0"],
    ["192.0.0.0/24 protocol assignments", "192.0.0.0", "192.0.0.255", "192.0.1.0"],
    ["192.0.2.0/24 documentation", "192.0.2.0", "192.0.2.255", "192.0.3.0"],
    ["192.31.196.0/24 AS112", "192.31.196.0", "192.31.196.255", "192.31.197.0"],
    ["192.52.193.0/24 multicast tunnels", "192.52.193.0", "192.52.193.255", "192.52.194.0"],
    ["192.88.99.0/24 6to4 relays", "192.88.99.0", "192.88.99.255", "192.88.100.0"],
    ["192.168.0.0/16 private", "192.168.0.0", "192.168.255.255", "192.169.0.0"],
    ["192.175.48.0/24 AS112", "192.175.48.0", "192.175.48.255", "192.175.49.0"],
    ["198.18.0.0/15 benchmarks", "198.18.0.0", "198.19.255.255", "198.20.0.0"],
    ["198.51.100.0/24 documentation", "198.51.100.0", "198.51.100.255", "198.51.101.0"],
    ["203.0.113.0/24 documentation", "203.0.113.0", "203.0.113.255", "203.0.114.0"],
    ["224.0.0.0/4 multicast", "224.0.0.0", "239.255.255.255", "223.255.255.255"],
    // Below this range is multicast, and above it there is no address.
    ["240.0.0.0/4 reserved", "240.0.0.0", "255.255.255.255", "223.255.255.255"],
    ["::/3 below global unicast", "::", "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "2000::"],
    ["2001::/23 protocol assignments", "2001::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff", "2001:200::"],
    ["2001:db8::/32 documentation", "2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", "2001:db9::"],
    ["2002::/16 6to4", "2002::", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "2003::"],
    ["3fff::/20 documentation", "3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff", "3fff:1000::"],
    ["4000::/2 above global unicast", "4000::", "7fff::", "3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
    ["8000::/1 above global unicast", "8000::", "ff02::1", "3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
  ];
  test.each(REFUSED)("%s is refused from %s to %s, and %s is allowed", (_, first, last, outside) => {
    const verdicts = [first, last, outside].map((address) => none.allows(address, 80));
    expect(verdicts).toEqual([false, false, true]);
  });

  test("the servers of AS112 are public over IPv6, though ipaddr.js gives them a range of their own", () => {
    for (const address of ["2620:4f:7fff::1", "2620:4f:8000::", "2620:4f:8000:ffff::1", "2620:4f:8001::"])
      expect([address, none.allows(address, 80)]).toEqual([address, true]);
  });

  test("every address of the private ranges is refused", () => {
    const byte = fc.integer({ min: 0, max: 255 });
    const privateAddress = fc.oneof(
      fc.tuple(fc.constantFrom(0, 10, 127), byte, byte, byte),
      fc.tuple(fc.constant(192), fc.constant(168), byte, byte),
      fc.tuple(fc.constant(169), fc.constant(254), byte, byte),
      fc.tuple(fc.constant(172), fc.integer({ min: 16, max: 31 }), byte, byte),
      fc.tuple(fc.constant(100), fc.integer({ min: 64, max: 127 }), byte, byte),
      fc.tuple(fc.integer({ min: 224, max: 255 }), byte, byte, byte),
    );
    fc.assert(
      fc.property(privateAddress, (parts) => {
        expect(none.allows(parts.join("."), 80)).toBe(false);
        expect(none.allows(`::ffff:${parts.join(".")}`, 80)).toBe(false);
      }),
    );
  });
});

describe("with an allow list", () => {
  const rules = createAddressRules(["127.0.0.0/8", "fd00::/8", "10.1.2.3"]);

  test("the networks in it are allowed, and no others", () => {
    for (const address of ["127.0.0.1", "127.9.9.9", "fd12::1", "10.1.2.3", "8.8.8.8"])
      expect([address, rules.allows(address, 80)]).toEqual([address, true]);
    for (const address of ["10.1.2.4", "::1", "::ffff:127.0.0.1", "192.168.0.1"])
      expect([address, rules.allows(address, 80)]).toEqual([address, false]);
  });

  test.each([
    "169.254.169.254",
    "169.254.169.253",
    "169.254.170.2",
    "169.254.170.23",
    "100.100.100.200",
    "168.63.129.16",
    "192.0.0.192",
    "fd00:ec2::23",
    "fd00:ec2::254",
    "fd20:ce::254",
    "fe80::a9fe:a9fe",
    "::ffff:169.254.169.254",
    "64:ff9b::a9fe:a9fe",
    "2002:a9fe:a9fe::1",
  ])("the metadata address %s is refused all the same", (address) => {
    expect(everything.allows(address, 80)).toBe(false);
  });

  test("a malformed network is named", () => {
    for (const network of [
      "10.0.0.0/33",
      "10.0.0/8",
      "::/129",
      "nonsense",
      "",
      "10.0.0.0/",
      "0x0a.0.0.0/8",
    ]) {
      expect(networkProblem(network)).toContain(`"${network}"`);
      expect(() => createAddressRules([network])).toThrow("CIDR");
    }
    expect(networkProblem("10.0.0.0/8")).toBeNull();
    expect(networkProblem("::1")).toBeNull();
  });
});

describe("the service's own listener", () => {
  const local = Object.values(networkInterfaces()).flatMap((entries) => entries ?? []);

  test.each(["127.0.0.1", "0.0.0.0", "::", "192.0.2.7"])(
    "on %s is refused by every local address",
    (address) => {
      const rules = createAddressRules(["0.0.0.0/0", "::/0"], () => [{ address, port: 8080 }]);
      const ways = [
        "127.0.0.1",
        "127.0.0.2",
        "0.0.0.0",
        "::1",
        "::",
        "::ffff:127.0.0.1",
        ...local.map((one) => one.address),
      ];
      for (const way of ways) expect([way, rules.allows(way, 8080)]).toEqual([way, false]);
      expect(rules.allows("127.0.0.1", 8081)).toBe(true);
      expect(rules.allows("10.99.99.99", 8080)).toBe(true);
    },
  );

  test("is asked for at each check, since its port may be known late", () => {
    let port = 0;
    const rules = createAddressRules(["127.0.0.0/8"], () => [{ address: "127.0.0.1", port }]);
    expect(rules.allows("127.0.0.1", 4321)).toBe(true);
    port = 4321;
    expect(rules.allows("127.0.0.1", 4321)).toBe(false);
  });
});
