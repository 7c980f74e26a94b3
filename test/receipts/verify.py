#!/usr/bin/env python3
"""Verifies a receipt as src/docs/receipts.md says: verify.py RECEIPT.json JWKS.json [KEY OF A WITNESS ...]"""

import json
import sys
from base64 import b64decode, urlsafe_b64decode, urlsafe_b64encode
from hashlib import sha256

from ed25519 import is_signed

def must(holds, what):
    if not holds:
        raise ValueError(what)

sys.excepthook = lambda _, problem, __: print(f"The receipt does not hold: {problem!r}", file=sys.stderr)

class Number(str):
    """A number with a fraction or an exponent, as the receipt has it: that is how RFC 8785 writes it."""

def canonical(value):
    if isinstance(value, dict):
        keys = sorted(value, key=lambda key: key.encode("utf-16-be"))
        return "{" + ",".join(f"{canonical(key)}:{canonical(value[key])}" for key in keys) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    must(not isinstance(value, (int, float, Number)) or abs(float(value)) < 2**53, "a number out of range")
    return value if isinstance(value, Number) else json.dumps(value, ensure_ascii=False)

def hash_of(value):
    return sha256(canonical(value).encode()).hexdigest()

def unpadded(text):
    data = urlsafe_b64decode(text + "==")
    must(urlsafe_b64encode(data).decode().rstrip("=") == text, "not base64url")
    return data

def root_over(node, index, size, proof):
    must(0 <= index < size and (size > 1) == (len(proof) > 0), "the entry is not in the tree")
    if size == 1:
        return node
    left, (*below, other) = 2 ** ((size - 1).bit_length() - 1), proof
    if index < left:
        return sha256(b"\1" + root_over(node, index, left, below) + bytes.fromhex(other)).digest()
    return sha256(b"\1" + bytes.fromhex(other) + root_over(node, index - left, size - left, below)).digest()

def check_trace(mode, warrant, trace):
    terms = ("amount", "asset", "payee", "spec_hash", "policy_version", "rules_hash")
    always = {"warrant_id": warrant["id"], "mode": mode, **{name: warrant[name] for name in terms}}
    shares = {"released": [10000], "partially_released": range(1, 10000)}
    previous, state = None, None
    for number, entry in enumerate(trace):
        payload = {**entry["payload"], **always, "from": state, "version": number + 1}
        copies = {name: payload[name] for name in ("to", "from", "actor", "recorded_at", "rules_hash")}
        state, of = payload["to"], {"sequence": number, "payload_hash": hash_of(payload)}
        previous = hash_of({**of, "warrant_id": warrant["id"], "previous": previous})
        right = {**entry, **copies, **of, "payload": payload, "entry_hash": previous}
        must(canonical(entry) == canonical(right), f"entry {number} does not fit")
        must(payload["released_bps"] in shares.get(state, [None]), f"the share of entry {number}")
    end = {"state": state, "released_bps": payload["released_bps"], "settled_at": payload["recorded_at"]}
    right = {**warrant, **end, "opened_at": trace[0]["recorded_at"]}
    must(canonical(warrant) == canonical(right), "it did not end so")
    must(state in (*shares, "refunded", "expired"), "it is not settled")
    must(warrant["spec"] is None or hash_of(warrant["spec"]) == warrant["spec_hash"], "another spec")

def check_checkpoint(anchor, keys, witnesses):
    text, _, lines = anchor["checkpoint"].rpartition("\n\n")
    log, size, root, *_ = text.split("\n")
    must((size, b64decode(root).hex()) == (str(anchor["tree_size"]), anchor["root"]), "another checkpoint")
    instance, place = log.replace("holdfast/", "local:"), (anchor["chain_ref"] or "").split("#")[0]
    must(log.startswith("holdfast/") and (place == instance or place[:6] != "local:"), "another log")
    logs = {(log, b"\1" + key) for key in keys.values()}
    wanted = {(line.split("+")[0], b64decode(line.split("+", 2)[2])) for line in witnesses}
    found = set()
    for _, name, encoded in (line.split(" ") for line in lines.splitlines()):
        for owner, key in logs | wanted:
            data, at = b64decode(encoded), 12 if key[0] == 4 else 4
            if (name, data[:4]) == (owner, sha256(f"{owner}\n".encode() + key).digest()[:4]):
                time = f"cosignature/v1\ntime {int.from_bytes(data[4:12], 'big')}\n" if at == 12 else ""
                must(is_signed(key[1:], f"{time}{text}\n".encode(), data[at:]), f"the signature of {name}")
                found.add((owner, key))
    must(found & logs, "the log has not signed its checkpoint")
    must(found >= wanted, "a witness has not signed the checkpoint")

paths, witnesses = sys.argv[1:3], sys.argv[3:]
receipt, jwks = (json.load(open(path, encoding="utf-8"), parse_float=Number) for path in paths)
keys = {key["kid"]: unpadded(key["x"]) for key in jwks["keys"]}
for key in jwks["keys"]:
    thumbprint = hash_of({name: key[name] for name in ("crv", "kty", "x")})
    must(unpadded(key["kid"]).hex() == thumbprint and key["crv"] == "Ed25519", "a key is not what its kid says")
head, body, end = receipt.pop("signature").split(".")
header = json.loads(unpadded(head))
must(header == {"alg": "EdDSA", "typ": "holdfast-receipt+jws", "kid": header["kid"]}, "another header")
must(unpadded(body) == canonical(receipt).encode(), "what was signed is something else")
must(is_signed(keys[header["kid"]], f"{head}.{body}".encode(), unpadded(end)), "not the key's signature")
check_trace(receipt["mode"], receipt["warrant"], receipt["trace"])
must(receipt["anchor"] or not witnesses, "no witness has seen it yet")
if receipt["anchor"]:
    leaf = sha256(b"\0" + bytes.fromhex(receipt["trace"][-1]["entry_hash"])).digest()
    anchor = receipt["anchor"]
    root = root_over(leaf, anchor["leaf_index"], anchor["tree_size"], anchor["proof"])
    must(root.hex() == anchor["root"], "the entry is not in the tree")
    check_checkpoint(anchor, keys, witnesses)
print("The receipt holds.")
