#!/usr/bin/env python3
"""The matrix units' arithmetic, restated with Python integers and fractions only.

Reads one case a line on stdin, prints the first mismatches and exits 1 when there is one:
  MODE ARCH RESULT_TYPE A_TYPE B_TYPE C_BITS RESULT_BITS A_CODES B_CODES
ARCH is that of mma.sync, or 0 for wgmma. Codes and bits are hexadecimal, codes are joined by commas.
What a unit keeps and adds at once is in UNITS. Written from the model's description (Hopper's and
its neighbours' published bit model), not from the C code.
"""
import math
import sys
from fractions import Fraction

# name: (bits, exponent bits, fraction bits, bias)
FORMATS = {"e4m3": (8, 4, 3, 7), "e5m2": (8, 5, 2, 15), "bf16": (16, 8, 7, 127),
           "f16": (16, 5, 10, 15), "tf32": (19, 8, 10, 127), "f32": (32, 8, 23, 127)}
HALF = 10  # mantissa bits of a unit whose c and result are f16
BYTES, HALVES = ("e4m3", "e5m2"), ("bf16", "f16")

# (arch, or 0 for wgmma; types of A): fraction bits that terms keep, mantissa bits of an f32 result,
# products that are added to C at once
UNITS = {
    (80, HALVES): (24, 23, 8), (80, ("tf32",)): (24, 23, 4),
    (89, BYTES): (13, 13, 16), (89, HALVES): (24, 23, 8), (89, ("tf32",)): (24, 23, 4),
    (90, BYTES): (25, 23, 32), (90, HALVES): (25, 23, 16), (90, ("tf32",)): (25, 23, 8),
    (100, BYTES): (25, 23, 32), (100, HALVES): (25, 23, 16), (100, ("tf32",)): (25, 23, 8),
    (120, BYTES): (25, 23, 32), (120, HALVES): (25, 23, 16), (120, ("tf32",)): (25, 23, 8),
    (0, BYTES): (13, 13, 32), (0, HALVES): (25, 23, 16), (0, ("tf32",)): (25, 23, 8),
}


def unit_of(arch, a_type, result):
    """(fraction, mantissa, terms) of the unit behind an instruction."""
    for (number, types), (fraction, mantissa, terms) in UNITS.items():
        if number == arch and a_type in types:
            return fraction, HALF if result == "f16" else mantissa, terms
    raise ValueError(f"no unit for {a_type} on {arch}")


def decode(code, name):
    """(value, exponent): a Fraction with the exponent it is aligned by, or ('inf'/'nan', sign)."""
    bits, ebits, fbits, bias = FORMATS[name]
    sign = -1 if code >> (bits - 1) else 1
    exponent = code >> fbits & (1 << ebits) - 1
    fraction = code & (1 << fbits) - 1
    top = (1 << ebits) - 1
    if name == "e4m3":
        if exponent == top and fraction == 7:
            return "nan", sign
    elif exponent == top:
        return ("inf" if fraction == 0 else "nan"), sign
    if exponent == 0:
        value = Fraction(fraction, 1 << fbits)
        exponent = 1
    else:
        value = 1 + Fraction(fraction, 1 << fbits)
    if value == 0:
        return Fraction(0), -126
    return sign * value * Fraction(2) ** (exponent - bias), exponent - bias


def toward_zero(x, quantum):
    """x truncated to a multiple of 2^quantum."""
    scaled = x / Fraction(2) ** quantum
    whole = abs(scaled.numerator) // scaled.denominator
    return (whole if scaled >= 0 else -whole) * Fraction(2) ** quantum


def binade(x):
    """floor(log2 |x|), exactly."""
    x = abs(x)
    guess = x.numerator.bit_length() - x.denominator.bit_length()
    while Fraction(2) ** guess > x:
        guess -= 1
    while Fraction(2) ** (guess + 1) <= x:
        guess += 1
    return guess


def to_bits(x):
    """A Fraction that fp32 holds, or one past its range (infinity)."""
    if x == 0:
        return 0
    sign = 0x80000000 if x < 0 else 0
    e = binade(x)
    if e > 127:
        return sign | 0x7F800000
    scale = max(e, -126)
    significand = abs(x) / Fraction(2) ** (scale - 23)
    assert significand.denominator == 1, "not an fp32 number"
    return sign + ((scale + 126) << 23) + significand.numerator


