#!/usr/bin/env python3
"""What the surroundings of a program take from it: memory, the size of files, a full disk behind
standard output, closed descriptors."""


import pathlib
import shutil
import subprocess
import sys

from harness import BUILD, COORDINATOR, Process, Skip, dml, endless_job, main, small_job, test, train, write_job

PROGRAMS = 'dml-coordinator', 'dml-shard', 'dml-replica'
NOT_OF_WORKERS = 'sqlite', 'confuse'


def under(limits, *command):
    """The command as a shell runs it after `limits`."""
    return Process(*command, prefix=('bash', '-c', f'{limits} exec "$@"', 'bash')).wait(60)


@test
def a_limit_of_memory_hangs_no_program(folder):
    for kib in 80000, 120000, 150000, 200000:
        for program in PROGRAMS:
            told = under(f'ulimit -v {kib};', BUILD / program, '--version')
            assert told.status == 0, (kib, told)


@test
def too_little_memory_to_train_in_is_named(folder):
    for kib in 40000, 70000:
        refused = under(f'ulimit -v {kib};', COORDINATOR, 'run', small_job(folder))
        assert refused.status == 69, refused
        assert 'ulimit -v' in refused.stderr, refused


@test
def a_worker_without_enough_memory_ends_the_run_with_what_it_takes(folder):
    wide = small_job(folder, objective='network', network={'layers': [3000, 1000]},
                     shards=1, replicas=1, threads=1)
    needs = dml('pack', wide, '--json').json['memory_bytes']
    assert needs['all'] > needs['shard'] > needs['replica'] > 1e8, needs
    told = dml('check', wide).stdout
    assert '# memory: about ' in told and 'replica' in told, told
    ended = under('ulimit -v 400000;', COORDINATOR, 'run', wide)
    assert ended.status == 69, ended
    assert 'ended for lack of memory: about ' in ended.stderr, ended
    assert '410 MB allowed (ulimit -v)' in ended.stderr, ended
    assert ended.stderr.count('dml: out of memory') <= 2, ended  # of both workers
    assert 'was lost' not in ended.stderr, ended


@test
def a_small_job_is_trained_in_little_memory(folder):
    free = train(small_job(folder))
    tight = under('ulimit -v 150000;', COORDINATOR, 'run', '--fresh', '--json', small_job(folder))
    assert tight.status == 0, tight
    assert tight.json['model_sha256'] == free['model_sha256'], tight


@test
def no_program_loads_more_than_it_uses(folder):
    """Each library costs milliseconds before main(); OpenBLAS would start threads, too."""
    for program in PROGRAMS:
        loaded = Process(BUILD / program, LD_TRACE_LOADED_OBJECTS='1').wait().stdout
        assert 'libc.so' in loaded, loaded
        for strange in 'blas', 'lapack', *(() if program == PROGRAMS[0] else NOT_OF_WORKERS):
            assert strange not in loaded, (program, loaded)


@test
def a_file_that_may_not_grow_is_an_error_of_input_and_output(folder):
    for blocks in 8, 40, 60:
        refused = under(f'ulimit -f {blocks};', COORDINATOR, 'run', '--fresh', small_job(folder))
        assert refused.status == 74, (blocks, refused)
        assert refused.stderr.strip(), refused


@test
def a_result_that_cannot_be_written_is_an_error_of_every_command(folder):
    job = small_job(folder)
    train(job)
    model, data = folder / 'job.state/models/current', folder / 'small.libsvm'
    commands = [('--version',), ('--help',), ('run', job), ('run', '--json', '--fresh', job),
                ('run', '-n', job), ('check', job), ('status', job), ('status', '--json', job),
                ('jobs', folder / 'job.state'), ('jobs', '--json', folder / 'job.state'),
                ('predict', model, data), ('evaluate', model, data),
                ('evaluate', '--json', model, data), ('export', model, '--format', 'tsv'),
                ('complete', '--', 'dml-coordinator', '')]
    for command in commands:
        whole = dml(*command)
        assert whole.status == 0 and whole.stdout, whole
        full = under('exec >/dev/full;', COORDINATOR, *command)
        assert full.status == 74, full
        assert 'cannot write' in full.stderr, full
    for program in PROGRAMS[1:]:
        for option in '--help', '--version', '--list-failpoints':
            full = under('exec >/dev/full;', BUILD / program, option)
            assert full.status == 74, full


@test
def with_closed_descriptors_log_lines_go_into_no_file(folder):
    job = small_job(folder)
    for closed in '2>&-', '<&- >&- 2>&-':
        finished = under(f'exec {closed};', COORDINATOR, 'run', '--fresh', '--verbose', job)
        assert finished.status == 0, finished
        lock = (folder / 'job.state/lock').read_bytes()
        assert b'info' not in lock and b'debug' not in lock, lock
    assert dml('status', job).status == 0


@test
def a_stack_that_is_too_small_is_raised_or_named(folder):
    expected = train(small_job(folder))['model_sha256']
    low = under('ulimit -Ss 128;', COORDINATOR, 'run', '--fresh', '--json', small_job(folder))
    assert low.status == 0 and low.json['model_sha256'] == expected, low
    for program in PROGRAMS:
        refused = under('ulimit -s 128;', BUILD / program, '--version')
        assert refused.status == 69 and 'ulimit -s' in refused.stderr, refused


