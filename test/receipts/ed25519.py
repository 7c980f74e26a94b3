"""Verifies a signature of Ed25519 as RFC 8032, section 5.1.7, says. Python's own library has no Ed25519."""

from hashlib import sha512

P, L = 2**255 - 19, 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P

def add(one, other):
    (a, b), (c, d) = one, other
    k = D * a * b * c * d
    return (a * d + b * c) * pow(1 + k, -1, P) % P, (b * d + a * c) * pow(1 - k, -1, P) % P

def times(count, point):
    half = times(count // 2, add(point, point)) if count else (0, 1)
    return add(half, point) if count % 2 else half

def point(data):
    y, sign = int.from_bytes(data, "little") % 2**255, data[31] >> 7
    square = (y * y - 1) * pow(D * y * y + 1, -1, P)
    x = pow(square, (P + 3) // 8, P)
    x = x if (x * x - square) % P == 0 else x * pow(2, (P - 1) // 4, P) % P
    if len(data) != 32 or y >= P or (x * x - square) % P != 0 or (x == 0 and sign):
        raise ValueError("no point of the curve")
    return (x if x % 2 == sign else P - x), y

def is_signed(key, message, signature):
    s = int.from_bytes(signature[32:], "little")
    k = int.from_bytes(sha512(signature[:32] + key + message).digest(), "little") % L
    base = point((4 * pow(5, -1, P) % P).to_bytes(32, "little"))
    return len(signature) == 64 and s < L and times(s, base) == add(point(signature[:32]), times(k, point(key)))
