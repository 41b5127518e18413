"""Writes python_literals.jsonl: what Python itself makes of values and of literal texts.

Rows {"value", "repr", "dumps"}: a value, its repr and its json.dumps.
Rows {"text", "value"}: a text and what ast.literal_eval reads; "value" is missing where it refuses.

    python3 make_python_literals.py > python_literals.jsonl
"""
import ast
import json
import random
import warnings

warnings.simplefilter("ignore")
rng = random.Random(20)

FLOATS = [0.0, -0.0, 1.0, -1.0, 0.1, 0.5, 1e-4, 9.9999e-5, 1e-5, 1e-9, 8.854e-12, 1e15, 1e16, 1e17,
          123456789012345.6, 1234567890123456.7, 9999999999999998.0, 1e22, 1e23, 1.7976931348623157e308,
          5e-324, 2.2250738585072014e-308, 3.141592653589793, 2.5, 100.0, 1e100, -1e-100, 0.3,
          9007199254740993.0, 1 / 3, 2 / 3, 1e21, 123e-7, 0.001, 72057594037927930.0]
INTEGERS = [0, 1, -1, 20, -20, 1617262800000, 2**53 + 1, 2**63 - 1, -(2**63), 2**63, 2**64 - 1]
STRINGS = ["", "a", "it's", 'say "hi"', "it's \"both\"", "\\", "dir C:\\", "\\'", "a\nb", "\r\n\t",
           "\x00", "\x07\x08\x0b\x0c\x1b\x1f", "\x7f", "\x80\x9f", "\xa0", "\xad", "año", "에어컨, 냉방 실행",
           "😀", "\u200b", "\u2028\u2029", "\ufeff", "\ue000", "\U0001d173", "\U000e0041", "\U0010fffd",
           "\u3000", "[f(a=1)]", "</tool_call>", "{}", "é", "e\u0301", "N/A", "1", "None", "a\\nb", "'''",
           '"""', "\\x41", "\ufffd", "𝒳", "x" * 300]


def value(depth):
    kind = rng.randrange(9 if depth < 3 else 6)
    if kind == 0:
        return rng.choice([True, False, None])
    if kind == 1:
        return rng.choice(INTEGERS + [rng.randrange(-10**6, 10**6)])
    if kind == 2:
        exponent = rng.randrange(-20, 25)
        return rng.choice(FLOATS + [rng.uniform(-1, 1) * 10.0**exponent, round(rng.uniform(-999, 999), 2)])
    if kind <= 5:
        alphabet = "ab'\"\\ \n\t{}[]():,=é\u00a0\u200b漢😀\x01"
        return rng.choice(STRINGS + ["".join(rng.choice(alphabet) for _ in range(rng.randrange(9)))])
    if kind <= 7:
        return [value(depth + 1) for _ in range(rng.randrange(4))]
    return {rng.choice(STRINGS)[:20]: value(depth + 1) for _ in range(rng.randrange(4))}


values = FLOATS + INTEGERS + STRINGS + [[], {}, [[]], [1, [2.0, None]], {"a": {"b": [True, False]}}]
values += [value(0) for _ in range(300)]
for v in values:
    assert ast.literal_eval(repr(v)) == v
    print(json.dumps({"value": v, "repr": repr(v), "dumps": json.dumps(v, ensure_ascii=False)}))

TEXTS = [r"'\x41\u00e9\U0001F600\101\7\0'", r"'\a\b\f\n\r\t\v\\\'\"'", r"'\d\z\ '", "'a' 'b' \"c\"",
         "'''a'b\"c\nd'''", '"""x\\\ny"""', "'a\\\nb'", "''", "''''''", "'' ''", "1.", ".5", "-.5", "+1", "- 1",
         "1e5", "1E+5", "1.e-3", "00", "007", "007.5", "00e1", "0x10", "1_000", "1j", "1 2", "1a", "--1", "+-1",
         "(1)", "(1,)", "()", "(1, 2)", "((1))", "[1,]", "[,]", "[1,,2]", "{'a': 1,}", "{,}", "{1}", "{'a' 'b': 1}",
         "true", "null", "nan", "inf", "Nonee", "True1", "None", " True ", "[1, (2, [3])]", "{'a': (1, 2)}",
         "'\n'", "'a", "a'", "b'x'", "'\\x4'", "'\\u12'", "'\\U00110000'", "", " ", "[", "]", "(", "{", "{'a'}",
         "{'a':}", "{'a': 1 'b': 2}", "[1 2]", "1 + 1", "data['x']", "f(1)", "-True", "-'a'", "'a',", "1,",
         "[1,\n 2,\n]", "['a'\n'b']", "\"it's\"", "'\\N{BULLET}'", "[1, 2, 3", "1e400", "-0", "-0.0",
         "1.5.2", "1..2", "e5", "1e", "1e+", "+", "-", ".", "'\\", "'\\'", "0b1", "0o7", "\"\\/\"", "...", "*a"]
for text in TEXTS:
    row = {"text": text}
    try:
        parsed = ast.literal_eval(text)
        if json.loads(json.dumps(parsed)) is not Ellipsis and "inf" not in repr(parsed):
            row["value"] = parsed
    except (ValueError, SyntaxError, TypeError):
        pass
    print(json.dumps(row))
