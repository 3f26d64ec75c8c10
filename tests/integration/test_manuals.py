#!/usr/bin/env python3
"""The manual pages are sound and say what the programs say."""

import re
import shutil
import subprocess
import sys

from harness import BUILD, SOURCE, Skip, dml, main, run, small_data, test, write_job

PAGES = {page.name: page for page in sorted((SOURCE / 'man').glob('*.[1357]'))}


@test
def the_pages_have_no_mandoc_warnings(folder):
    if not shutil.which('mandoc'):
        raise Skip('mandoc is not installed')
    lint = run('mandoc', '-Tlint', '-W', 'warning', *PAGES.values())
    assert lint.status == 0 and not lint.stdout, lint


@test
def the_tables_of_messages_are_those_of_the_code(folder):
    checked = run(sys.executable, SOURCE / 'doc/messages.py', '--check')
    assert checked.status == 0, checked


def options_of_page(name):
    return set(re.findall(r'\bFl Fl ([a-z][a-z-]*)', PAGES[name].read_text()))


def options_of_help(program):
    """Long options as --help lists them, those of single commands included."""
    texts = [run(BUILD / program, '--help').stdout]
    if program == 'dml-coordinator':
        texts += [dml(command, '--help').stdout for command in commands_of_help()]
    return {option for text in texts
            for option in re.findall(r'^ +(?:-\w, +)?--([a-z][a-z-]*)', text, re.M)}


def commands_of_help():
    return re.findall(r'^  ([a-z]+)\b', dml('--help').stdout, re.M)


@test
def every_long_option_is_in_the_help_and_on_the_page(folder):
    for program in 'dml-coordinator', 'dml-shard', 'dml-replica':
        page, help_text = options_of_page(f'{program}.1'), options_of_help(program)
        assert page == help_text, f'{program}: only on the page {page - help_text}, ' \
                                  f'only in --help {help_text - page}'


@test
def every_command_is_in_the_help_and_on_the_page(folder):
    page = set(re.findall(r'^\.It Cm ([a-z]+)', PAGES['dml-coordinator.1'].read_text(), re.M))
    said = set(commands_of_help())
    assert page == said, f'only on the page {page - said}, only in --help {said - page}'


@test
def every_command_is_in_the_synopsis(folder):
    page = PAGES['dml-coordinator.1'].read_text()
    synopsis = page.split('.Sh SYNOPSIS')[1].split('.Sh DESCRIPTION')[0]
    named = {word for line in re.findall(r'^\.Cm (.*)', synopsis, re.M) for word in re.findall('[a-z]+', line)}
    assert named == set(commands_of_help()), named ^ set(commands_of_help())


@test
def words_of_a_list_have_quotes_of_their_own(folder):
    for name, page in PAGES.items():  # Ql quotes all of its line
        lists = re.findall(r'^\.(?:It )?Ql [\w:]+(?: \w+)? , \w.*', page.read_text(), re.M)
        assert not lists, (name, lists)


@test
def options_of_the_pages_have_both_their_dashes(folder):
    for name, page in PAGES.items():
        lone = re.findall(r'^\..*\bFl Fl [a-z-]+ \| [a-z].*', page.read_text(), re.M)
        assert not lone, (name, lone)


def keys_of_page():
    """Key to default as the page has them; None where it gives no fixed one."""
    keys = {}
    for item in re.split(r'^\.It Ic ', PAGES['dml.conf.5'].read_text(), flags=re.M)[1:]:
        default = re.search(r'^Default: (\S+?)[.,;]?(?:\s|$)|^Default:\n\.Cm \\&(,)', item, re.M)
        keys[item.split()[0]] = default and (default[1] or default[2])
    return keys


@test
def every_key_is_on_the_page_with_its_default(folder):
    small_data(folder)
    keys = keys_of_page()
    objectives = re.findall(r'^\.It Cm (\w+)$', PAGES['dml.conf.5'].read_text(), re.M)
    settings = {}
    library = folder / 'library.so'
    subprocess.run(['cc', f'-I{SOURCE}', '-shared', '-fPIC', '-o', library,
                    SOURCE / 'tests/unit/plugin_library.c'], check=True)
    for objective in [*objectives, 'logistic']:  # a job has the parameters of its own objective only
        plugin = {'plugin': {'library': library}} if objective == 'plugin' else {}
        start = 'zero' if objective == 'proportional_odds' else 'downpour'  # which refuses the other
        settings |= dml('check', write_job(folder, data=['small.libsvm'], objective=objective,
                                           start=start, **plugin), '--json').json
    settings['start'] = 'zero'
    settings |= {'plugin.library': None, 'plugin.sha256': None}  # of which there is no default
    assert set(settings) == set(keys), set(settings) ^ set(keys)
    for key, default in keys.items():
        value = settings[key]
        if default is None:
            assert key in ('name', 'state', 'data') or value in (None, []), (key, value)
        elif isinstance(value, bool) or isinstance(value, str):
            assert default == str(value).lower(), (key, default, value)
        else:
            assert float(default) == (value[0] if isinstance(value, list) else value), key


@test
def what_the_job_for_slurm_asks_for_is_on_its_page(folder):
    asked = re.findall(r'^#SBATCH --([a-z-]+)', (SOURCE / 'examples/train.sbatch').read_text(), re.M)
    explained = {word for line in re.findall(r'^\.(?:It|Pq) (Fl Fl .*)', PAGES['dml-cluster.7'].read_text(), re.M)
                 for word in re.findall(r'Fl Fl ([a-z-]+)', line)}
    cosmetic = {'job-name', 'output'}
    assert len(asked) > 5 and set(asked) - cosmetic <= explained, set(asked) - cosmetic - explained


sys.exit(main())
