"""What a partition saves and costs, of a transformer block and a conv-BN-ReLU stack: usage: partition.py PARTITION

Both blocks in core ATen, on the reference kernels, by the default set and by the minimal cut; beside PyTorch's own
partitioners (Inductor's decompositions, its graphs run as they are) where PYTHON has PyTorch. Parameters count as saved
for nothing. Each line is a process of its own. Fails unless the cut saves fewer bytes, with the same results.
"""
import subprocess
import sys
import time

BLOCKS, KINDS, THREADS, RUNS = ["transformer", "conv-bn-relu"], ["default", "min-cut"], 2, 4


def torch_block(name):
    import torch
    if name == "transformer":
        return torch.nn.TransformerEncoderLayer(768, 12, 3072, dropout=0.0, activation="gelu", batch_first=True), \
            torch.randn(8, 128, 768)
    layers = [layer for _ in range(3) for layer in (torch.nn.Conv2d(64, 64, 3, padding=1), torch.nn.BatchNorm2d(64),
                                                    torch.nn.ReLU())]
    return torch.nn.Sequential(*layers), torch.randn(8, 64, 28, 28)


def flops_of(node):
    """As our own count: products in full, else the larger of what is read and written."""
    from torch.utils.flop_counter import flop_registry
    sizes = [n.meta["val"].numel() for n in [node, *node.all_input_nodes] if hasattr(n.meta.get("val"), "numel")]
    packet = getattr(node.target, "overloadpacket", None)
    if packet in flop_registry:
        return flop_registry[packet](*[a.meta["val"] if hasattr(a, "meta") else a for a in node.args],
                                     out_val=node.meta["val"], **node.kwargs)
    return 0 if "view" in node.name or "getitem" in node.name else max(sizes, default=0)


def peak():
    with open("/proc/self/status", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmHWM")) * 1024


def measure_torch(name, kind):
    import torch
    from functorch.compile import default_partition, make_boxed_func, min_cut_rematerialization_partition
    from torch._functorch.aot_autograd import aot_module
    from torch._inductor.decomposition import select_decomp_table
    torch.set_num_threads(THREADS)
    module, x = torch_block(name)
    given = len(list(module.parameters())) + len(list(module.buffers()))
    cut = default_partition if kind == "default" else min_cut_rematerialization_partition
    seen = [0, 0]

    def partition(joint, inputs, **how):
        forward, backward = cut(joint, inputs, **how)
        made = {n.name for n in forward.graph.nodes if n.op == "call_function"}
        for n in backward.graph.nodes:
            if n.op == "placeholder" and not n.name.startswith("tangents"):
                is_free = n.name.startswith("primals_") and int(n.name[8:]) <= given
                value = n.meta["val"]
                seen[0] += 0 if is_free or not hasattr(value, "numel") else value.numel() * value.element_size()
            elif n.op == "call_function" and n.name in made:
                seen[1] += flops_of(n)
        return forward, backward

    def keep(graph, _):
        return make_boxed_func(graph.forward)
    compiled = aot_module(module, keep, keep, partition_fn=partition, decompositions=select_decomp_table())
    times = []
    for i in range(RUNS + 1):
        if i == 1:
            with open("/proc/self/clear_refs", "w", encoding="ascii") as f:
                f.write("5")
        began = time.perf_counter_ns()
        y = compiled(x)
        y.backward(torch.ones_like(y))
        times.append(time.perf_counter_ns() - began)
        module.zero_grad()
    print(*seen, min(times[1:]), peak(), "-")


def ask(command):
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, text=True, check=True)
    *numbers, digest = done.stdout.split()
    return [int(n) for n in numbers] + [digest]


def main():
    if sys.argv[1] == "--torch":
        return measure_torch(*sys.argv[2:])
    try:
        import torch  # noqa: F401
        peers = ["ours", "PyTorch"]
    except ImportError:
        peers = ["ours"]
        print("PyTorch is not importable (PYTHON=... names a Python that has it): ours alone")
    print(f"{'block':13} {'':8} {'':8} {'saved MB':>9} {'again MFLOP':>12} {'peak MB':>8} {'ms':>8}")
    failed = 0
    for block in BLOCKS:
        for peer in peers:
            got = {}
            for kind in KINDS:
                command = [sys.argv[1]] if peer == "ours" else [sys.executable, __file__, "--torch"]
                got[kind] = saved, flops, ns, most, _ = ask([*command, block, kind])
                print(f"{block:13} {peer:8} {kind:8} {saved / 1e6:9.2f} {flops / 1e6:12.2f} {most / 1e6:8.0f} "
                      f"{ns / 1e6:8.1f}", flush=True)
            whole, cut = got["default"], got["min-cut"]
            if peer == "ours" and (cut[0] >= whole[0] or cut[4] != whole[4]):
                failed = 1
                print(f"failed: {block}: min-cut saves {cut[0]} bytes and default {whole[0]}; results "
                      f"{'are equal' if cut[4] == whole[4] else 'differ'}")
    return failed


sys.exit(main())