@test
def the_path_of_a_state_folder_that_is_too_long_is_named_before_anything_is_made(folder):
    deep = folder / '/'.join(['d' * 100] * 5)
    refused = dml('run', small_job(folder), '--state', deep / 'job.state')
    assert refused.status == 73 and 'the path of the state folder has' in refused.stderr, refused
    assert not (folder / ('d' * 100)).exists()
    short = folder / ('d' * 100) / ('d' * 100)
    short.mkdir(parents=True)
    train(small_job(folder), '--state', short / 'job.state')


@test
def where_memory_runs_out_the_system_takes_workers_before_their_coordinator(folder):
    process = Process(COORDINATOR, 'run', endless_job(folder))
    try:
        process.until(lambda: 'step' in process.so_far(process.errors), 'it trains')
        score = {pid: int(pathlib.Path(f'/proc/{pid}/oom_score_adj').read_text())
                 for pid in process.survivors()}
        own = score.pop(process.pid)
        assert score and all(other > own for other in score.values()), (own, score)
    finally:
        process.end()


# Fails one request for memory of one program, or all from that one on, whichever library makes it.
SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static atomic_long count;
static long first;
static int ready;

static void report(void) {
    char text[32];
    int length = snprintf(text, sizeof text, "%ld", (long)count), file = creat(getenv("WANT_COUNT"), 0600);
    _exit(write(file, text, length) == length ? 0 : 1);
}

__attribute__((constructor)) static void begin(void) {
    ready = !strcmp(getenv("WANT_OF"), program_invocation_short_name);
    first = atol(getenv("WANT_AT"));
    if (ready && !first)
        atexit(report);
}

static int fails(void) {
    long number = ready ? atomic_fetch_add(&count, 1) + 1 : 0;
    int failed = first && ready && (getenv("WANT_ONCE") ? number == first : number >= first);
    errno = failed ? ENOMEM : errno;
    return failed;
}

#define NEXT(name, ...)                                                                                      \
    static void *(*next)(__VA_ARGS__);                                                                       \
    if (!next)                                                                                               \
        next = (void *(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name);
void *__libc_malloc(size_t size) {
    NEXT("__libc_malloc", size_t)
    return fails() ? NULL : next(size);
}
void *__libc_calloc(size_t items, size_t size) {
    NEXT("__libc_calloc", size_t, size_t)
    return fails() ? NULL : next(items, size);
}
void *__libc_realloc(void *old, size_t size) {
    NEXT("__libc_realloc", void *, size_t)
    return size && fails() ? NULL : next(old, size);
}
void *aligned_alloc(size_t alignment, size_t size) {
    NEXT("aligned_alloc", size_t, size_t)
    return fails() ? NULL : next(alignment, size);
}
"""


@test
def want_of_memory_is_told_by_every_command_and_of_every_worker(folder):
    compiler = shutil.which('cc') or shutil.which('gcc')
    if not compiler or any(name in COORDINATOR.read_bytes() for name in (b'__asan_', b'__tsan_', b'__msan_')):
        raise Skip('there is no C compiler, or the programs are built with a sanitizer')
    (folder / 'shim.c').write_text(SHIM)
    subprocess.run([compiler, '-shared', '-fPIC', '-o', folder / 'shim.so', folder / 'shim.c', '-ldl'], check=True)
    rows = [(i % 7, f't{i % 5}', (i * 7 + i // 3) % 2) for i in range(60)]
    (folder / 'rows.csv').write_text('a,town,y\n' + ''.join(f'{a},{town},{y}\n' for a, town, y in rows))
    (folder / 'more.jsonl').write_text(''.join(f'{{"a": {a}, "town": "{town}", "y": {y}}}\n' for a, town, y in rows))
    job, state = write_job(folder, data=['rows.csv'], holdout=['more.jsonl'], shards=1, replicas=1), folder / 'job.state'
    run = 'run', job, '--fresh'
    assert dml(*run).status == 0
    commands = [('status', job), ('check', job), ('predict', state, folder / 'rows.csv'), ('jobs', state),
                ('evaluate', state, folder / 'more.jsonl', '--json'), ('init', folder / 'rows.csv', '-o', '-'),
                ('pack', job), ('export', state, '--format', 'tsv'), run]
    for program, command, places in [*(('dml-coordinator', command, 9) for command in commands),
                                     ('dml-shard', run, 5), ('dml-replica', run, 5)]:
        shim = {'LD_PRELOAD': str(folder / 'shim.so'), 'WANT_OF': program, 'WANT_COUNT': str(folder / 'count')}
        dml(*command, WANT_AT='0', **shim)
        wanted = int((folder / 'count').read_text()) if (folder / 'count').exists() else 200
        (folder / 'count').unlink(missing_ok=True)
        for place in range(places):
            at = str(1 + wanted * place // places)
            for once in {}, {'WANT_ONCE': 'yes'}:
                process = Process(COORDINATOR, *command, WANT_AT=at, **shim, **once)
                told = process.wait()
                assert process.deserted(), told  # as after a kill, workers see by themselves that they are alone
                # A worker makes as many requests as there are messages: it may be at its end by then, or want none.
                late = once and program != 'dml-coordinator' and told.status == 0
                assert late or told.status == 69, (program, at, once, str(told))
                assert late or 'out of memory' in told.stderr or 'lack of memory' in told.stderr, (program, at, once, str(told))


if __name__ == '__main__':
    sys.exit(main())
