#!/usr/bin/env python3
"""Products of narrow floats with block scales, restated with Python integers and fractions only.

Reads one case a line on stdin, prints the first mismatches and exits 1 when there is one:
  MODE A_TYPE B_TYPE SCALE_TYPE HALF C_BITS RESULT_BITS A_CODES B_CODES A_SCALES B_SCALES
MODE is hw or exact. Codes and bits are hexadecimal, codes joined by commas ("-": none); C and the
result are fp32's bits. Written from the model's description (the published bit model of mma.sync's
kinds with block scales), not from the C code.
"""
import sys
from fractions import Fraction

# name: (bits, fraction bits, bias)
FORMATS = {"e4m3": (8, 3, 7), "e5m2": (8, 2, 15), "e3m2": (6, 2, 3), "e2m3": (6, 3, 1),
           "e2m1": (4, 1, 1), "f32": (32, 23, 127), "ue4m3": (8, 3, 7)}
NAN, INF = "nan", "inf"


def decode(code, name):
    """(significand, exponent) with value = significand * 2^exponent, or (NAN or INF, sign)."""
    if name == "ue8m0":
        return (NAN, 1) if code == 0xff else (Fraction(1), code - 127)
    bits, fraction_bits, bias = FORMATS[name]
    if name == "ue4m3":
        code &= 0x7f
    sign = -1 if code >> (bits - 1) & 1 else 1
    magnitude = code & (1 << bits - 1) - 1
    exponent, fraction = magnitude >> fraction_bits, magnitude & (1 << fraction_bits) - 1
    top = (1 << bits - 1 - fraction_bits) - 1
    if name in ("e5m2", "f32") and exponent == top:
        return (NAN if fraction else INF), sign
    if name in ("e4m3", "ue4m3") and magnitude == 0x7f:
        return NAN, sign
    significand = Fraction(fraction, 1 << fraction_bits) + (1 if exponent else 0)
    if significand == 0:
        return Fraction(0), -126
    return sign * significand, max(exponent, 1) - bias


def value(number):
    return number[0] * Fraction(2) ** number[1]


def truncate(x):
    return x.numerator // x.denominator if x >= 0 else -(-x.numerator // x.denominator)


def binade(x):
    guess = abs(x).numerator.bit_length() - abs(x).denominator.bit_length()
    return guess if Fraction(2) ** guess <= abs(x) else guess - 1


def fused(terms, fraction_bits):
    """Aligned to the largest exponent, cut to so many fraction bits, added exactly."""
    most = max(exponent for _, exponent in terms)
    total = sum(truncate(s * Fraction(2) ** (fraction_bits + e - most)) for s, e in terms)
    return total * Fraction(2) ** (most - fraction_bits)


def f32_bits(x, toward_zero):
    if x == 0:
        return 0
    exponent = max(binade(x), -126)
    scaled = abs(x) / Fraction(2) ** (exponent - 23)
    whole = scaled.numerator // scaled.denominator
    rest = scaled - whole
    if not toward_zero and (rest > Fraction(1, 2) or rest == Fraction(1, 2) and whole & 1):
        whole += 1
    magnitude = ((exponent + 126) << 23) + whole if whole >= 1 << 23 else whole
    magnitude = min(magnitude, 0x7f800000)
    return magnitude | (0x80000000 if x < 0 else 0)


def to_half(x):
    """The nearest f16 as a Fraction, or INF with its sign."""
    if x == 0:
        return x
    unit = Fraction(2) ** (max(binade(x), -14) - 10)
    scaled = abs(x) / unit
    whole = scaled.numerator // scaled.denominator
    rest = scaled - whole
    if rest > Fraction(1, 2) or rest == Fraction(1, 2) and whole & 1:
        whole += 1
    result = whole * unit * (1 if x > 0 else -1)
    return INF if abs(result) >= 65536 else result


def special(c, a, b, scales):
    """IEEE's answer when something is no number; None when all are."""
    if any(s[0] == NAN for s in scales) or c[0] == NAN:
        return NAN
    infinities = set()
    if c[0] == INF:
        infinities.add(c[1])
    for x, y in zip(a, b):
        if NAN in (x[0], y[0]):
            return NAN
        if INF in (x[0], y[0]):
            if 0 in (x[0], y[0]):
                return NAN
            signs = [n[1] if n[0] == INF else (1 if n[0] > 0 else -1) for n in (x, y)]
            infinities.add(signs[0] * signs[1])
    if len(infinities) == 2:
        return NAN
    return infinities.pop() if infinities else None


def expected(mode, c, a, b, a_scales, b_scales, half):
    answer = special(c, a, b, a_scales + b_scales)
    if answer is not None:
        return 0x7fffffff if answer == NAN else 0x7f800000 | (0x80000000 if answer < 0 else 0)
    blocks = len(a_scales)
    size = len(a) // blocks if blocks else len(a)
    if mode == "exact":
        total = value(c) + sum(
            value(x) * value(y) * (value(a_scales[k // size]) * value(b_scales[k // size]) if blocks else 1)
            for k, (x, y) in enumerate(zip(a, b)))
    elif len(a) == 64:
        terms = [c]
        for k in range(0, 64, 16):
            x, y = a_scales[k // size], b_scales[k // size]
            dot = sum(value(a[i]) * value(b[i]) for i in range(k, k + 16))
            terms.append((dot * x[0] * y[0], x[1] + y[1]))
        total = fused(terms, 35)
    else:
        if half and c[0] != 0 and c[1] < -14:
            c = (value(c) * 2 ** 14, -14)
        terms = [c]
        for k, (x, y) in enumerate(zip(a, b)):
            scale = a_scales[k // size][1] + b_scales[k // size][1] if blocks else 0
            terms.append((x[0] * y[0], x[1] + y[1] + scale))
        total = fused(terms, 25)
    if half:
        total = to_half(total)
        return 0x7f800000 if total == INF else f32_bits(total, True)
    return f32_bits(total, mode == "hw")


def codes(text, name):
    return [] if text == "-" else [decode(int(t, 16), name) for t in text.split(",")]


def main():
    bad = 0
    for line in sys.stdin:
        mode, a, b, scale, half, c, result, *lists = line.split()
        want = expected(mode, decode(int(c, 16), "f32"), codes(lists[0], a), codes(lists[1], b),
                        codes(lists[2], scale), codes(lists[3], scale), half == "1")
        if want & 0x7fffffff == 0 and int(result, 16) & 0x7fffffff == 0:
            continue  # the sign of zero is nobody's promise
        if half == "1" and want == 0x7f800000 and int(result, 16) == 0xff800000:
            continue  # INF of to_half carries no sign
        if want != int(result, 16):
            bad += 1
            if bad <= 10:
                print("want %08x: %s" % (want, line.strip()))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
