#!/usr/bin/env python3
"""Programs that were built with CUDA, on a machine where no GPU can be used."""

import random
import subprocess
import sys

from harness import BUILD, COORDINATOR, REPLICA, SHARD, Skip, dml, main, run, test, train, write_job

NO_GPU = 'no GPU: '


def why_no_gpu():
    """What the programs say of it."""
    if '#define HAVE_CUDA' not in (BUILD / 'config.h').read_text():
        raise Skip('this build is without CUDA')
    line = run(REPLICA, '--devices').stdout.strip()
    if not line.startswith(NO_GPU):
        raise Skip('there is a GPU')
    return line[len(NO_GPU):]


def worthwhile_job(folder):
    """Work that `auto` would give a GPU: its size counts, and not how long it takes."""
    rng = random.Random(1)
    rows = [[rng.randrange(-9, 10) for _ in range(100)] + [row % 101] for row in range(1100)]
    (folder / 'data.csv').write_text(''.join(','.join(map(str, row)) + '\n' for row in rows))
    return write_job(folder, data=['data.csv'], objective='softmax', max_steps=2)


@test
def where_there_is_no_gpu_a_replica_says_so_once_and_the_processor_computes(folder):
    why = why_no_gpu()
    job = worthwhile_job(folder)
    expected = train(job, '--fresh', '--set', 'device=cpu')
    trained = dml('run', job, '--fresh', '--json', '-v', '--set', 'device=auto')
    assert trained.json['model_sha256'] == expected['model_sha256'], trained
    assert {row['device'] for row in trained.json['devices']} == {'cpu'}, trained
    said = [line for line in trained.stderr.splitlines() if why in line]
    assert len(said) == 1 and 'replica debug' in said[0], said


@test
def programs_need_no_library_of_cuda_and_none_of_c_plus_plus(folder):
    for program in REPLICA, SHARD, COORDINATOR: # what libraries of others need, as Snappy's, is theirs
        dynamic = subprocess.run(['readelf', '-d', program], capture_output=True, text=True, check=True).stdout
        needed = [line for line in dynamic.splitlines() if 'NEEDED' in line]
        assert needed and not any(name in line for line in needed for name in ('cuda', 'libstdc++')), needed


if __name__ == '__main__':
    sys.exit(main())
