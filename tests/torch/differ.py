"""Random calls, PyTorch against `backplane golden`: values, types, sizes, strides, and whether a call is refused.

The arguments of recorded cases (the handed ones and recorded.jsonl.gz) are changed at random: other types, layouts and
sizes, empty and 0-d tensors, NaN, infinities, -0 and the ends of types at some places, other numbers and lists. What
PyTorch makes of each call, in a process of its own that may crash, is written as a golden case and run. One seed gives
the same calls with one version of PyTorch.

usage: python3 differ.py SEED COUNT [PATTERN]    with a PyTorch; BACKPLANE= the command (default: backplane)

Prints a line for each difference, then how many there were of each kind. Differences are to be judged: PyTorch's own
kernels disagree on what they do with infinities, and refuse or read what they should not. UNIMPLEMENTED counts as
refused.
"""
import collections
import gzip
import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile

import torch

import record

COMMAND = os.environ.get("BACKPLANE", "backplane")
MEMORY = 4 << 30
# Random, unfilled or not unique: there is no answer to compare with.
WITHOUT = re.compile(r"^aten\.(_?linalg_(svd|eigh|eig|eigvals|qr|lstsq|lu|ldl)|svd|geqrf|ormqr|householder|lu_|"
                     r"_lu_with|linalg_householder|rand|.*dropout|bernoulli|multinomial|normal|uniform|exponential|"
                     r"geometric|poisson|cauchy|log_normal|empty|new_empty|resize|random|rrelu|.*scaled_dot|"
                     r"fractional)")
FLOATS = [float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 0.5, -0.5, 1.5, 2.5, 1.0, -1.0, 100.5]
COMPLEX = [complex(float("nan"), 0), complex(float("inf"), 1), 0j, complex(-0.0, -0.0), 1j, -1 + 0j]


class Changer:
    def __init__(self, seed):
        self.r = random.Random(seed)

    def special(self, t):
        """Some elements at the ends of the type."""
        if not t.numel():
            return t
        values = FLOATS
        if t.dtype.is_floating_point:
            limits = torch.finfo(t.dtype)
            values = FLOATS + [limits.tiny / 4, limits.max, limits.min]
        elif t.dtype.is_complex:
            values = COMPLEX
        elif t.dtype == torch.bool:
            values = [True, False]
        else:
            limits = torch.iinfo(t.dtype)
            values = [limits.max, limits.min, 0, 1, limits.max - 1, -1 if limits.min else 2]
        flat = t.contiguous().clone().view(-1)
        for _ in range(self.r.randint(1, 6)):
            flat[self.r.randrange(len(flat))] = self.r.choice(values)
        return flat.view(t.shape)

    def layout(self, t):
        if not t.dim():
            return t
        d, kind = self.r.randrange(t.dim()), self.r.randrange(5)
        if kind == 0:
            order = list(range(t.dim()))
            self.r.shuffle(order)
            return t.permute(order).contiguous().permute([order.index(i) for i in range(t.dim())])
        if kind == 1 and t.dim() in (4, 5):
            return t.contiguous(memory_format=torch.channels_last if t.dim() == 4 else torch.channels_last_3d)
        if kind == 2:
            wide = torch.zeros([n * (2 if i == d else 1) for i, n in enumerate(t.shape)], dtype=t.dtype)
            gaps = wide.as_strided(t.shape, [s * (2 if i == d else 1) for i, s in enumerate(wide.stride())])
            return gaps.copy_(t)
        if kind == 3 and t.numel():
            return t.narrow(d, 0, 1).expand(t.shape)
        return t.transpose(0, -1)

    def sizes(self, t):
        kind = self.r.randrange(7)
        if kind == 0:
            return t.unsqueeze(self.r.randrange(t.dim() + 1))
        if not t.dim():
            return t
        d = self.r.randrange(t.dim())
        n = t.shape[d]
        if kind == 1:
            return t.reshape(-1)[:1].reshape(()) if t.numel() else t
        if kind == 2:
            return torch.cat([t, t.narrow(d, 0, min(1, n))], d)
        if kind == 3 and n:
            return t.select(d, 0)
        return t.narrow(d, 0, [0, min(1, n), max(0, n - 1)][kind % 3])

    def dtype(self, t):
        to = self.r.choice(list(record.DTYPES.values()))
        if t.dtype.is_complex and not to.is_complex:
            t = t.real
        if t.dtype.is_floating_point and not to.is_floating_point and not to.is_complex:
            t = torch.nan_to_num(t).clamp(-100, 100)
        return t != 0 if to == torch.bool else t.to(to)

    def number(self, v):
        if isinstance(v, bool):
            return not v
        if isinstance(v, int):
            large = [2**31, -2**63, 2**63 - 1, 2**40] if self.r.random() < 0.05 else []
            return self.r.choice(large or [v + 1, v - 1, -v, 0, 1, -1, 2, 5, -9])
        if isinstance(v, float):
            return self.r.choice(FLOATS + [1e-30, 1e30, 2 * v, -v, 2.0])
        return v

    def change(self, v, how):
        if isinstance(v, torch.Tensor):
            return getattr(self, how)(v) if how != "number" else v
        if isinstance(v, list) and v:
            if how == "number" and self.r.random() < 0.3:
                return v[:-1] if self.r.random() < 0.5 else v + v[-1:]
            i = self.r.randrange(len(v))
            return v[:i] + [self.change(v[i], how)] + v[i + 1:]
        return self.number(v) if how == "number" else v

    def call(self, case):
        args, named = record.read(case["args"]), {k: record.read(v) for k, v in case["kwargs"].items()}
        for _ in range(self.r.choice([1, 1, 1, 2, 3])):
            how = self.r.choice(["dtype", "layout", "sizes", "special", "number"])
            if named and (not args or (how == "number" and self.r.random() < 0.4)):
                key = self.r.choice(list(named))
                named[key] = self.change(named[key], how)
            elif args:
                i = self.r.randrange(len(args))
                args[i] = self.change(args[i], how)
        return args, named


