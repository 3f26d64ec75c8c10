#!/usr/bin/env python3
"""Runs seeds of the simulator, in as many processes as there are processors, and its mutants.

    test_sim.py [FIRST-LAST]

With a range (make check-sim SEEDS=FIRST-LAST) only that is run.
"""

import os
import pathlib
import resource
import subprocess
import sys

BUILD = pathlib.Path(os.environ.get('DML_BUILD') or '.')
SOURCE = pathlib.Path(os.environ.get('DML_SOURCE') or '.')
SIM = str(BUILD / 'tests/sim/sim')
SEEDS = '1-2000'
PIECE = 500
# Of any one process. Hundreds of runs in a row show what a run does not give back: memory that was
# mapped too, of which a leak checker knows nothing.
MEMORY_KIB_MAX = 131072


def pieces(seeds):
    """The range in pieces, each a range itself."""
    first, last = (int(part) for part in seeds.split('-'))
    return [f'{start}-{min(start + PIECE - 1, last)}' for start in range(first, last + 1, PIECE)]


def run_all(commands):
    """Runs the commands, some at a time; answers what they printed, and how many failed."""
    waiting, running, texts, failed = list(commands), [], [], 0
    while waiting or running:
        while waiting and len(running) < len(os.sched_getaffinity(0)):
            running.append(subprocess.Popen([SIM, *waiting.pop(0)], stdout=subprocess.PIPE,
                                            text=True))
        process = running.pop(0)
        texts.append(process.communicate()[0])
        failed += process.returncode != 0
    return texts, failed


def main():
    only = sys.argv[1] if len(sys.argv) > 1 else None
    seeds = only or SEEDS
    cases = [(f'seeds {seeds} come to the fault-free model, each example counted once',
              [['--seeds', piece] for piece in pieces(seeds)])]
    if not only:
        cases.append(('seeds that once failed do not fail again',
                      [['--file', str(SOURCE / 'tests/sim/regression-seeds.txt')]]))
        cases.append(('every deliberate bug in the protocol is found out',
                      [['--mutants', SEEDS]]))
    print(f'1..{len(cases) + 1}')
    worst = 0
    for number, (name, commands) in enumerate(cases, 1):
        texts, failed = run_all(commands)
        for text in texts:
            for line in text.splitlines():
                print(line if line.startswith('#') else f'# {line}')
        print(f'{"not ok" if failed else "ok"} {number} - {name}', flush=True)
        worst = worst or failed
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(f'{"ok" if most <= MEMORY_KIB_MAX else "not ok"} {len(cases) + 1} - '
          f'runs give their memory back: {most} KiB at most')
    worst = worst or most > MEMORY_KIB_MAX
    return 1 if worst else 0


if __name__ == '__main__':
    sys.exit(main())
