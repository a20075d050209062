"""Reference kernels against PyTorch eager, in turns: usage: reference.py SERVE [ROW...]

Ours and PyTorch's take turns; a turn's time is the median of its runs, and the best turn of each side counts, so that
what else the machine does is left out. A row over a limit gets more turns, of both sides, before that counts.

A row is an operator at two model sizes. Limits: ours / PyTorch's at most 4 for convolutions and products, 2 for the
rest; views cost no time with size; and no row grows faster from the first size to the second than PyTorch's (with 30 %
for noise). floor: bytes over measured bandwidth, or products and sums over the measured peak, whichever is longer.
Without PyTorch our times stand alone. Fails when a limit is passed.
"""
import statistics
import subprocess
import sys
import time

try:
    import torch
except ImportError:
    torch = None

THREADS, TURNS, ROUNDS, NOISE = 2, 7, 6, 1.3
SIZES = {'f32': 4, 'i64': 8, 'b8': 1}


class T:
    """A tensor argument: dtype and sizes, or its permuted view."""
    def __init__(self, *sizes, dtype='f32'):
        self.sizes, self.dtype = sizes, dtype

    def text(self):
        return '%s[%s]' % (self.dtype, ', '.join(map(str, self.sizes)))

    def bytes(self):
        n = SIZES[self.dtype]
        for s in self.sizes:
            n *= s
        return n

    def make(self):
        if self.dtype == 'b8':
            return torch.randn(self.sizes) > 0
        return torch.randn(self.sizes) if self.dtype == 'f32' else torch.randint(0, 100, self.sizes)


class Row:
    """limit 0: a view. args(n): the arguments at batch n. flops(n). out(n): bytes written."""
    def __init__(self, name, limit, batches, args, flops=None, first=None):
        self.name, self.limit, self.batches = name, limit, batches
        self.args, self.flops, self.first = args, flops, first


def written(v):
    if isinstance(v, list):
        return '[%s]' % ', '.join(map(written, v))
    return v if isinstance(v, str) and v.startswith('%') else '"%s"' % v if isinstance(v, str) else repr(v)


