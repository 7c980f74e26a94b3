#!/usr/bin/env python3
"""Evaluates the cases beside it again, as the page on evaluation says (src/docs/evaluation.md).

A second program, written from that page alone: it shares no line and no table with src, and needs nothing but
Python 3. Where it and the service differ, one of them or the page is wrong.

    replay.py                      the cases in cases/, and the hashes of checks
    replay.py --path-suite FILE    the JSONPath compliance suite (cts.json) as well

Of json.schema it knows most keywords, but no pattern and few formats: it counts the cases that it skips.
It ends with 1 where anything differs, and where it skips more than are written down here (SKIPPED_MAX).
"""

import base64
import functools
import hashlib
import re
import sys
import unicodedata
from pathlib import Path

HERE = Path(__file__).resolve().parent
SUITE = (HERE / "../../../shared/data/jsonpath-cts.json").resolve()
# The cases of json.schema with the keyword `pattern`.
SKIPPED_MAX = 6
sys.setrecursionlimit(20_000)


# ---- JSON: numbers are floats, texts are code points, objects keep the page's order of members


class NotJson(Exception):
    pass


NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
PLAIN = re.compile(r'[^"\\\x00-\x1f]*')
SPACE = re.compile(r"[ \t\n\r]*")
SHORT = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
WORDS = {"true": True, "false": False, "null": None}
INDEX = re.compile(r"0|[1-9][0-9]{0,9}")


def is_index(key):
    return INDEX.fullmatch(key) is not None and int(key) <= 4_294_967_294


def in_order(members):
    """First the keys that are indexes, rising; then the others, as they stand."""
    indexes = sorted((key for key in members if is_index(key)), key=int)
    if not indexes:
        return members
    return {**{key: members[key] for key in indexes}, **members}


class Reader:
    def __init__(self, text, depth_max):
        self.text, self.at, self.depth_max = text, 0, depth_max

    def whole(self):
        value = self.value(0)
        if self.at != len(self.text):
            raise NotJson
        return value

    def space(self):
        self.at = SPACE.match(self.text, self.at).end()

    def take(self, wanted):
        if not self.text.startswith(wanted, self.at):
            raise NotJson
        self.at += len(wanted)

    def next_is(self, wanted):
        if not self.text.startswith(wanted, self.at):
            return False
        self.at += len(wanted)
        return True

    def value(self, depth):
        self.space()
        first = self.text[self.at : self.at + 1]
        if first in ("[", "{"):
            if depth == self.depth_max:
                raise NotJson
            self.at += 1
            value = self.items(depth + 1) if first == "[" else self.members(depth + 1)
        elif first == '"':
            value = self.string()
        else:
            value = self.scalar()
        self.space()
        return value

    def scalar(self):
        for word, value in WORDS.items():
            if self.next_is(word):
                return value
        number = NUMBER.match(self.text, self.at)
        if number is None:
            raise NotJson
        self.at = number.end()
        return float(number.group())

    def items(self, depth):
        items = []
        self.space()
        if self.next_is("]"):
            return items
        while True:
            items.append(self.value(depth))
            if self.next_is("]"):
                return items
            self.take(",")

    def members(self, depth):
        members = {}
        self.space()
        if self.next_is("}"):
            return members
        while True:
            self.space()
            key = self.string()
            self.space()
            self.take(":")
            members[key] = self.value(depth)
            if self.next_is("}"):
                return in_order(members)
            self.take(",")

    def string(self):
        self.take('"')
        parts = []
        while True:
            plain = PLAIN.match(self.text, self.at)
            parts.append(plain.group())
            self.at = plain.end()
            if self.next_is('"'):
                return join_surrogates("".join(parts))
            self.take("\\")
            letter = self.text[self.at : self.at + 1]
            self.at += 1
            if letter == "u":
                parts.append(chr(self.hex4()))
            elif letter in SHORT:
                parts.append(SHORT[letter])
            else:
                raise NotJson

    def hex4(self):
        digits = re.compile(r"[0-9A-Fa-f]{4}").match(self.text, self.at)
        if digits is None:
            raise NotJson
        self.at = digits.end()
        return int(digits.group(), 16)


def join_surrogates(text):
    def pair(found):
        high, low = found.group()
        return chr(0x10000 + ((ord(high) & 0x3FF) << 10) + (ord(low) & 0x3FF))

    return re.sub("[\ud800-\udbff][\udc00-\udfff]", pair, text)


def read_json(text, depth_max=10_000):
    return Reader(text, depth_max).whole()