def answered(target, args, named):
    """The case as PyTorch answers it, and its refusal or None."""
    op = record.packet(target)
    case = {"op": target, "args": [record.value(a) for a in args],
            "kwargs": {k: record.value(v) for k, v in named.items()}, "out": None}
    try:
        out = op(*args, **named)
    except Exception as e:  # whatever PyTorch's operators raise is a refusal
        return case, f"{type(e).__name__}: {str(e).splitlines()[0][:120]}" if str(e) else type(e).__name__
    bare = [record.bare(t) if isinstance(t, torch.Tensor) else record.value(t)
            for t in (out if isinstance(out, (list, tuple)) else [out])]
    case["out"] = bare if isinstance(out, (list, tuple)) else bare[0]
    written = [i for i, a in enumerate(op._schema.arguments) if a.alias_info and a.alias_info.is_write]
    case["mutated"] = [[i, record.bare(args[i])] for i in written
                       if i < len(args) and isinstance(args[i], torch.Tensor)]
    return case, None


def samples(pattern):
    found = collections.defaultdict(list)
    for path in (record.HANDED[0], os.path.join(record.here, "recorded.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as f:
            for line in f:
                case = json.loads(line)
                target = case["op"]
                if len(line) < 6000 and not WITHOUT.match(target) and re.search(pattern, target) \
                        and record.packet(target):
                    found[target].append(case)
    return found


def ask(seed, first, count, cases, path):
    """In a child: a line (refusal, case) for each call; a crash of PyTorch's ends the child."""
    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    targets = sorted(cases)
    with open(path, "a", encoding="utf-8") as f:
        for i in range(first, count):
            f.write(f"{i}\n")
            f.flush()
            signal.alarm(5)
            changer = Changer(f"{seed}.{i}")
            target = changer.r.choice(targets)
            try:
                case, refusal = answered(target, *changer.call(changer.r.choice(cases[target])))
            except (RuntimeError, IndexError, ValueError, TypeError):
                continue  # the change itself cannot be made
            text = json.dumps(case)
            if len(text) < 200000 and "memory" not in (refusal or ""):
                f.write(json.dumps([refusal, text]) + "\n")


def calls(seed, count, cases, folder):
    path, first = os.path.join(folder, "asked"), 0
    while first < count:
        child = os.fork()
        if child == 0:
            ask(seed, first, count, cases, path)
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        with open(path, encoding="utf-8") as f:
            lines = f.readlines()
        first = count if status == 0 else int([x for x in lines if x[0] != "["][-1]) + 1
    return [json.loads(x) for x in lines if x[0] == "["]


def run(lines, folder):
    """{index: what the runner says}, by halves where it crashes or hangs."""
    path = os.path.join(folder, "case.jsonl")
    with open(path, "w", encoding="utf-8") as f:
        f.writelines(x + "\n" for x in lines)
    try:
        done = subprocess.run([COMMAND, "golden", "--strides", "--check-fake", path], capture_output=True, text=True,
                              timeout=20, check=False,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)))
        if done.returncode in (0, 1) and re.search(r"\d+ passed, \d+ failed", done.stdout):
            found = re.findall(r"^case\.jsonl:(\d+): (.*)$", done.stdout, re.M)
            return {int(n) - 1: text for n, text in found}
        why = f"CRASH {done.returncode} {done.stderr[-400:]}"
    except subprocess.TimeoutExpired:
        why = "HANGS"
    if len(lines) == 1:
        return {0: why}
    half = len(lines) // 2
    found = run(lines[:half], folder)
    found.update((half + i, text) for i, text in run(lines[half:], folder).items())
    return found


def kind_of(refusal, said):
    """What is different, or None."""
    if said and said.startswith(("CRASH", "HANGS")):
        return "crash"
    if refusal:
        return "accepted" if said and "results, expected 0" in said else None
    if not said:
        return None
    return "values" if " differ, largest error" in said else "form" if re.search(r"got \w+\[", said) else "refused"


def short(v):
    if isinstance(v, dict):
        t = v.get("tensor", v)
        return f"{t['dtype']}{t['shape']}/{t['stride']}" if "data" in t else str(next(iter(v.values())))
    return "[" + ", ".join(map(short, v)) + "]" if isinstance(v, list) else str(v)


def main():
    seed, count = int(sys.argv[1]), int(sys.argv[2])
    torch.set_num_threads(1)
    kinds = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        asked = calls(seed, count, samples(sys.argv[3] if len(sys.argv) > 3 else ""), folder)
        for at in range(0, len(asked), 500):
            part = asked[at:at + 500]
            said = run([text for _, text in part], folder)
            for i, (refusal, text) in enumerate(part):
                kind = kind_of(refusal, said.get(i))
                if kind:
                    case = json.loads(text)
                    kinds[kind] += 1
                    shown = [short(a) for a in case["args"]] + [f"{k}={short(v)}" for k, v in case["kwargs"].items()]
                    print(f"{kind}: {case['op']}({', '.join(shown)})\n"
                          f"    PyTorch: {refusal or 'answers'}\n    here: {said.get(i)}")
    refused = sum(r is not None for r, _ in asked)
    print(f"{len(asked)} calls, {refused} refused by PyTorch; differences: {dict(kinds)}")


if __name__ == "__main__":
    main()