VIT, HEADS = (197, 768), (12, 197, 197)
W = 768
ROWS = [
    Row('view', 0, (8, 32), lambda n: [T(n, *VIT), [n * 197, 768]]),
    Row('permute', 0, (8, 32), lambda n: [T(n, 197, 12, 64), [0, 2, 1, 3]]),
    Row('add.Tensor', 2, (8, 32), lambda n: [T(n, *VIT), T(n, *VIT)]),
    Row('clone', 2, (8, 32), lambda n: [T(n, 12, 197, 64)], first='permute(0, 2, 1, 3)'),
    Row('addmm', 4, (2, 8), lambda n: [T(W), T(n * 197, W), T(W, W)], lambda n: 2 * n * 197 * W * W),
    Row('mul.Tensor', 2, (8, 32), lambda n: [T(n, *VIT), T(768)]),
    Row('expand', 0, (8, 32), lambda n: [T(1, 1, 768), [n, 197, 768]]),
    Row('bmm', 4, (4, 16), lambda n: [T(n * 12, 197, 64), T(n * 12, 64, 197)], lambda n: 2 * n * 12 * 197 * 197 * 64),
    Row('convolution', 4, (1, 4), lambda n: [T(n, 64, 56, 56), T(64, 64, 3, 3), None, [1, 1], [1, 1], [1, 1], False,
                                             [0, 0], 1], lambda n: 2 * n * 64 * 64 * 9 * 56 * 56),
    Row('_softmax', 2, (2, 8), lambda n: [T(n, *HEADS), -1, False]),
    Row('mean.dim', 2, (8, 32), lambda n: [T(n, 512, 14, 14), [2, 3]]),
    Row('native_layer_norm', 2, (8, 32), lambda n: [T(n, *VIT), [768], T(768), T(768), 1e-5]),
    Row('where.self', 2, (2, 8), lambda n: [T(n, 1, 197, 197, dtype='b8'), T(n, *HEADS), T()]),
    Row('unsqueeze', 0, (8, 32), lambda n: [T(n, *VIT), 1]),
    Row('slice.Tensor', 0, (8, 32), lambda n: [T(n, *VIT), 1, 0, 100]),
    Row('cat', 2, (8, 32), lambda n: [[T(n, 256, 28, 28), T(n, 128, 28, 28)], 1]),
    Row('gelu', 2, (2, 8), lambda n: [T(n, 197, 3072)]),
    Row('arange.start_step', 2, (1 << 16, 1 << 18), lambda n: [0, n, 1]),
    Row('eq.Scalar', 2, (8, 32), lambda n: [T(n, *VIT), 0]),
    Row('full_like', 2, (8, 32), lambda n: [T(n, *VIT), 0]),
    Row('mul.Scalar', 2, (8, 32), lambda n: [T(n, *VIT), 0.125]),
    Row('logical_not', 2, (8, 32), lambda n: [T(n, 1, 512, 512, dtype='b8')]),
    Row('any.dim', 2, (8, 32), lambda n: [T(n, 1, 512, 512, dtype='b8'), -1]),
    Row('embedding', 2, (8, 32), lambda n: [T(30522, 768), T(n, 128, dtype='i64')]),
    Row('_native_batch_norm_legit_no_training', 2, (2, 8), lambda n: [T(n, 64, 56, 56), T(64), T(64), T(64), T(64), 0.1,
                                                                     1e-5]),
    Row('relu', 2, (4, 16), lambda n: [T(n, 64, 56, 56)]),
    Row('sigmoid', 2, (4, 16), lambda n: [T(n, 64, 56, 56)]),
    Row('tanh', 2, (2, 8), lambda n: [T(n, 197, 3072)]),
    Row('exp', 2, (2, 8), lambda n: [T(n, 197, 3072)]),
]


def tensors(v):
    return [t for x in v for t in (tensors(x) if isinstance(x, list) else [x] if isinstance(x, T) else [])]


def replaced(v, f):
    return [replaced(x, f) if isinstance(x, list) else f(x) if isinstance(x, T) else x for x in v]


def target_of(row):
    return row.name if '.' in row.name else row.name + '.default'


def graph_text(row, args):
    lines, names = ['graph bench {'], {}
    for i, t in enumerate(tensors(args)):
        names[t] = '%%x%d' % i
        lines.append('  %s: %s = placeholder "x%d" user' % (names[t], t.text(), i))
    values = replaced(args, names.get)
    if row.first:
        lines.append('  %%y = aten.permute.default(%s, [0, 2, 1, 3])' % values[0])
        values[0] = '%y'
    values = ', '.join(map(written, values))
    if row.name == 'clone':
        values += ', memory_format=format(contiguous)'
    lines += ['  %%r = aten.%s(%s)' % (target_of(row), values), '  output(%s)' % ('%r' if row.limit else '%r'), '}']
    if row.name in ('native_layer_norm', '_native_batch_norm_legit_no_training'):
        lines[-2:] = ['  %g = <built-in function getitem>(%r, 0)', '  output(%g)', '}']
    return '\n'.join(lines) + '\n'


class Ours:
    def __init__(self, path):
        self.p = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, text):
        self.p.stdin.write(text)
        self.p.stdin.flush()
        return self.p.stdout.readline().strip()

    def load(self, row, args):
        said = self.ask('graph\n' + graph_text(row, args))
        if said != 'ok':
            sys.exit('%s: %s' % (row.name, said))

    def time(self, runs):
        return float(self.ask('run %d\n' % runs)) / 1e3


