#!/usr/bin/env python3
"""Verifies a receipt as src/docs/receipts.md says: verify.py RECEIPT.json JWKS.json [KEY OF A WITNESS ...]"""

import json
import sys

from basics import Number, canonical, hash_of, must, unpadded
from ed25519 import is_signed
from log import check_anchor

sys.excepthook = lambda _, problem, __: print(f"The receipt does not hold: {problem!r}", file=sys.stderr)

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
    check_anchor(receipt["anchor"], receipt["trace"][-1]["entry_hash"], keys, witnesses)
print("The receipt holds.")
