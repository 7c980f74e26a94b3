#!/usr/bin/env python3
"""Verifies a receipt as the page on receipts says (src/docs/receipts.md), with Python 3 and nothing else.

verify.py RECEIPT.json JWKS.json [WITNESS KEY ...]   ends with 1 and says why, where the receipt does not hold
"""

import json
import sys
from base64 import b64decode, urlsafe_b64decode, urlsafe_b64encode
from decimal import Decimal
from hashlib import sha256, sha512

P, L = 2**255 - 19, 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P

def must(holds, what):
    if not holds:
        raise ValueError(what)

def add(p, q):  # Ed25519 (RFC 8032): a point is x, y, z and x * y / z
    a, b = (p[1] - p[0]) * (q[1] - q[0]), (p[1] + p[0]) * (q[1] + q[0])
    c, d = 2 * p[3] * q[3] * D, 2 * p[2] * q[2]
    return (b - a) * (d - c) % P, (d + c) * (b + a) % P, (d - c) * (d + c) % P, (b - a) * (b + a) % P

def times(count, point):
    if count == 0:
        return 0, 1, 1, 0
    half = times(count // 2, add(point, point))
    return add(half, point) if count % 2 else half

def point(data):
    y, sign = int.from_bytes(data, "little") % 2**255, data[31] >> 7
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    x = x if x * x % P == square else x * pow(2, (P - 1) // 4, P) % P
    must(len(data) == 32 and y < P and x * x % P == square, "no point of the curve")
    x = x if x % 2 == sign else -x % P
    return x, y, 1, x * y % P

def signed(key, message, signature):
    (x, y, z, t), s = point(key), int.from_bytes(signature[32:], "little")
    k = int.from_bytes(sha512(signature[:32] + key + message).digest(), "little") % L
    base = point((4 * pow(5, -1, P) % P).to_bytes(32, "little"))
    x, y, z, t = add(times(s, base), times(k, (-x, y, z, -t)))
    x, y = x * pow(z, -1, P) % P, y * pow(z, -1, P) % P
    return len(signature) == 64 and s < L and (y + 2**255 * (x % 2)).to_bytes(32, "little") == signature[:32]

def once(pairs):
    must(len(dict(pairs)) == len(pairs), "a key twice in one object")
    return dict(pairs)

def number(value):  # as RFC 8785 writes it; Python writes 1.0 and 1e-07
    must(abs(value) < 2**53, "a number out of range")
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    text, n = "".join(map(str, digits)), len(digits) + exponent
    if -6 < n <= 0:
        text = "0." + "0" * -n + text
    elif n <= -6:
        text = text[0] + "." * (len(text) > 1) + text[1:] + f"e{n - 1}"
    else:
        text = text[:n] + ("0" * exponent if exponent >= 0 else "." + text[n:])
    return "-" * sign + text if value else "0"

def canonical(value):
    if isinstance(value, dict):
        keys = sorted(value, key=lambda key: key.encode("utf-16-be"))
        return "{" + ",".join(canonical(key) + ":" + canonical(value[key]) for key in keys) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    return number(value) if type(value) in (int, float) else json.dumps(value, ensure_ascii=False)

def hash_of(value):
    return sha256(canonical(value).encode()).hexdigest()

def from_base64url(text):
    data = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    must(urlsafe_b64encode(data).decode().rstrip("=") == text, "not base64url")
    return data

def check_signature(receipt, keys):
    head, body, end = receipt["signature"].split(".")
    header = json.loads(from_base64url(head), object_pairs_hook=once)
    must(header == {"alg": "EdDSA", "typ": "holdfast-receipt+jws", "kid": header["kid"]}, "another header")
    rest = {name: value for name, value in receipt.items() if name != "signature"}
    must(from_base64url(body) == canonical(rest).encode(), "what was signed is something else")
    must(signed(keys[header["kid"]], f"{head}.{body}".encode(), from_base64url(end)), "not the key's signature")

def check_trace(mode, warrant, trace):
    must(warrant["spec"] is None or hash_of(warrant["spec"]) == warrant["spec_hash"], "spec_hash is wrong")
    names = ("amount", "asset", "payee", "spec_hash", "policy_version", "rules_hash")
    terms = {"warrant_id": warrant["id"], "mode": mode, **{name: warrant[name] for name in names}}
    previous, state, paid = None, None, {"released": (10000,), "partially_released": range(1, 10000)}
    for index, entry in enumerate(trace):
        payload, digest = entry["payload"], entry["payload_hash"]
        link = {"warrant_id": warrant["id"], "sequence": index, "previous": previous, "payload_hash": digest}
        must(hash_of(payload) == digest and hash_of(link) == entry["entry_hash"], f"a hash of entry {index}")
        must((payload["from"], payload["version"], entry["sequence"]) == (state, index + 1, index), "the order")
        must(terms == {name: payload[name] for name in terms}, f"the terms of entry {index}")
        must(payload["released_bps"] in paid.get(payload["to"], (None,)), f"the share of entry {index}")
        copies = ("to", "from", "actor", "recorded_at", "rules_hash")
        must(all(entry[name] == payload[name] for name in copies), f"what entry {index} says of its payload")
        previous, state = entry["entry_hash"], payload["to"]
    ends = state, payload["released_bps"], trace[0]["recorded_at"], payload["recorded_at"]
    must(ends == tuple(warrant[name] for name in ("state", "released_bps", "opened_at", "settled_at")), "the end")
    must(state in (*paid, "refunded", "expired"), "it is not settled")

def check_inclusion(entry_hash, anchor):
    f, s, node = anchor["leaf_index"], anchor["tree_size"] - 1, sha256(b"\0" + bytes.fromhex(entry_hash)).digest()
    must(0 <= f <= s, "no such leaf")
    for other in map(bytes.fromhex, anchor["proof"]):
        must(s > 0, "the proof is too long")
        is_right = f % 2 == 1 or f == s
        node = sha256(b"\1" + (other + node if is_right else node + other)).digest()
        while is_right and f % 2 == 0 and f > 0:
            f, s = f // 2, s // 2
        f, s = f // 2, s // 2
    must(s == 0 and node.hex() == anchor["root"], "the entry is not in the tree")

def check_checkpoint(anchor, keys, witnesses):
    text, _, lines = anchor["checkpoint"].rpartition("\n\n")
    origin, size, root = text.split("\n")[:3]
    must((size, b64decode(root).hex()) == (str(anchor["tree_size"]), anchor["root"]), "another checkpoint")
    instance, place = origin.replace("holdfast/", "local:"), (anchor["chain_ref"] or "").split("#")[0]
    must(origin.startswith("holdfast/") and (place == instance or place[:6] != "local:"), "another log")
    logs = [(origin, b"\1" + key) for key in keys.values()]
    found, wanted = [], [(line.split("+")[0], b64decode(line.split("+", 2)[2])) for line in witnesses]
    for dash, name, blob in (line.split(" ") for line in lines.splitlines()):
        data = b64decode(blob)
        for owner, key in logs + wanted:
            if (owner, sha256(f"{owner}\n".encode() + key).digest()[:4]) == (name, data[:4]):
                at = 12 if key[0] == 4 else 4
                stated = f"cosignature/v1\ntime {int.from_bytes(data[4:12], 'big')}\n" if at == 12 else ""
                must(signed(key[1:], f"{stated}{text}\n".encode(), data[at:]), f"the signature of {name}")
                found.append((owner, key))
    must(any(log in found for log in logs), "the log has not signed its checkpoint")
    must(all(witness in found for witness in wanted), "a witness has not signed the checkpoint")

def main(receipt, jwks, *witnesses):
    receipt, jwks = (json.load(open(path, encoding="utf-8"), object_pairs_hook=once) for path in (receipt, jwks))
    keys = {key["kid"]: from_base64url(key["x"]) for key in jwks["keys"]}
    for key in jwks["keys"]:
        thumbprint = sha256(canonical({name: key[name] for name in ("crv", "kty", "x")}).encode()).digest()
        must(from_base64url(key["kid"]) == thumbprint and key["crv"] == "Ed25519", "not what its kid says")
    check_signature(receipt, keys)
    check_trace(receipt["mode"], receipt["warrant"], receipt["trace"])
    must(receipt["anchor"] or not witnesses, "no witness has seen it yet")
    if receipt["anchor"]:
        check_inclusion(receipt["trace"][-1]["entry_hash"], receipt["anchor"])
        check_checkpoint(receipt["anchor"], keys, witnesses)

if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except Exception as problem:  # whatever is not as the page says
        sys.exit(f"The receipt does not hold: {problem!r}")
    print("The receipt holds.")
