"""Writes small.jsonl.gz from the handed files: a few cases of every operator, so that `make check` meets each once.

Of operator cases the smallest of each overload and class of dtype (float, low, integer); of graphs the smallest of each
name and class. Until the file would pass SIZE bytes.
usage: python3 pick.py
"""
import gzip
import json
import os

here = os.path.dirname(os.path.abspath(__file__))
SIZE = 300_000
CLASSES = {"float32": "float", "float64": "float", "bfloat16": "low", "float16": "low"}


def dtype_of(case):
    if "dtype" in case:
        return case["dtype"]
    for arg in case["args"]:
        if isinstance(arg, dict) and "tensor" in arg:
            return arg["tensor"]["dtype"]
    return "none"


def smallest(file):
    """The shortest line of each key, in the order of the file."""
    best = {}
    with gzip.open(os.path.join(here, file), "rt", encoding="utf-8") as f:
        for line in f:
            case = json.loads(line)
            key = (case.get("op") or case["name"], CLASSES.get(dtype_of(case), "integer"))
            # An empty tensor shows little.
            if '"data": ""' in line:
                continue
            if key not in best or len(line) < len(best[key]):
                best[key] = line
    return list(best.values())


def main():
    lines = smallest("ops_handed.jsonl.gz") + smallest("graphs_handed.jsonl.gz")
    while True:
        data = gzip.compress("".join(lines).encode(), 9, mtime=0)
        if len(data) <= SIZE:
            break
        lines.remove(max(lines, key=len))
    with open(os.path.join(here, "small.jsonl.gz"), "wb") as f:
        f.write(data)
    print(len(lines), "cases,", len(data), "bytes")


main()
