"""A training step of a transformer block of BERT-base size (batch 8, 128 tokens): usage: train.py TRAIN [PEER...]

Forward, backward and an SGD step on two threads: compiled through onednn-cpu, on the eager tape, and PyTorch eager and
Inductor where PYTHON has PyTorch. Each peer is a process of its own; they take turns, and a peer's time is its best
turn's median. Prints time, peak memory, and both beside PyTorch eager's. Fails when the loss of a peer is another one,
or when the step through onednn-cpu takes more than twice PyTorch eager's time.
"""
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BATCH, TOKENS, WIDTH, HIDDEN, HEADS = 8, 128, 768, 3072, 12
THREADS, TURNS, RUNS, LIMIT, NEAR = 2, 5, 5, 2.0, 1e-4
PEERS = ["onednn-cpu", "tape", "torch", "inductor"]


def write_weights(path, values):
    """A safetensors file of float32 tensors; values: name -> (sizes, bytes)."""
    import json
    header, at = {}, 0
    for name, (sizes, data) in values.items():
        header[name] = {"dtype": "F32", "shape": sizes, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(data for _, data in values.values()))


def make_weights(path):
    """Normal numbers, of a deviation that keeps the block's results in range."""
    import array
    import random
    rng = random.Random(20)
    sizes = {"x": [BATCH, TOKENS, WIDTH], "self_attn.in_proj_weight": [3 * WIDTH, WIDTH],
             "self_attn.in_proj_bias": [3 * WIDTH], "self_attn.out_proj.weight": [WIDTH, WIDTH],
             "self_attn.out_proj.bias": [WIDTH], "linear1.weight": [HIDDEN, WIDTH], "linear1.bias": [HIDDEN],
             "linear2.weight": [WIDTH, HIDDEN], "linear2.bias": [WIDTH], "norm1.weight": [WIDTH],
             "norm1.bias": [WIDTH], "norm2.weight": [WIDTH], "norm2.bias": [WIDTH]}
    values = {}
    for name, shape in sizes.items():
        n = 1
        for s in shape:
            n *= s
        scale = 1.0 if name == "x" else 0.02
        shift = 1.0 if name.startswith("norm") and name.endswith("weight") else 0.0
        values[name] = (shape, array.array("f", (shift + scale * rng.gauss(0, 1) for _ in range(n))).tobytes())
    write_weights(path, values)


def serve_torch(kind, path):
    """The other side of train.c's protocol."""
    import resource
    import torch
    from safetensors.torch import load_file
    torch.set_num_threads(THREADS)
    state = load_file(path)
    x = state.pop("x")
    block = torch.nn.TransformerEncoderLayer(WIDTH, HEADS, HIDDEN, dropout=0.0, activation="gelu", batch_first=True)
    block.load_state_dict(state)
    block.train()
    optimizer = torch.optim.SGD(block.parameters(), lr=1e-3)
    loss_of = lambda x: block(x).square().mean()  # noqa: E731
    if kind == "inductor":
        loss_of = torch.compile(loss_of)
    last = 0.0
    for line in sys.stdin:
        if line.startswith("run"):
            times = []
            for _ in range(int(line.split()[1])):
                began = time.perf_counter_ns()
                optimizer.zero_grad()
                loss = loss_of(x)
                loss.backward()
                optimizer.step()
                last = loss.item()
                times.append(time.perf_counter_ns() - began)
            print(int(statistics.median(times)))
        elif line == "peak\n":
            print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
        else:
            print(f"{last:.9g}")
        sys.stdout.flush()


class Peer:
    def __init__(self, name, program, weights):
        self.name, self.times = name, []
        command = [program, name, weights] if name in ("onednn-cpu", "tape") else \
            [sys.executable, __file__, "--serve", name, weights]
        env = dict(os.environ, OMP_NUM_THREADS=str(THREADS))
        self.process = subprocess.Popen([str(part) for part in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, env=env)

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        said = self.process.stdout.readline().strip()
        if not said:
            sys.exit(f"{self.name} has ended without an answer to \"{line}\"")
        return float(said)


def has_torch():
    try:
        import torch  # noqa: F401
        return True
    except ImportError:
        return False


def show(peers, base):
    print(f"{'':12} {'ms':>9} {'peak MB':>9} {'loss':>12} {'time':>7} {'peak':>7}   (beside {base.name})")
    for peer in peers:
        print(f"{peer.name:12} {peer.ms:9.1f} {peer.peak / 1e6:9.0f} {peer.loss:12.7f} {peer.ms / base.ms:7.2f} "
              f"{peer.peak / base.peak:7.2f}")


def main():
    if sys.argv[1] == "--serve":
        return serve_torch(*sys.argv[2:])
    names = sys.argv[2:] or (PEERS if has_torch() else PEERS[:2])
    if not has_torch():
        print("PyTorch is not importable (PYTHON=... names a Python that has it): ours alone, no limit is checked")
    with tempfile.TemporaryDirectory() as folder:
        weights = Path(folder) / "block.safetensors"
        make_weights(weights)
        peers = [Peer(name, sys.argv[1], weights) for name in names]
        for peer in peers:
            peer.ask("run 1")
            peer.loss = peer.ask("loss")
        for _ in range(TURNS):
            for peer in peers:
                peer.times.append(peer.ask(f"run {RUNS}"))
        for peer in peers:
            peer.ms, peer.peak = min(peer.times) / 1e6, peer.ask("peak")
    base = next((peer for peer in peers if peer.name == "torch"), peers[0])
    show(peers, base)
    bad = [p.name for p in peers if abs(p.loss - base.loss) > NEAR * abs(base.loss)]
    if base.name == "torch":
        bad += [f"{p.name} takes over {LIMIT} times PyTorch eager's time" for p in peers
                if p.name == "onednn-cpu" and p.ms > LIMIT * base.ms]
    for what in bad:
        print(f"failed: {what}")
    return bool(bad)


sys.exit(main())
