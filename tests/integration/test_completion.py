#!/usr/bin/env python3
"""What bash completes is what the program takes."""

import os
import re
import shutil
import sys

from harness import BUILD, SOURCE, Skip, dml, main, run, test

SCRIPT = '''
source "$1"; shift
read -r COMP_WORDBREAKS <<< "$BREAKS"
COMP_WORDS=("$@")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_dml_coordinator
[ ${#COMPREPLY[@]} = 0 ] || printf '%s\\n' "${COMPREPLY[@]}"
'''


def complete(folder, *words, breaks='"\'><=;|&(:'):
    """What bash would offer in place of the last word, which it has parted from the others."""
    if not shutil.which('bash'):
        raise Skip('bash is not installed')
    finished = run('bash', '--norc', '-c', SCRIPT, 'bash', SOURCE / 'completion/dml-coordinator',
                   'dml-coordinator', *words, cwd=folder, BREAKS=breaks,
                   PATH=f'{BUILD}:{os.environ["PATH"]}')
    assert finished.status == 0 and finished.stderr == '', finished
    return finished.stdout.splitlines()


def options_of_help(command):
    return re.findall(r'^ +(?:-\w, +)?(--[a-z][a-z-]*)', dml(command, '--help').stdout, re.M)


@test
def commands_are_those_of_the_help(folder):
    commands = re.findall(r'^  ([a-z]+)\b', dml('--help').stdout, re.M)
    assert len(commands) > 9 and complete(folder, '') == commands
    assert complete(folder, 'ins') == ['inspect'] and complete(folder, 'zzz') == []
    assert 'run' in complete(folder, '--json', '')


@test
def options_are_those_of_the_command(folder):
    for command in complete(folder, ''):
        offered = complete(folder, command, '--')
        assert sorted(offered) == sorted(options_of_help(command)), command
    assert complete(folder, 'status', '--w') == ['--watch']
    assert complete(folder, 'run', '--wat') == []
    assert complete(folder, 'export', '--fo') == ['--format']


@test
def set_takes_the_keys_and_the_values_of_the_job_file(folder):
    keys = re.findall(r'^  ([a-z][\w.]*) ', dml('check', '--help').stdout.split('Keys of')[1], re.M)
    assert len(keys) > 30 and complete(folder, 'run', '--set', '') == [key + '=' for key in keys]
    assert complete(folder, 'run', '--set', 'gradient_t') == ['gradient_tolerance=']
    objectives = complete(folder, 'run', '--set', 'objective', '=')
    assert objectives[:3] == ['logistic', 'squared', 'softmax'], objectives
    assert complete(folder, 'run', '--set', 'objective', '=', 's') == \
        [name for name in objectives if name.startswith('s')]
    assert complete(folder, 'run', '--set', 'intercept', '=', 'f') == ['false']
    assert complete(folder, 'run', '--set', 'history', '=') == ['auto']
    assert complete(folder, 'run', '--set', 'device', '=') == ['auto', 'cpu', 'cuda', 'emulated']
    assert complete(folder, 'run', '--set', '=', 'history_type', '=', 'd') == ['double']
    # Where bash does not part words at `=`, it replaces the whole word.
    assert complete(folder, 'run', '--set', 'csv.header=y', breaks='"') == ['csv.header=yes']


@test
def formats_are_completed_in_both_spellings(folder):
    assert complete(folder, 'export', '--format', '') == ['liblinear', 'tsv', 'json', 'onnx']
    assert complete(folder, 'export', '--format', '=', 't') == ['tsv']
    assert complete(folder, 'export', '--format=t', breaks='"') == ['--format=tsv']


@test
def paths_are_of_the_kind_that_the_command_takes(folder):
    for name in 'adult job.conf', 'a9a.gz', 'adult:x.conf':
        (folder / name).write_text('')
    for name in 'adult.state', 'jobs':
        (folder / name).mkdir()
    assert set(complete(folder, 'run', '')) == {
        'adult job.conf', 'adult:x.conf', 'adult.state', 'jobs'}
    assert complete(folder, 'run', 'adult', ':', 'x') == ['x.conf']
    assert complete(folder, 'run', 'one.conf', '') == []
    assert set(complete(folder, 'run', '--state', '')) == {'adult.state', 'jobs'}
    assert complete(folder, 'run', '--state', '=', 'ad') == ['adult.state']
    assert set(complete(folder, 'inspect', 'j')) == {'jobs'}
    assert set(complete(folder, 'predict', 'adult.state', 'a')) == {
        'adult job.conf', 'a9a.gz', 'adult:x.conf', 'adult.state'}
    assert complete(folder, 'export', '-o', 'a9') == ['a9a.gz']


sys.exit(main())
