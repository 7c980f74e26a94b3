"""What the program of the page on receipts begins with (src/docs/receipts.md): hashes and the canonical form of JSON (RFC 8785)."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import sha256

def must(holds, what):
    if not holds:
        raise ValueError(what)

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
