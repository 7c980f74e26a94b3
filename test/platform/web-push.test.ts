import { expect, test } from "bun:test";
import { createECDH } from "node:crypto";
import { createWebPush, newPushKey, PUSH_KEY_BYTES } from "../../src/platform/web-push.ts";
import { newBrowser } from "../support/devices.ts";
import { decryptMessage } from "../support/push-service.ts";

/** The encryption of web push (RFC 8291), and the key of an instance. That push services take what it signs is in the tests of notices. */

const webPush = createWebPush(Buffer.from(newPushKey(), "base64"));

test("the test's own decryption reads the example of RFC 8291", () => {
  const keys = createECDH("prime256v1");
  keys.setPrivateKey("q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94", "base64url");
  const body =
    "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN";
  const read = decryptMessage(Buffer.from(body, "base64url"), { keys, auth: "BTBZMqHH6r4Tts7J_aSIgg" });
  expect(read).toBe("When I grow up, I want to be a watermelon");
});

test("a message is read by its browser alone, and is never the same twice", async () => {
  const [browser, other] = [newBrowser(), newBrowser()];
  const text = "8.40 USDC to Łódź 🙂 waits";
  const [first, second] = [await webPush.encrypt(text, browser), await webPush.encrypt(text, browser)];
  expect(decryptMessage(Buffer.from(first), browser)).toBe(text);
  expect(decryptMessage(Buffer.from(second), browser)).toBe(text);
  // Neither the salt nor the sender's key comes twice.
  for (const [from, to] of [
    [0, 16],
    [21, 86],
  ] as const)
    expect(first.subarray(from, to)).not.toEqual(second.subarray(from, to));
  expect(decryptMessage(Buffer.from(first), other)).toBeNull();
  expect(decryptMessage(Buffer.from(first), { ...browser, auth: other.auth })).toBeNull();
  expect(Buffer.from(first).includes(text)).toBe(false);
});

test("a key is 32 bytes, also where it begins with zeros, and 0 is none", () => {
  const small = Buffer.alloc(PUSH_KEY_BYTES);
  small[PUSH_KEY_BYTES - 1] = 1;
  // The generator of the curve.
  expect(Buffer.from(createWebPush(small).publicKey, "base64url").toString("hex")).toStartWith(
    "046b17d1f2e12c42",
  );
  expect(() => createWebPush(Buffer.alloc(PUSH_KEY_BYTES))).toThrow();
  for (let round = 0; round < 300; round++)
    expect(Buffer.from(newPushKey(), "base64")).toHaveLength(PUSH_KEY_BYTES);
});
