"""Verifies a proof of solvency as the page on solvency says (src/docs/solvency.md): python3 solvency.py PROOF JWKS"""

import json
import sys
from base64 import b64decode
from hashlib import sha256

from basics import canonical, hash_of, must, unpadded
from ed25519 import is_signed
from log import check_anchor

FIELDS = {
    "proof": {"object", "statement", "kid", "anchor", "entries"},
    "anchor": {"leaf_index", "tree_size", "root", "proof", "checkpoint"},
    "leaf": {"organisation_id", "mode", "asset", "payee", "amount", "salt"},
}
PARTS = ("available", "held", "payable", "submitted")

def amount_of(digits):
    must(isinstance(digits, str) and digits.isascii() and digits.isdigit() and str(int(digits)) == digits, "not a sum")
    must(int(digits) < 2**128, "a sum is too large")
    return int(digits)

def hash_in(text):
    must(isinstance(text, str) and len(text) == 64 and text == text.lower(), "not a hash")
    return bytes.fromhex(text)

def statement_in(note, kid, keys):
    text, _, line = note.rpartition("\n\n")
    text += "\n"
    first, body = text.splitlines()
    log = first.removesuffix("/solvency")
    must(first == f"{log}/solvency" and line.startswith(f"\u2014 {log} ") and line.count("\n") == 1, "another note")
    signature, key = b64decode(line.split(" ")[2], validate=False), b"\1" + keys[kid]
    must(note == f"{text}\n\u2014 {log} {line.split(' ')[2]}", "another note")
    must(signature[:4] == sha256(f"{log}\n".encode() + key).digest()[:4], "another key has signed")
    must(is_signed(key[1:], text.encode(), signature[4:]), "the statement is not signed")
    statement = json.loads(body)
    must(canonical(statement) == body and log == f"holdfast/{statement['instance_id']}", "another instance")
    return log, {(asset["mode"], asset["asset"]): asset for asset in statement["assets"]}

def check_entry(leaf, path, assets):
    must(set(leaf) == FIELDS["leaf"] and len(hash_in(leaf["salt"])) == 32, "not a leaf")
    asset = assets[leaf["mode"], leaf["asset"]]
    node = sha256(b"\0" + canonical(leaf).encode()).digest()
    total = amount_of(leaf["amount"])
    for step in path:
        must(set(step) == {"side", "hash", "sum"} and step["side"] in ("left", "right"), "not a sibling")
        other, more = hash_in(step["hash"]), amount_of(step["sum"])
        pair = [node + total.to_bytes(16), other + more.to_bytes(16)]
        node, total = sha256(b"\1" + b"".join(pair if step["side"] == "right" else pair[::-1])).digest(), total + more
        must(total < 2**128, "a sum is too large")
    must(node.hex() == asset["root"] and str(total) == asset["owed"], "the entry is not in the statement")
    must(total == sum(amount_of(asset[part]) for part in PARTS), "the parts are not what is owed")

text, jwks = open(sys.argv[1], encoding="utf-8", newline="").read(), json.load(open(sys.argv[2], encoding="utf-8"))
keys = {key["kid"]: unpadded(key["x"]) for key in jwks["keys"]}
for key in jwks["keys"]:
    must(unpadded(key["kid"]).hex() == hash_of({name: key[name] for name in ("crv", "kty", "x")}), "a key is not what its kid says")
proof = json.loads(text)
must(text == f"{canonical(proof)}\n" and set(proof) == FIELDS["proof"], "not as it was written")
anchor, entries = proof["anchor"], proof["entries"]
must(proof["object"] == "solvency_proof" and set(anchor) == FIELDS["anchor"] and entries, "not a proof")
log, assets = statement_in(proof["statement"], proof["kid"], keys)
must(all(set(entry) == {"leaf", "path"} for entry in entries), "not an entry")
creditors = {tuple(entry["leaf"][name] for name in ("organisation_id", "mode", "asset", "payee")) for entry in entries}
must(len(creditors) == len(entries), "a creditor twice")
for entry in entries:
    check_entry(entry["leaf"], entry["path"], assets)
head, _, lines = anchor["checkpoint"].rpartition("\n\n")
must(head.startswith(f"{log}\n") and lines.count("\n") == 1 and lines.startswith(f"\u2014 {log} "), "another checkpoint")
check_anchor({**anchor, "chain_ref": None}, sha256(proof["statement"].encode()).hexdigest(), keys, [])
print("The proof holds.")
