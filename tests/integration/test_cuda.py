#!/usr/bin/env python3
"""Programs that were built with CUDA, on a machine where no GPU can be used."""

import subprocess
import sys

from harness import BUILD, COORDINATOR, REPLICA, SHARD, Skip, dml, main, run, small_job, test, train, words

NO_GPU = 'no GPU: '


def why_no_gpu():
    """What the programs say of it."""
    if '#define HAVE_CUDA' not in (BUILD / 'config.h').read_text():
        raise Skip('this build is without CUDA')
    line = run(REPLICA, '--devices').stdout.strip()
    if not line.startswith(NO_GPU):
        raise Skip('there is a GPU')
    return line[len(NO_GPU):]


@test
def where_there_is_no_gpu_each_replica_says_so_once_and_the_processor_computes(folder):
    why = why_no_gpu()
    job = small_job(folder, l2=1e-3)
    expected = train(job, '--fresh', '--set', 'device=cpu')
    trained = dml('run', job, '--fresh', '--json', '-v', *words({'device': 'auto', 'replicas': 2}))
    assert trained.json['model_sha256'] == expected['model_sha256'], trained
    assert {row['device'] for row in trained.json['devices']} == {'cpu'}, trained
    said = [line for line in trained.stderr.splitlines() if why in line]
    assert len(said) == 2 and all('replica debug' in line for line in said), trained


@test
def programs_need_no_library_of_cuda_and_none_of_c_plus_plus(folder):
    for program in REPLICA, SHARD, COORDINATOR:
        needed = subprocess.run(['ldd', program], capture_output=True, text=True).stdout
        assert not any(name in needed for name in ('cuda', 'libstdc++')), needed


if __name__ == '__main__':
    sys.exit(main())
