"""The third question of the page on receipts (src/docs/receipts.md): whether it could be changed later without anybody seeing it."""

from base64 import b64decode
from hashlib import sha256

from basics import must
from ed25519 import is_signed

def check_anchor(anchor, entry_hash, keys, witnesses):
    leaf = sha256(b"\0" + bytes.fromhex(entry_hash)).digest()
    root = root_over(leaf, anchor["leaf_index"], anchor["tree_size"], anchor["proof"])
    must(root.hex() == anchor["root"], "the entry is not in the tree")
    check_checkpoint(anchor, keys, witnesses)

def root_over(node, index, size, proof):
    must(0 <= index < size and (size > 1) == (len(proof) > 0), "the entry is not in the tree")
    if size == 1:
        return node
    left, (*below, other) = 2 ** ((size - 1).bit_length() - 1), proof
    if index < left:
        return sha256(b"\1" + root_over(node, index, left, below) + bytes.fromhex(other)).digest()
    return sha256(b"\1" + bytes.fromhex(other) + root_over(node, index - left, size - left, below)).digest()

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
