#!/usr/bin/env python3
"""Runs seeds of the simulator, in as many processes as there are processors, and its mutants.

    test_sim.py [FIRST-LAST]

With a range (make check-sim SEEDS=FIRST-LAST) only that is run. A mutant is first tried with the seed
that found it last, by mutant-seeds.txt; where that finds it no more, with one seed after another.
"""

import os
import pathlib
import re
import resource
import subprocess
import sys

BUILD = pathlib.Path(os.environ.get('DML_BUILD') or '.')
SOURCE = pathlib.Path(os.environ.get('DML_SOURCE') or '.')
SIM = str(BUILD / 'tests/sim/sim')
SEEDS = '1-400'
MUTANT_SEEDS = '1-4000'  # until one finds the bug
PIECE = 200
# Of any one process. Hundreds of runs in a row show what a run does not give back: memory that was
# mapped too, of which a leak checker knows nothing.
MEMORY_KIB_MAX = 131072


def pieces(seeds):
    """The range in pieces, each a range itself."""
    first, last = (int(part) for part in seeds.split('-'))
    return [f'{start}-{min(start + PIECE - 1, last)}' for start in range(first, last + 1, PIECE)]


def run_all(commands):
    """Runs the commands, some at a time; answers what each printed, and whether it failed."""
    waiting, running, ends = list(commands), [], []
    while waiting or running:
        while waiting and len(running) < len(os.sched_getaffinity(0)):
            running.append(subprocess.Popen([SIM, *waiting.pop(0)], stdout=subprocess.PIPE,
                                            text=True))
        process = running.pop(0)
        ends.append((process.communicate()[0], process.returncode != 0))
    return ends


def mutants():
    """Their names."""
    return re.findall(r'^    X\((\w+),', (SOURCE / 'base/mutant.h').read_text(), re.M)


def run_mutants():
    """As run_all(), for each mutant. A seed that was not known yet is said."""
    text = (SOURCE / 'tests/sim/mutant-seeds.txt').read_text()
    known = dict(re.findall(r'^(\w+) (\d+)$', text, re.M))
    tried = [name for name in mutants() if name in known]
    ends = dict(zip(tried, run_all([['--mutant', name, '--mutants', f'{known[name]}-{known[name]}']
                                    for name in tried])))
    missed = [name for name in mutants() if name not in ends or ends[name][1]]
    found = run_all([['--mutant', name, '--mutants', MUTANT_SEEDS] for name in missed])
    for name, (text, failed) in zip(missed, found):
        by = re.search(r'seed (\d+)', text)
        ends[name] = text + (f'# mutant-seeds.txt would be up to date with: {name} {by[1]}\n'
                             if by else ''), failed
    return list(ends.values())


def main():
    only = sys.argv[1] if len(sys.argv) > 1 else None
    seeds = only or SEEDS
    cases = [(f'seeds {seeds} come to the fault-free model, each example counted once',
              lambda: run_all([['--seeds', piece] for piece in pieces(seeds)]))]
    if not only:
        cases.append(('seeds that once failed do not fail again',
                      lambda: run_all([['--file', str(SOURCE / 'tests/sim/regression-seeds.txt')]])))
        cases.append(('every deliberate bug in the protocol is found out', run_mutants))
    print(f'1..{len(cases) + 1}')
    worst = 0
    for number, (name, behaviour) in enumerate(cases, 1):
        ends = behaviour()
        for text, _ in ends:
            for line in text.splitlines():
                print(line if line.startswith('#') else f'# {line}')
        failed = any(end[1] for end in ends)
        print(f'{"not ok" if failed else "ok"} {number} - {name}', flush=True)
        worst = worst or failed
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(f'{"ok" if most <= MEMORY_KIB_MAX else "not ok"} {len(cases) + 1} - '
          f'runs give their memory back: {most} KiB at most')
    worst = worst or most > MEMORY_KIB_MAX
    return 1 if worst else 0


if __name__ == '__main__':
    sys.exit(main())