def read_body(body):
    """The document in a body, or NotJson."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        raise NotJson from None
    return read_json(text.removeprefix("\ufeff"), depth_max=512)


def equal(left, right):
    if type(left) is not type(right):
        return False
    if isinstance(left, list):
        return len(left) == len(right) and all(map(equal, left, right))
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(equal(left[key], right[key]) for key in left)
    return left == right


# ---- writing JSON


def number_text(number):
    """A double as ECMAScript writes it. Python finds the same digits, and sets them otherwise."""
    if number != number or number in (float("inf"), float("-inf")):
        return "null"
    if number == 0:
        return "0"
    mantissa, _, exponent = f"{abs(number)!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    fraction = "" if fraction == "0" else fraction
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    if 0 < point <= 21:
        text = digits.ljust(point, "0") if len(digits) <= point else f"{digits[:point]}.{digits[point:]}"
    elif -6 < point <= 0:
        text = f"0.{'0' * -point}{digits}"
    else:
        tail = f".{digits[1:]}" if len(digits) > 1 else ""
        text = f"{digits[0]}{tail}e{point - 1:+d}"
    return f"-{text}" if number < 0 else text


def string_text(text):
    short = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    escape = lambda found: short.get(found.group()) or f"\\u{ord(found.group()):04x}"
    return '"' + re.sub('["\\\\\x00-\x1f\ud800-\udfff]', escape, text) + '"'


def utf16(key):
    return key.encode("utf-16-be", "surrogatepass")


def json_text(value, is_sorted=False):
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, float):
        return number_text(value)
    if isinstance(value, str):
        return string_text(value)
    if isinstance(value, list):
        return f"[{','.join(json_text(item, is_sorted) for item in value)}]"
    keys = sorted(value, key=utf16) if is_sorted else value
    return "{" + ",".join(f"{string_text(key)}:{json_text(value[key], is_sorted)}" for key in keys) + "}"


def canonical(value):
    return json_text(value, is_sorted=True)


def sha256(data):
    return hashlib.sha256(data if isinstance(data, bytes) else data.encode("utf-8")).hexdigest()


def has_canonical_form(value):
    if isinstance(value, float):
        return abs(value) != float("inf")
    if isinstance(value, str):
        return re.search("[\ud800-\udfff]", value) is None
    if isinstance(value, list):
        return all(map(has_canonical_form, value))
    if isinstance(value, dict):
        return all(map(has_canonical_form, [*value.keys(), *value.values()]))
    return True


def observed_of(value):
    text = json_text(value)
    data = text.encode("utf-8")
    if len(data) > 1024:
        return data[:1024].decode("utf-8", "ignore")
    return value if has_canonical_form(value) else text


# ---- patterns: I-Regexp (RFC 9485)


class NoPattern(Exception):
    """It is not an I-Regexp: it matches nothing."""


class CannotBeMatched(Exception):
    """It is beyond the limits: the clause fails."""


COUNT_MAX = 1000
GENERAL = re.compile(r"\\([pP])\{(L[lmotu]?|M[cen]?|N[dlo]?|P[cdefios]?|Z[lps]?|S[ckmo]?|C[cfno]?)\}")
QUANTIFIER = re.compile(r"[*+?]|\{([0-9]+)(,([0-9]*))?\}")


@functools.cache
def general_category(name):
    """The members of a class: all code points of the category."""
    points = [point for point in range(0x110000) if unicodedata.category(chr(point)).startswith(name)]
    ranges = []
    for point in points:
        if ranges and ranges[-1][1] == point - 1:
            ranges[-1][1] = point
        else:
            ranges.append([point, point])
    return "".join(f"\\U{low:08x}-\\U{high:08x}" for low, high in ranges)


class Pattern:
    def __init__(self, source):
        if len(utf16(source)) // 2 > 4096:
            raise CannotBeMatched
        self.source, self.at = source, 0
        self.is_beyond = False
        translated, count = self.branches()
        if self.at != len(source):
            raise NoPattern
        if self.is_beyond or count > COUNT_MAX:
            raise CannotBeMatched
        try:
            self.engine = re.compile(translated)
        except re.error:
            raise CannotBeMatched from None

    def next_is(self, wanted):
        if not self.source.startswith(wanted, self.at):
            return False
        self.at += len(wanted)
        return True

    def branches(self):
        """The translation, and the greatest product of counts within counts."""
        output, greatest = "", 1
        while self.at < len(self.source) and self.source[self.at] != ")":
            if self.next_is("|"):
                output += "|"
                continue
            atom, inner = self.atom()
            quantifier, count = self.quantifier()
            output += atom + quantifier
            greatest = max(greatest, inner * count)
        return output, greatest

    def quantifier(self):
        found = QUANTIFIER.match(self.source, self.at)
        if found is None:
            return "", 1
        self.at = found.end()
        if found.group(1) is None:
            return found.group(), 1
        low = int(found.group(1))
        high = int(found.group(3)) if found.group(3) else low
        self.is_beyond |= high < low or max(low, high) > COUNT_MAX
        return (f"{{{low}}}", f"{{{low},}}", f"{{{low},{high}}}")[
            0 if found.group(2) is None else 2 if found.group(3) else 1
        ], max(high, 1)

    def atom(self):
        if self.next_is("("):
            inner, count = self.branches()
            if not self.next_is(")"):
                raise NoPattern
            return f"(?:{inner})", count
        if self.next_is("["):
            return self.bracketed(), 1
        category = GENERAL.match(self.source, self.at)
        if category:
            self.at = category.end()
            return f"[{'^' if category.group(1) == 'P' else ''}{general_category(category.group(2))}]", 1
        character = self.source[self.at]
        special = {".": r"[^\n\r]", "^": r"(?:\A)", "$": r"(?:\Z)"}.get(character)
        if special:
            self.at += 1
            return special, 1
        return re.escape(self.character("()*+.?[\\]{|}")), 1

    def character(self, forbidden):
        """One character, which may be escaped."""
        character = self.source[self.at : self.at + 1]
        self.at += 1
        if character == "\\":
            escaped = self.source[self.at : self.at + 1]
            self.at += 1
            if escaped and escaped in "()*+-.?[\\]^{|}":
                return escaped
            if escaped and escaped in "nrt":
                return SHORT[escaped]
            raise NoPattern
        if not character or character in forbidden or "\ud800" <= character <= "\udfff":
            raise NoPattern
        return character

    def bracketed(self):
        negated = "^" if self.next_is("^") else ""
        members = "\\-" if self.next_is("-") else ""
        while not self.next_is("]"):
            if members and self.next_is("-"):
                members += "\\-"
                if not self.next_is("]"):
                    raise NoPattern
                break
            members += self.member()
        if not members:
            raise NoPattern
        return f"[{negated}{members}]"

    def member(self):
        category = GENERAL.match(self.source, self.at)
        if category:
            self.at = category.end()
            if category.group(1) == "p":
                return general_category(category.group(2))
            return "".join(general_category(name) for name in "LMNPZSC" if name != category.group(2)[0]) + "".join(
                general_category(other)
                for other in OTHERS
                if other[0] == category.group(2)[0] and len(category.group(2)) == 2 and other != category.group(2)
            )
        low = self.character("-[\\]")
        is_range = self.source.startswith("-", self.at) and not self.source.startswith("-]", self.at)
        if not is_range:
            return f"\\U{ord(low):08x}"
        self.at += 1
        high = self.character("-[\\]")
        if high < low:
            self.is_beyond = True
            return f"\\U{ord(low):08x}"
        return f"\\U{ord(low):08x}-\\U{ord(high):08x}"


OTHERS = "Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Co Cn".split()


@functools.lru_cache(maxsize=256)
def compiled(source):
    try:
        return Pattern(source).engine
    except NoPattern:
        return None


# ---- JSONPath (RFC 9535)


class NoPath(Exception):
    pass


NOTHING = object()
INTEGER = re.compile(r"0|-?[1-9][0-9]*")
PATH_NUMBER = re.compile(r"(?:-0|0|-?[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
SHORTHAND = re.compile("[A-Za-z_\u0080-\ud7ff\ue000-\U0010ffff][0-9A-Za-z_\u0080-\ud7ff\ue000-\U0010ffff]*")
FUNCTION = re.compile(r"([a-z][a-z_0-9]*)\(")
OPERATOR = re.compile("==|!=|<=|>=|<|>")
# What each function takes and gives.
FUNCTIONS = {
    "length": (["value"], "value"),
    "count": (["nodes"], "value"),
    "value": (["nodes"], "value"),
    "match": (["value", "value"], "logical"),
    "search": (["value", "value"], "logical"),
}


class PathParser:
    """Segments are (is_descent, selectors). Expressions are tuples whose first item is their kind."""

    def __init__(self, source):
        self.source, self.at = source, 0

    def whole(self):
        if len(utf16(self.source)) // 2 > 1024:
            raise NoPath
        self.take("$")
        segments = self.segments()
        if self.at != len(self.source):
            raise NoPath
        return segments

    def space(self):
        self.at = SPACE.match(self.source, self.at).end()

    def next_is(self, wanted):
        if not self.source.startswith(wanted, self.at):
            return False
        self.at += len(wanted)
        return True

    def take(self, wanted):
        if not self.next_is(wanted):
            raise NoPath

    def find(self, pattern):
        found = pattern.match(self.source, self.at)
        if found:
            self.at = found.end()
        return found

    def segments(self):
        segments = []
        while True:
            before = self.at
            self.space()
            if self.next_is(".."):
                selectors = self.bracketed() if self.source.startswith("[", self.at) else [self.name_or_all()]
                segments.append((True, selectors))
            elif self.next_is("."):
                segments.append((False, [self.name_or_all()]))
            elif self.source.startswith("[", self.at):
                segments.append((False, self.bracketed()))
            else:
                self.at = before
                return segments

    def name_or_all(self):
        if self.next_is("*"):
            return ("all",)
        name = self.find(SHORTHAND)
        if name is None:
            raise NoPath
        return ("name", name.group())

    def bracketed(self):
        self.take("[")
        selectors = []
        while True:
            self.space()
            selectors.append(self.selector())
            self.space()
            if self.next_is("]"):
                return selectors
            self.take(",")

    def selector(self):
        if self.next_is("*"):
            return ("all",)
        if self.next_is("?"):
            self.space()
            return ("filter", self.either())
        if self.source[self.at : self.at + 1] in ("'", '"'):
            return ("name", self.string())
        first = self.integer()
        before = self.at
        self.space()
        if not self.next_is(":"):
            self.at = before
            if first is None:
                raise NoPath
            return ("index", first)
        self.space()
        end = self.integer()
        before = self.at
        self.space()
        step = None
        if self.next_is(":"):
            before = self.at
            self.space()
            step = self.integer()
            if step is not None:
                before = self.at
        self.at = before
        return ("slice", first, end, 1 if step is None else step)

    def integer(self):
        if self.source.startswith("-0", self.at):
            raise NoPath
        found = self.find(INTEGER)
        if found is None:
            return None
        number = int(found.group())
        if abs(number) > 2**53 - 1:
            raise NoPath
        return number

    def string(self):
        quote = self.source[self.at]
        self.at += 1
        parts = []
        while True:
            character = self.source[self.at : self.at + 1]
            self.at += 1
            if character == quote:
                return "".join(parts)
            if character == "\\":
                parts.append(self.escape(quote))
            elif character < " " or "\ud800" <= character <= "\udfff":
                raise NoPath
            else:
                parts.append(character)

    def escape(self, quote):
        letter = self.source[self.at : self.at + 1]
        self.at += 1
        if letter == quote:
            return quote
        if letter == "u":
            point = self.hex4()
            if 0xD800 <= point <= 0xDBFF and self.next_is("\\u"):
                low = self.hex4()
                if 0xDC00 <= low <= 0xDFFF:
                    return chr(0x10000 + ((point & 0x3FF) << 10) + (low & 0x3FF))
                raise NoPath
            if 0xD800 <= point <= 0xDFFF:
                raise NoPath
            return chr(point)
        if letter in SHORT and letter != '"':
            return SHORT[letter]
        raise NoPath

    def hex4(self):
        digits = self.find(re.compile("[0-9A-Fa-f]{4}"))
        if digits is None:
            raise NoPath
        return int(digits.group(), 16)

    def chain(self, kind, operator, part):
        parts = [part()]
        while True:
            before = self.at
            self.space()
            if not self.next_is(operator):
                self.at = before
                return parts[0] if len(parts) == 1 else (kind, parts)
            self.space()
            parts.append(part())

    def either(self):
        return self.chain("or", "||", lambda: self.chain("and", "&&", self.basic))

    def basic(self):
        if self.next_is("!"):
            self.space()
            return ("not", self.bracket() if self.source.startswith("(", self.at) else self.test(self.operand()))
        if self.source.startswith("(", self.at):
            return self.bracket()
        left = self.operand()
        before = self.at
        self.space()
        operator = self.find(OPERATOR)
        if operator is None:
            self.at = before
            return self.test(left)
        self.space()
        right = self.operand()
        for side in (left, right):
            self.demand_value(side)
        return ("compare", operator.group(), left, right)

    def bracket(self):
        self.take("(")
        self.space()
        inner = self.either()
        self.space()
        self.take(")")
        return inner

    def test(self, operand):
        if operand[0] == "query" or (operand[0] == "call" and FUNCTIONS[operand[1]][1] == "logical"):
            return ("exists", operand) if operand[0] == "query" else operand
        raise NoPath

    def demand_value(self, operand):
        kind = operand[0]
        if kind == "call" and FUNCTIONS[operand[1]][1] != "value":
            raise NoPath
        if kind == "query" and not is_singular(operand[2]):
            raise NoPath

    def operand(self):
        first = self.source[self.at : self.at + 1]
        if first in ("@", "$"):
            self.at += 1
            return ("query", first, self.segments())
        if first in ("'", '"'):
            return ("literal", self.string())
        call = self.find(FUNCTION)
        if call:
            return self.call(call.group(1))
        for word, value in WORDS.items():
            if self.next_is(word):
                return ("literal", value)
        number = self.find(PATH_NUMBER)
        if number is None:
            raise NoPath
        return ("literal", float(number.group()))

    def call(self, name):
        if name not in FUNCTIONS:
            raise NoPath
        wanted, _ = FUNCTIONS[name]
        arguments = []
        self.space()
        while not self.next_is(")"):
            if arguments:
                self.take(",")
                self.space()
            arguments.append(self.operand())
            self.space()
        if len(arguments) != len(wanted):
            raise NoPath
        for kind, argument in zip(wanted, arguments):
            if kind == "value":
                self.demand_value(argument)
            elif argument[0] != "query":
                raise NoPath
        if name in ("match", "search") and arguments[1][0] == "literal" and isinstance(arguments[1][1], str):
            try:
                compiled(arguments[1][1])
            except CannotBeMatched:
                raise NoPath from None
        return ("call", name, arguments)


def is_singular(segments):
    return all(
        not is_descent and len(selectors) == 1 and selectors[0][0] in ("name", "index")
        for is_descent, selectors in segments
    )


def children(value):
    if isinstance(value, list):
        return value
    return list(value.values()) if isinstance(value, dict) else []


def descend(value):
    yield value
    for child in children(value):
        yield from descend(child)


def select(segments, value, root):
    """The values of the selected nodes, one after the other."""
    if not segments:
        yield value
        return
    (is_descent, selectors), rest = segments[0], segments[1:]
    for visited in descend(value) if is_descent else [value]:
        for selector in selectors:
            for child in chosen(selector, visited, root):
                yield from select(rest, child, root)


def chosen(selector, value, root):
    kind = selector[0]
    if kind == "all":
        return children(value)
    if kind == "name":
        return [value[selector[1]]] if isinstance(value, dict) and selector[1] in value else []
    if kind == "filter":
        return (child for child in children(value) if is_true(selector[1], child, root))
    if not isinstance(value, list):
        return []
    if kind == "index":
        index = selector[1] + len(value) if selector[1] < 0 else selector[1]
        return [value[index]] if 0 <= index < len(value) else []
    _, start, end, step = selector
    return [] if step == 0 else value[start:end:step]


def is_true(expression, current, root):
    kind = expression[0]
    if kind in ("and", "or"):
        sides = [is_true(part, current, root) for part in expression[1]]
        return all(sides) if kind == "and" else any(sides)
    if kind == "not":
        return not is_true(expression[1], current, root)
    if kind == "exists":
        return any(True for _ in nodes(expression[1], current, root))
    if kind == "call":
        return call(expression, current, root)
    _, operator, left, right = expression
    return compare(operator, value_of(left, current, root), value_of(right, current, root))


def nodes(query, current, root):
    return select(query[2], current if query[1] == "@" else root, root)


def value_of(operand, current, root):
    if operand[0] == "literal":
        return operand[1]
    if operand[0] == "call":
        return call(operand, current, root)
    return next(iter(nodes(operand, current, root)), NOTHING)


def call(expression, current, root):
    _, name, arguments = expression
    if name in ("count", "value"):
        found = list(nodes(arguments[0], current, root))
        if name == "count":
            return float(len(found))
        return found[0] if len(found) == 1 else NOTHING
    values = [value_of(argument, current, root) for argument in arguments]
    if name == "length":
        return float(len(values[0])) if isinstance(values[0], (str, list, dict)) else NOTHING
    text, pattern = values
    if not isinstance(text, str) or not isinstance(pattern, str):
        return False
    engine = compiled(pattern)
    if engine is None:
        return False
    return (engine.fullmatch(text) if name == "match" else engine.search(text)) is not None


def compare(operator, left, right):
    if operator == "!=":
        return not compare("==", left, right)
    if operator in (">", ">="):
        return compare("<" if operator == ">" else "<=", right, left)
    is_equal = (left is right) if NOTHING in (left, right) else equal(left, right)
    if operator == "==":
        return is_equal
    has_order = type(left) is type(right) and isinstance(left, (float, str))
    return (has_order and left < right) or (operator == "<=" and is_equal)


# ---- schemas


class Skipped(Exception):
    pass


ANNOTATIONS = {"$schema", "$id", "$defs", "definitions", "$comment", "title", "description", "default", "example"}
ANNOTATIONS |= {"examples", "deprecated", "readOnly", "writeOnly", "contentEncoding", "contentMediaType"}
EMAIL_LABEL = "[0-9A-Za-z](?:[-0-9A-Za-z]{0,61}[0-9A-Za-z])?"
FORMATS = {
    "email": lambda text: re.fullmatch(rf"[-0-9A-Za-z.!#$%&'*+/=?^_`{{|}}~]+@{EMAIL_LABEL}(?:\.{EMAIL_LABEL})*", text),
    "uuid": lambda text: re.fullmatch("(?:urn:uuid:)?[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}", text),
    "date": lambda text: re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", text) and is_day(*map(int, text.split("-"))),
    "date-time": lambda text: parse_time(text) is not None,
}
TYPES = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
    "number": lambda value: isinstance(value, float) and abs(value) != float("inf"),
    "integer": lambda value: isinstance(value, float) and value.is_integer(),
}


class Schema:
    def __init__(self, root):
        self.root = root

    def allows(self, value):
        try:
            return self.fits(self.root, value)
        except RecursionError:
            return False

    def fits(self, schema, value):
        if isinstance(schema, bool):
            return schema
        checks = {**self.general(), **(self.for_type(value) or {})}
        known = ANNOTATIONS | checks.keys() | OF_OTHER_TYPES
        unknown = [name for name in schema if name not in known]
        if unknown:
            raise Skipped(f"the keyword {unknown[0]}")
        return all(checks[name](schema[name], value, schema) for name in schema if name in checks)

    def general(self):
        fits = self.fits
        return {
            "type": lambda names, value, _: any(
                TYPES[name](value) for name in (names if isinstance(names, list) else [names])
            ),
            "const": lambda wanted, value, _: equal(wanted, value),
            "enum": lambda wanted, value, _: any(equal(one, value) for one in wanted),
            "allOf": lambda parts, value, _: all([fits(part, value) for part in parts]),
            "anyOf": lambda parts, value, _: any([fits(part, value) for part in parts]),
            "oneOf": lambda parts, value, _: [fits(part, value) for part in parts].count(True) == 1,
            "not": lambda part, value, _: not fits(part, value),
            "if": lambda part, value, schema: fits(schema.get("then" if fits(part, value) else "else", True), value),
            "then": lambda *_: True,
            "else": lambda *_: True,
            "$ref": lambda reference, value, _: fits(self.referred(reference), value),
        }

    def for_type(self, value):
        if isinstance(value, float):
            return {
                "minimum": lambda bound, value, _: value >= bound,
                "maximum": lambda bound, value, _: value <= bound,
                "exclusiveMinimum": lambda bound, value, _: value > bound,
                "exclusiveMaximum": lambda bound, value, _: value < bound,
                "multipleOf": lambda part, value, _: (value / part).is_integer(),
            }
        if isinstance(value, str):
            return {
                "minLength": lambda bound, value, _: len(value) >= bound,
                "maxLength": lambda bound, value, _: len(value) <= bound,
                "format": self.format,
            }
        if isinstance(value, list):
            return {
                "minItems": lambda bound, value, _: len(value) >= bound,
                "maxItems": lambda bound, value, _: len(value) <= bound,
                "uniqueItems": lambda wanted, value, _: not wanted
                or not any(equal(one, other) for at, one in enumerate(value) for other in value[:at]),
                "items": self.items,
                "prefixItems": lambda parts, value, _: all(map(self.fits, parts, value)),
                "additionalItems": lambda *_: True,
                "contains": lambda part, value, _: any([self.fits(part, item) for item in value]),
            }
        if isinstance(value, dict):
            return {
                "required": lambda names, value, _: all(name in value for name in names),
                "minProperties": lambda bound, value, _: len(value) >= bound,
                "maxProperties": lambda bound, value, _: len(value) <= bound,
                "properties": lambda parts, value, _: all(
                    [self.fits(part, value[name]) for name, part in parts.items() if name in value]
                ),
                "additionalProperties": lambda part, value, schema: all(
                    [self.fits(part, value[name]) for name in value if name not in schema.get("properties", {})]
                ),
                "propertyNames": lambda part, value, _: all([self.fits(part, name) for name in value]),
            }
        return {}

    def items(self, part, value, schema):
        if isinstance(part, list):  # draft-07
            rest = [self.fits(schema.get("additionalItems", True), item) for item in value[len(part) :]]
            return all(map(self.fits, part, value)) and all(rest)
        return all([self.fits(part, item) for item in value[len(schema.get("prefixItems", [])) :]])

    def format(self, name, value, _):
        if name not in FORMATS:
            raise Skipped(f"the format {name}")
        return bool(FORMATS[name](value))

    def referred(self, reference):
        if not reference.startswith("#"):
            raise Skipped(f"the reference {reference}")
        found = self.root
        for part in reference[1:].split("/")[1:]:
            found = found[part.replace("~1", "/").replace("~0", "~")]
        return found


OF_OTHER_TYPES = {
    name for value in (1.0, "", [], {}) for name in Schema(True).for_type(value)
}


# ---- time

DAYS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()
WEEKDAYS = "Thu Fri Sat Sun Mon Tue Wed".split()  # 1 January 1970 was a Thursday
RFC_3339 = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]+))?"
    r"(?:[Zz]|([+-])([0-9]{2}):([0-9]{2}))"
)
HTTP_DATE = re.compile(
    rf"({'|'.join(WEEKDAYS)}), ([0-9]{{2}}) ({'|'.join(MONTHS)}) ([0-9]{{4}}) ([0-9]{{2}}):([0-9]{{2}}):([0-9]{{2}}) GMT"
)


def is_leap(year):
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def is_day(year, month, day):
    if not 1 <= month <= 12:
        return False
    return 1 <= day <= DAYS[month - 1] + (1 if month == 2 and is_leap(year) else 0)


def day_number(year, month, day):
    """Days since 1 January of the year 0."""
    leaps = (year + 3) // 4 - (year + 99) // 100 + (year + 399) // 400
    return year * 365 + leaps + sum(DAYS[: month - 1]) + (1 if month > 2 and is_leap(year) else 0) + day - 1


EPOCH = day_number(1970, 1, 1)


def milliseconds(year, month, day, hour, minute, second):
    seconds = ((day_number(year, month, day) - EPOCH) * 24 + hour) * 3600 + minute * 60 + second
    return seconds * 1000


FIRST, LAST = milliseconds(0, 1, 1, 0, 0, 0), milliseconds(9999, 12, 31, 23, 59, 59) + 999


def parse_time(text):
    """Milliseconds of a time in JSON; None where it is not one."""
    if not isinstance(text, str) or len(text) > 64:
        return None
    found = RFC_3339.fullmatch(text)
    if found is None:
        return None
    parts = [int(part) for part in found.groups()[:6]]
    zone_hour, zone_minute = int(found.group(9) or 0), int(found.group(10) or 0)
    if not is_day(*parts[:3]) or parts[3] > 23 or parts[4] > 59 or parts[5] > 59:
        return None
    if zone_hour > 23 or zone_minute > 59:
        return None
    ahead = (zone_hour * 60 + zone_minute) * 60_000 * (-1 if found.group(8) == "-" else 1)
    time = milliseconds(*parts) + int((found.group(7) or "").ljust(3, "0")[:3]) - ahead
    return time if FIRST <= time <= LAST else None


def parse_http_date(text):
    found = HTTP_DATE.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        return None
    day, month, year = int(found.group(2)), MONTHS.index(found.group(3)) + 1, int(found.group(4))
    hour, minute, second = (int(part) for part in found.groups()[4:])
    if not is_day(year, month, day) or hour > 23 or minute > 59 or second > 59:
        return None
    if WEEKDAYS[(day_number(year, month, day) - EPOCH) % 7] != found.group(1):
        return None
    return milliseconds(year, month, day, hour, minute, second)


# ---- clauses: each gives a code, or None where it passes, and what is observed


def http_status(clause, case):
    status = case["evidence"].get("status")
    if status is not None and status == clause["equals"]:
        return None, status
    return ("source_not_found" if status in (404, 410) else "status_mismatch"), status


def json_schema(clause, case):
    schemas = case.get("schemas", {})
    if clause["schema"] not in schemas:
        return "schema_not_found", None
    try:
        document = read_body(case["body"])
    except NotJson:
        return "body_not_json", None
    return (None if Schema(schemas[clause["schema"]]).allows(document) else "schema_mismatch"), None


def json_jsonpath(clause, case):
    try:
        segments = PathParser(clause["path"]).whole()
    except NoPath:
        return "path_unsupported", None
    try:
        document = read_body(case["body"])
    except NotJson:
        return "body_not_json", None
    found = []
    try:
        for value in select(segments, document, document):
            found.append(value)
            if len(found) == (2 if "equals" in clause else 1):
                break
    except CannotBeMatched:
        return "path_not_found", None
    if not found:
        return "path_not_found", None
    if "equals" not in clause:
        return None, observed_of(found[0])
    if len(found) > 1:
        return "value_mismatch", observed_of(found)
    return (None if equal(found[0], clause["equals"]) else "value_mismatch"), observed_of(found[0])


def file_sha256(clause, case):
    digest = sha256(case["body"])
    return (None if digest == clause["digest"].lower() else "digest_mismatch"), digest


def made_at(case):
    evidence = case["evidence"]
    if "generated_at" in evidence:
        return parse_time(evidence["generated_at"])
    try:
        document = read_body(case["body"])
        if isinstance(document, dict) and "generated_at" in document:
            return parse_time(document["generated_at"])
    except NotJson:
        pass
    return parse_http_date(evidence.get("last_modified"))


def data_freshness(clause, case):
    made = made_at(case)
    if made is None:
        return "no_timestamp", None
    age = parse_time(case["now"]) - made
    is_stale = age > clause["maxAgeSeconds"] * 1000 or age < -300_000
    return ("data_stale" if is_stale else None), age / 1000


def reaches(supplied, minimum, absent, below):
    def evaluate(clause, case):
        value = case["evidence"].get(supplied)
        if value is None:
            return absent, None
        return (None if value >= clause[minimum] else below), value

    return evaluate


def chain_event(clause, case):
    topics = case["evidence"].get("emitted_topics")
    if topics is None:
        return "no_event_log", None
    return (None if clause["topic"] in topics else "event_not_emitted"), observed_of(topics)


OF_THE_ANSWER = {
    "http.status": http_status,
    "json.schema": json_schema,
    "json.jsonpath": json_jsonpath,
    "file.sha256": file_sha256,
    "data.freshness": data_freshness,
}
OF_SUPPLIED_VALUES = {
    "uptime.window": reaches("uptime_ratio", "minRatio", "no_uptime_data", "uptime_below_minimum"),
    "chain.event": chain_event,
    "llm.judge": reaches("judge_score", "minScore", "no_judgement", "score_below_minimum"),
}


def evaluate_clause(clause, case, took_too_long):
    kind, failure = clause["kind"], case["evidence"].get("failure")
    if took_too_long:
        code, observed = "clause_timeout", None
    elif kind in OF_SUPPLIED_VALUES:
        code, observed = OF_SUPPLIED_VALUES[kind](clause, case)
    elif failure is not None:
        code, observed = failure, None
    else:
        code, observed = OF_THE_ANSWER[kind](clause, case)
    return {"kind": kind, "clause": clause, "passed": code is None, "reason_code": code, "observed": observed}


def evaluate(case):
    evidence, clauses = case["evidence"], case["clauses"]
    if "body_base64" in evidence:
        case["body"] = base64.b64decode(evidence["body_base64"])
    else:
        case["body"] = evidence.get("body", "").encode("utf-8")
    late = case.get("timed_out", [])
    details = [evaluate_clause(clause, case, index in late) for index, clause in enumerate(clauses)]
    passed = sum(1 for detail in details if detail["passed"])
    codes = [detail["reason_code"] for detail in details if not detail["passed"]]
    return {
        "passed": passed == len(details),
        "score": passed / len(details),
        # The share times 10,000, with halves up, in integers.
        "score_bps": float((passed * 20_000 + len(details)) // (2 * len(details))),
        "reason_codes": list(dict.fromkeys(codes)),
        "evidence_hash": sha256(case["body"] if "failure" not in evidence else b""),
        "spec_hash": sha256(canonical({"clauses": clauses})),
        "details": details,
    }


# ---- the run


def replay_cases():
    same, skipped, differences = 0, {}, []
    for file in sorted((HERE / "cases").glob("*.json")):
        for case in read_json(file.read_text("utf-8")):
            try:
                result = evaluate(case)
            except Skipped as why:
                skipped[str(why)] = skipped.get(str(why), 0) + 1
                continue
            differing = [name for name, value in case["expected"].items() if not equal(result.get(name), value)]
            if not differing:
                same += 1
                continue
            what = [f"{name} is {canonical(result[name])}, not {canonical(case['expected'][name])}" for name in differing]
            differences.append(f"{file.name}: {case['name']}: {'; '.join(what)}")
    for one in read_json((HERE / "check-hashes.json").read_text("utf-8")):
        text = canonical(one["check"])
        if text == one["canonical"] and sha256(text) == one["check_hash"]:
            same += 1
        else:
            differences.append(f"check-hashes.json: {one['name']}: {text}")
    return same, skipped, differences


def replay_suite(file):
    """The public JSONPath compliance suite. It allows several orders of an object's members."""
    same, differences = 0, []
    for one in read_json(file.read_text("utf-8"))["tests"]:
        try:
            segments = PathParser(one["selector"]).whole()
            found = list(select(segments, one.get("document"), one.get("document")))
            is_same = not one.get("invalid_selector") and any(
                equal(found, result) for result in one.get("results", [one.get("result")])
            )
        except NoPath:
            is_same = one.get("invalid_selector", False)
        if is_same:
            same += 1
        else:
            differences.append(f"the JSONPath suite: {one['name']}")
    return same, differences


def main(arguments):
    if arguments and (len(arguments) != 2 or arguments[0] != "--path-suite"):
        print(__doc__)
        return 2
    same, skipped, differences = replay_cases()
    suite = Path(arguments[1]) if arguments else SUITE
    if suite.exists():
        paths, others = replay_suite(suite)
        differences += others
        print(f"JSONPath compliance suite: {paths} the same")
    else:
        print(f"JSONPath compliance suite: not at {suite}, skipped")
    for difference in differences:
        print(difference if len(difference) < 600 else difference[:600] + " …")
    for why, count in sorted(skipped.items()):
        print(f"skipped {count}, for {why}")
    print(f"verdicts: {same} the same, {sum(skipped.values())} skipped, {len(differences)} differ")
    if sum(skipped.values()) > SKIPPED_MAX:
        print(f"more than {SKIPPED_MAX} were skipped: write what they need, or a higher SKIPPED_MAX and why")
        return 1
    return 1 if differences or same == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
