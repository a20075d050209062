"""TAP for Python tests: report(ok, name, lines) for each test, plan() at the end."""
import sys

_count = 0


def report(ok, name, lines=()):
    """One result; lines (shown when it failed) say what was found."""
    global _count
    _count += 1
    print(f"{'ok' if ok else 'not ok'} {_count} - {name}")
    if not ok:
        for line in lines:
            print(f"# {line}")
    sys.stdout.flush()


def skip(name, why):
    global _count
    _count += 1
    print(f"ok {_count} # SKIP {name}: {why}")


def plan():
    print(f"1..{_count}")