class Theirs:
    def load(self, row, args):
        made = {}
        values = replaced(args, lambda t: made.setdefault(t, t.make()))
        kwargs = {}
        if row.first:
            values[0] = values[0].permute(0, 2, 1, 3)
            kwargs = {'memory_format': torch.contiguous_format}
        name, _, overload = target_of(row).partition('.')
        op = getattr(getattr(torch.ops.aten, name), overload)
        self.call = lambda: op(*values, **kwargs)

    def time(self, runs):
        times = []
        for _ in range(runs):
            begin = time.perf_counter_ns()
            self.call()
            times.append(time.perf_counter_ns() - begin)
        return statistics.median(times) / 1e3


def measure(row, n, sides):
    args = row.args(n)
    medians = [[] for _ in sides]
    for side in sides:
        side.load(row, args)
    runs = max(3, min(300, int(60e3 / max(1.0, min(s.time(3) for s in sides)) / TURNS)))
    for _ in range(TURNS):
        for k, side in enumerate(sides):
            time.sleep(0.003)  # the other side's threads have gone to sleep
            side.time(1)
            medians[k].append(side.time(runs))
    return [min(m) for m in medians]


def growth_of(times):
    """How much faster our time grows than theirs from the first size to the last; None without theirs."""
    first, last = times[0], times[-1]
    return (last[0] / first[0]) / (last[1] / first[1]) if len(first) == 2 else None


def over(row, times):
    """The sizes at which the row is over a limit."""
    if len(times[0]) < 2:
        return []
    if not row.limit:
        return [k for k, t in enumerate(times) if t[0] > max(2 * t[1], 3 * times[0][0])]
    bad = {k for k, t in enumerate(times) if t[0] / t[1] > row.limit}
    return sorted(bad | ({len(times) - 1} if growth_of(times) > NOISE else set()))


def print_row(row, n, t, growth, machine, is_bad):
    args, (bandwidth, peak) = row.args(n), machine
    moved = sum(x.bytes() for x in tensors(args)) + (max((x.bytes() for x in tensors(args)), default=8 * n))
    floor = max(moved / bandwidth, row.flops(n) / peak if row.flops else 0) * 1e6 if row.limit else 0
    theirs = len(t) == 2
    print('%-38s %8d %10.1f %10s %6s %7s %10.1f %9s%s' % (
        row.name, n, t[0], '%.1f' % t[1] if theirs else '-', '%.2f' % (t[0] / t[1]) if theirs else '-',
        '%.2f' % growth if growth else '', floor, '%.1f' % (t[0] / floor) if floor else '',
        '  OVER' if is_bad else ''), flush=True)


def main():
    ours = Ours(sys.argv[1])
    only = sys.argv[2:]
    sides = [ours] + ([Theirs()] if torch else [])
    if torch:
        torch.set_num_threads(THREADS)
        torch.set_grad_enabled(False)
    else:
        print('PyTorch is not importable (PYTHON=... names a Python that has it): ours alone, no limit is checked')
    bandwidth, peak = float(ours.ask('bandwidth\n')), float(ours.ask('peak\n'))
    print('%d threads, %.0f GB/s, %.0f GFLOP/s%s' % (THREADS, bandwidth / 1e9, peak / 1e9,
                                                   ', PyTorch ' + torch.__version__ if torch else ''))
    print('%-38s %8s %10s %10s %6s %7s %10s %9s' % (
        'row', 'batch', 'ours us', 'torch us', 'ratio', 'growth', 'floor us', 'distance'))
    bad = 0
    for row in ROWS:
        if only and row.name not in only:
            continue
        times = [measure(row, n, sides) for n in row.batches]
        for _ in range(ROUNDS - 1):
            if not over(row, times):
                break
            again = [measure(row, n, sides) for n in row.batches]
            times = [[min(pair) for pair in zip(*both)] for both in zip(times, again)]
        worst = over(row, times)
        bad += len(worst)
        for k, n in enumerate(row.batches):
            print_row(row, n, times[k], growth_of(times) if k else None, (bandwidth, peak), k in worst)
    print('%d over a limit' % bad if torch else 'no limit was checked')
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