def round_even(x, least=-126, mantissa=23):
    """x to the nearest number of that format's precision and least exponent, ties to even."""
    if x == 0:
        return Fraction(0)
    quantum = max(binade(x), least) - mantissa
    scaled = x / Fraction(2) ** quantum
    low = math.floor(scaled)
    rest = scaled - low
    if rest > Fraction(1, 2) or (rest == Fraction(1, 2) and low % 2):
        low += 1
    return low * Fraction(2) ** quantum


def half_bits(x):
    """The fp32 bits of x rounded to f16."""
    x = round_even(x, -14, HALF)
    return to_bits(x) if abs(x) < 65536 else (0xFF800000 if x < 0 else 0x7F800000)


def special(terms, c):
    """IEEE's answer when something is not finite; None when all is."""
    parts = [c] if c[0] in ("inf", "nan") else []
    for a, b in terms:
        kinds = (a[0], b[0])
        if "nan" in kinds:
            parts.append(("nan", 1))
        elif "inf" in kinds:
            if 0 in kinds:
                parts.append(("nan", 1))
                continue
            sign = 1
            for kind, extra in (a, b):
                sign *= extra if kind == "inf" else (1 if kind > 0 else -1)
            parts.append(("inf", sign))
    if not parts:
        return None
    signs = {sign for kind, sign in parts}
    if any(kind == "nan" for kind, _ in parts) or len(signs) > 1:
        return 0x7FFFFFFF
    return 0x7F800000 if signs == {1} else 0xFF800000


def step(mode, a_type, b_type, fraction, mantissa, c_bits, a_codes, b_codes):
    terms = [(decode(a, a_type), decode(b, b_type)) for a, b in zip(a_codes, b_codes)]
    c = decode(c_bits, "f32")
    finish = half_bits if mantissa == HALF else to_bits
    answer = special(terms, c)
    if answer is not None:
        return answer
    if mode == "exact":
        total = c[0] + sum(a[0] * b[0] for a, b in terms)
        return half_bits(total) if mantissa == HALF else to_bits(round_even(total))
    if mode == "fast":
        total = c[0]
        for a, b in terms:
            total = round_even(total + a[0] * b[0])
            if total != 0 and binade(total) > 127:
                return special([], ("inf", 1 if total > 0 else -1))
        return finish(total)
    if mantissa == HALF and c[0] != 0:  # f16 aligns its subnormals at its least exponent
        c = (c[0], max(c[1], -14))
    largest = max([c[1]] + [a[1] + b[1] for a, b in terms])
    total = toward_zero(c[0], largest - fraction)
    for a, b in terms:
        total += toward_zero(a[0] * b[0], largest - fraction)
    if total == 0 or mantissa == HALF:
        return finish(total)
    return to_bits(toward_zero(total, max(binade(total) - mantissa, -149)))


def same(got, expected):
    """Zero has two signs in fp32 fused chains and one in the units."""
    return got == expected or (got | expected) & 0x7FFFFFFF == 0


def check(line):
    mode, arch, kind, a_type, b_type, c_bits, result, a, b = line.split()
    a_codes = [int(x, 16) for x in a.split(",")]
    b_codes = [int(x, 16) for x in b.split(",")]
    value = int(c_bits, 16)
    fraction, mantissa, terms = unit_of(int(arch), a_type, kind)
    if mode != "hw":  # all at once
        terms = len(a_codes)
    for at in range(0, len(a_codes), terms):
        value = step(mode, a_type, b_type, fraction, mantissa, value, a_codes[at:at + terms],
                     b_codes[at:at + terms])
    return same(int(result, 16), value), value


def main():
    cases = wrong = 0
    for line in sys.stdin:
        ok, expected = check(line)
        cases += 1
        if not ok:
            wrong += 1
            if wrong <= 5:
                print(f"mismatch, expected {expected:08x}: {line.strip()}")
    print(f"{cases} cases, {wrong} mismatches")
    return 1 if wrong or cases == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
