#!/usr/bin/env python3
"""space_versus.py BENCH_SPACE DEFINITION.json...: our construction of search spaces beside Kernel Tuner's, in one run.

Prints a table (Markdown) of processor time: Kernel Tuner's default solver (python-constraint2, compiled; the list of
configs and its index), the best of five; and bench_space's walk with reading and opening, the best of five, taken in
turn. Says SKIP and ends with 0 where Kernel Tuner is absent (pip install kernel-tuner, in an environment of its own).
Needs nothing of this project but the program."""
import json
import re
import subprocess
import sys
import time
import warnings


def restrictions_of(definition):
    """With constants in their place, and what they settle left out: Kernel Tuner knows parameters only."""
    out = []
    for text in definition.get("restrictions", []):
        for name, value in definition.get("constants", {}).items():
            text = re.sub(r"\b%s\b" % re.escape(name), str(value), text)
        if any(re.search(r"\b%s\b" % re.escape(name), text) for name in definition["params"]):
            out.append(text)
    return out


def solve(searchspace, definition):
    start = time.process_time()
    made = searchspace(dict(definition["params"]), restrictions_of(definition), 1 << 30)
    return (time.process_time() - start) * 1e3, made.size


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    warnings.filterwarnings("ignore")
    try:
        from kernel_tuner.searchspace import Searchspace
        from importlib.metadata import version
    except ImportError:
        print("SKIP: Kernel Tuner is absent")
        return
    print(f"Kernel Tuner {version('kernel-tuner')}, python-constraint2 {version('python-constraint2')}\n")
    print("| space | raw | legal | Kernel Tuner ms | opened and walked ms | times faster | opened ms | counted ms "
          "| 1,000 draws ms | 1,000 x neighbours ms |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    wrong = 0
    for path in sys.argv[2:]:
        definition = json.load(open(path))
        theirs, ours, size = [], None, 0
        for _ in range(5):
            ms, size = solve(Searchspace, definition)
            theirs.append(ms)
            row = json.loads(subprocess.run([sys.argv[1], path], check=True, capture_output=True).stdout)
            if ours is None or row["open_ms"] + row["walk_ms"] < ours["open_ms"] + ours["walk_ms"]:
                ours = row
        wrong += size != ours["legal"]
        whole = ours["open_ms"] + ours["walk_ms"]
        name = path.split("/")[-1].replace(".json", "").replace("big_", "")
        print(f"| {name} | {ours['raw']:,} | {ours['legal']:,} | {min(theirs):.1f} | {whole:.2f} "
              f"| {min(theirs) / whole:.0f} | {ours['open_ms']:.2f} | {ours['count_ms']:.2f} "
              f"| {ours['draws_ms']:.2f} | {ours['neighbours_ms']:.2f} |", flush=True)
    if wrong:
        sys.exit(f"{wrong} spaces hold another number of configs than Kernel Tuner's")


if __name__ == "__main__":
    main()
