#!/usr/bin/env python3
"""Names of files and folders that someone chose: none is a pattern, and any byte may be in them."""

import json
import os
import sys
import urllib.request

from harness import (AGAIN, CONFIG, COORDINATOR, USAGE, Process, dml, endless_job, main, small_data,
                     small_job, test, train, url_of, write_job)
from nightly import Nights


@test
def the_leftovers_of_another_job_stay_when_a_state_is_named_like_a_pattern(folder):
    mine, other = folder / 'nightly-*.state', folder / 'nightly-a.state'
    for state in mine, other:
        for place in 'packs', 'models':
            (state / place).mkdir(parents=True)
            (state / place / 'half.tmp.12').touch()
    (mine / 'packs/kept.tmp.1x').touch()
    (mine / 'key.tmp.12').touch()
    (mine / 'table.tmp.12').touch()  # that of a command which may run beside this
    train(small_job(folder), '--state', mine)
    assert (other / 'packs/half.tmp.12').exists() and (other / 'models/half.tmp.12').exists()
    left = sorted(str(path.relative_to(mine)) for path in mine.rglob('*.tmp.*'))
    assert left == ['packs/kept.tmp.1x', 'table.tmp.12'], left


@test
def sets_of_older_data_go_when_the_state_is_named_like_a_pattern(folder):
    nights = Nights(folder, state='job[1].state')
    nights.good_nights(1, 2)
    sets = [path.name for path in (folder / 'job[1].state/packs').iterdir()
            if path.name.endswith('.set')]
    assert len(sets) == 1, sets


@test
def control_characters_in_names_are_escaped_on_standard_output(folder):
    evil = 'a\x1b[2J\x07b'
    place = folder / evil
    place.mkdir()
    job = write_job(place, evil, data=[small_data(place).name], l2=1e-3)
    said = [dml(command, job) for command in ('pack', 'run', 'status', 'jobs', 'check')]
    for finished in said:
        assert finished.status == 0, finished
        assert r'a\x1b[2J\x07b' in finished.stdout, finished
        assert '\x1b' not in finished.stdout and '\x07' not in finished.stdout, finished
    copy = place / 'copy.conf'
    copy.write_text(said[-1].stdout)
    assert evil in dml('check', copy, '--json').json['state'], said[-1].stdout


@test
def control_characters_of_columns_are_escaped_on_standard_output(folder):
    a, label, cluster = (name + '\x1b[2J' for name in 'ayg')
    rows = [f'{i % 7},{i % 2},c{i % 20}' for i in range(100)]
    (folder / 'rows.csv').write_text('\n'.join([f'{a},{label},{cluster}', *rows]) + '\n')
    job = write_job(folder, data=['rows.csv'], l2=0, summary='model', summary_cluster=cluster)
    job.write_text(job.read_text() + f'csv {{ label = "{label}" }}\n')
    train(job)
    for words in (['check', job], ['init', folder / 'rows.csv', '--set', f'csv.label={label}',
                                   '-o', folder / 'made.conf'],
                  ['summary', folder / 'job.state', '--cluster', cluster]):
        said = dml(*words)
        assert said.status == 0 and '\x1b' not in said.stdout, (words, said)
        assert r'\x1b[2J' in said.stdout, (words, said)


# ---- bytes that are no UTF-8 ----

ODD = os.fsdecode(b'caf\xe9-\xff\xc3')  # as Latin-1 and worse name their files
SHOWN = 'caf\xe9-\xff\xc3'
NO = 'n\xe9'


def odd_job(folder, **settings):
    """A job in which whatever can has a name that is no UTF-8: file, folder, state, data."""
    place = folder / ODD
    place.mkdir()
    data = small_data(place, ODD + '.libsvm')
    job = write_job(place, ODD, data=['*.libsvm'], l2=1e-3, **settings)
    return place, data, job


