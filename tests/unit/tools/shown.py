"""Writes shown/: arrays as numpy prints them, for test_show.c. Each file is one array: its numbers are made by the same
rule in C (see test_show.c). Needs numpy. usage: python3 shown.py
"""
import os

import numpy as np

here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "shown")


def numbers(n, scale, step):
    """A fixed run of n numbers: exact in float64, so that C makes the same."""
    return np.array([((i * step) % 64 - 20) * scale for i in range(n)])


CASES = {
    "plain": numbers(10, 0.125, 7).astype(np.float32),
    "rows": numbers(12, 0.3, 11).reshape(3, 4),
    "cube": numbers(24, 1.0, 5).reshape(2, 3, 4).astype(np.float32),
    "long": numbers(60, 1 / 3, 13).astype(np.float32),
    "large": numbers(8, 1e7, 9),
    "small": numbers(8, 1e-6, 9).astype(np.float32),
    "ints": numbers(30, 100, 17).astype(np.int64),
    "bytes": np.abs(numbers(6, 1, 3)).astype(np.uint8).reshape(2, 3),
    "bools": (numbers(9, 1, 7) > 0).reshape(3, 3),
    "many": numbers(1200, 0.5, 3).reshape(30, 40),
    "half": numbers(9, 0.1, 5).astype(np.float16),
    "special": np.array([1.5, np.nan, -np.inf, 0, -0.0, 2]),
    "all_special": np.array([np.nan, np.inf]),
    "wide": numbers(40, 12345.678, 19).reshape(2, 20),
    "deep": numbers(16, 1, 3).reshape(2, 2, 2, 2),
    "one": numbers(1, 0.1, 1).astype(np.float32).reshape(()),
    "tiny": np.array(1e-7, dtype=np.float32),
    "truth": np.array(True),
    "none": np.zeros((0, 3), dtype=np.float32),
}
os.makedirs(here, exist_ok=True)
for name, array in CASES.items():
    with open(os.path.join(here, name), "w", encoding="utf-8") as f:
        f.write(str(array))