@test
def names_that_are_no_utf8_are_shown_in_json_byte_by_byte(folder):
    place, data, job = odd_job(folder)
    result = train(job)
    assert result['job'] == SHOWN, result
    assert f'/{SHOWN}/{SHOWN}.state/models/' in result['model'], result
    state = place / (ODD + '.state')
    listed = dml('jobs', state, '--json').json['folders'][0]
    assert listed['folder'].endswith(f'/{SHOWN}.state'), listed
    assert [run['job'] for run in listed['runs']] == [SHOWN], listed
    assert dml('jobs', state).status == 0
    assert dml('status', state, '--json').json['job'] == SHOWN
    assert dml('pack', job, '--json').json['set'].endswith('.set')
    pack, = [path for path in (state / 'packs').iterdir()
             if path.suffix == '.pack']
    assert dml('inspect', pack, '--json').json['source'].endswith(f'/{SHOWN}.libsvm')
    assert dml('check', job).status == 0
    again = train(job)
    assert again['run'] == 2, again
    model = state / 'models/current'
    assert json.loads((model / 'model.json').read_text())['settings']['state'].count(SHOWN) == 2
    figures = dml('evaluate', model, data, '--json')
    assert figures.status == 0 and figures.json['examples'] == 60, figures


@test
def retrain_and_rollback_work_under_names_that_are_no_utf8(folder):
    place, data, job = odd_job(folder, on_publish='true')
    for night in 1, 2:
        result = dml('retrain', job, '--json')
        assert result.status == 0 and result.json['job'] == SHOWN, result
        small_data(place, f'{night}.libsvm', seed=night)
    assert dml('retrain', job, '--json').status == 0
    back = dml('rollback', job, '--json')
    assert back.status == 0 and back.json['job'] == SHOWN and SHOWN in back.json['live'], back


@test
def a_live_run_shows_names_that_are_no_utf8(folder):
    (folder / ODD).mkdir()
    job = endless_job(folder / ODD, http='127.0.0.1:0')
    odd = job.rename(job.with_name(ODD + '.conf'))
    process = Process(COORDINATOR, 'run', odd)
    try:
        url = url_of(process)
        ask = lambda path: urllib.request.urlopen(url + path, timeout=30).read()
        assert json.loads(ask('api/v1/status'))['job'] == SHOWN
        runs = lambda: json.loads(ask('api/v1/runs'))['runs']
        process.until(runs, 'the run is recorded')  # the server answers before that
        assert runs()[0]['job'] == SHOWN
        assert f'job="{SHOWN}"' in ask('metrics').decode()
        assert dml('status', odd, '--json').json['job'] == SHOWN
        assert dml('cancel', odd).status == 0
        assert process.wait().status == AGAIN
    finally:
        process.end()


@test
def labels_and_columns_that_are_no_utf8_are_shown_and_found_again(folder):
    text = 'caf\xe9,b,label\n' + ''.join(f'{i % 7},{i % 5},{("yes", NO)[i % 3 > 0]}\n'
                                         for i in range(60))
    (folder / 'data.csv').write_bytes(text.encode('latin-1'))
    job = write_job(folder, data=['data.csv'], l2=1e-2, objective='softmax')
    model = train(job)['model']
    described = json.loads(open(f'{model}/model.json', encoding='utf-8').read())
    assert described['classes'] == [NO, 'yes'], described
    assert described['feature_names'] == ['caf\xe9', 'b'], described
    assert dml('evaluate', model, folder / 'data.csv', '--json').json['examples'] == 60
    for command in (['export', model, '--format', 'json'], ['inspect', *(folder / 'job.state/packs')
                                                            .glob('*.set')]):
        shown = dml(*command, '--json')
        assert shown.status == 0 and 'caf\xe9' in str(json.loads(shown.stdout)), shown


@test
def a_job_file_that_is_no_utf8_is_refused_with_its_line(folder):
    job = folder / 'job.conf'
    job.write_bytes(b'# caf\xe9\ndata = "a"\nname = "caf\xe9"\n')
    refused = dml('check', job)
    assert refused.status == CONFIG and 'job.conf:3: a character that is not UTF-8' in \
        refused.stderr, refused
    good = small_job(folder)
    refused = dml('check', good, '--set', os.fsdecode(b'name=caf\xe9'))
    assert refused.status == USAGE and 'not UTF-8' in refused.stderr, refused
    good.write_bytes(b'# caf\xe9\n' + good.read_bytes())
    assert dml('check', good).status == 0


if __name__ == '__main__':
    sys.exit(main())
