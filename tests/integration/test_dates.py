#!/usr/bin/env python3
"""Dates of tables: year, month, weekday, hour and days, as Python's calendar has them."""

import datetime
import json
import math
import random
import sys

from harness import BAD_DATA, CONFIG, dml, main, test, train, write_job

ZERO = datetime.datetime(1970, 1, 1)
EXACT = {'gradient_tolerance': 1e-10, 'loss_tolerance': 0, 'max_steps': 3000}


def rows_of(count=400, seed=1, missing=0.1):
    """(a time or None, a number, a label), which goes by month and weekday together."""
    rng = random.Random(seed)
    rows = []
    for _ in range(count):
        when = ZERO + datetime.timedelta(days=18000 + rng.randrange(1500),
                                         seconds=rng.randrange(86400))
        weekend, summer = when.weekday() > 4, 5 < when.month < 9
        margin = (2 if weekend == summer else -2) + (when.hour > 17) + rng.gauss(0, 1)
        rows.append((None if rng.random() < missing else when, round(rng.gauss(0, 1), 2),
                     'yes' if margin > 0 else 'no'))
    return rows


def iso(when):
    return when.isoformat(' ') if when else ''


def write_rows(path, rows, text=iso, header='when,size,y', order=(0, 1, 2)):
    lines = [header] if header else []
    for when, size, label in rows:
        cells = text(when), str(size), label
        lines.append(','.join(cells[i] for i in order))
    path.write_text('\n'.join(lines) + '\n')
    return path


def parts(when, name='when'):
    """Values by the names of features; of numbers those that are missing have None."""
    if not when:
        return {f'{name}.year': None, f'{name}.days': None,
                **{f'{name}.{part}=(missing)': 1.0
                   for part in ('year', 'month', 'weekday', 'hour', 'days')}}
    return {f'{name}.year': float(when.year), f'{name}.days': (when - ZERO).total_seconds() / 86400,
            f'{name}.month={when.month}': 1.0, f'{name}.weekday={when:%a}': 1.0,
            f'{name}.hour={when.hour}': 1.0}


def job_of(folder, data='data.csv', dates=('when',), csv=None, **settings):
    return write_job(folder, data=[data], **{'l2': 1e-2, **settings},
                     csv={'dates': list(dates), **(csv or {})})


def model_of(state):
    return json.loads((state / 'models/current/model.json').read_text())


@test
def a_date_becomes_its_parts(folder):
    rows, new = rows_of(), rows_of(100, seed=2)
    write_rows(folder / 'data.csv', rows)
    write_rows(folder / 'new.csv', new)
    train(job_of(folder, precondition='block'))
    export = json.loads(dml('export', folder / 'job.state', '--format', 'json').stdout)
    weight = {f['name']: f['weights'][0] for f in export['features']}
    mean = {c['name']: c.get('mean') for c in model_of(folder / 'job.state')['preparation']['columns']}
    there = {name for row in rows for name in parts(row[0])}
    assert set(weight) == there | {'size'}, set(weight) ^ (there | {'size'})
    found = dml('predict', folder / 'job.state', folder / 'new.csv')
    for (when, size, _), p in zip(new, map(float, found.stdout.splitlines())):
        margin = export['intercepts'][0] + weight['size'] * size
        for name, value in parts(when).items():
            margin += weight.get(name, 0) * (mean[name] if value is None else value)
        assert math.isclose(p, 1 / (1 + math.exp(-margin)), rel_tol=1e-9), (when, p)


@test
def a_date_is_what_a_table_of_its_parts_is(folder):
    """The same columns, written out in the order that they take, give the same optimum."""
    rows = rows_of(missing=0)
    write_rows(folder / 'data.csv', rows)
    lines = ['size,y,year,month,weekday,hour,days']
    for when, size, label in rows:
        lines.append(f'{size},{label},{when.year},{when.month},{when:%a},{when.hour},'
                     f'{(when - ZERO).total_seconds() / 86400!r}')
    (folder / 'parts.csv').write_text('\n'.join(lines) + '\n')
    made = train(job_of(folder, cross=['when.month*when.weekday'], standardise=True, **EXACT))
    written = train(write_job(folder, 'parts', data=['parts.csv'], l2=1e-2, standardise=True,
                              cross=['month*weekday'], **EXACT,
                              csv={'label': 'y', 'categories': ['month', 'weekday', 'hour']}))
    assert math.isclose(made['loss'], written['loss'], rel_tol=1e-9), (made, written)
    assert made['features'] == written['features'], (made, written)


FORMATS = {
    'iso': iso,
    '%d.%m.%Y %H:%M:%S': lambda t: f'{t:%d.%m.%Y %H:%M:%S}' if t else '',
    '%m/%d/%y %I:%M:%S %p': lambda t: f'{t:%m/%d/%y %I:%M:%S %p}' if t else '',
    'epoch': lambda t: str(int((t - ZERO).total_seconds())) if t else '',
    '%Y%m%d%H%M%S': lambda t: f'{t:%Y%m%d%H%M%S}' if t else '',
    '%d-%b-%Y %H:%M:%S': lambda t: f'{t:%d-%b-%Y %H:%M:%S}' if t else '?',
}


@test
def every_format_says_the_same(folder):
    hashes = set()
    for number, (written, text) in enumerate(FORMATS.items()):
        write_rows(folder / f'data{number}.csv', rows_of(), text)
        write_rows(folder / 'new.csv', rows_of(50, seed=2), text)
        result = train(job_of(folder, f'data{number}.csv', csv={'date_format': written}), '--fresh')
        figures = dml('evaluate', folder / 'job.state', folder / 'new.csv', '--json').json
        hashes.add((result['model_sha256'], figures['loss']))
    assert len(hashes) == 1, hashes


@test
def a_zone_moves_the_days_and_not_the_clock(folder):
    write_rows(folder / 'plain.csv', rows_of(missing=0))
    write_rows(folder / 'utc.csv', rows_of(missing=0), lambda t: t.isoformat() + 'Z')
    write_rows(folder / 'east.csv', rows_of(missing=0), lambda t: t.isoformat() + '+02:00')
    plain, utc, east = (train(job_of(folder, f'{name}.csv', standardise=True), '--fresh')
                        for name in ('plain', 'utc', 'east'))
    assert plain['model_sha256'] == utc['model_sha256'] != east['model_sha256']
    assert math.isclose(plain['loss'], east['loss'], rel_tol=1e-6), (plain, east)


@test
def a_date_without_a_time_has_no_hour(folder):
    write_rows(folder / 'data.csv', rows_of(), lambda t: f'{t:%Y-%m-%d}' if t else '')
    train(job_of(folder))
    names = model_of(folder / 'job.state')['feature_names']
    hours = [name for name in names if 'hour' in name]
    assert hours == ['when.hour=(missing)'], names


@test
def any_division_of_the_work_and_the_rows_gives_one_model(folder):
    rows = rows_of()
    write_rows(folder / 'data.csv', rows)
    for i in range(2):
        write_rows(folder / f'part{i}.csv', rows[i * 200:(i + 1) * 200])
    job = job_of(folder, cross=['pairs'], cross_least=3, holdout=0.2, csv={'bins': 4})
    ways = [(), ('--set', 'replicas=3', '--set', 'shards=2'), ('--set', 'threads=3'),
            ('--set', 'data={"part0.csv", "part1.csv"}')]
    results = [train(job, '--fresh', *way)['model_sha256'] for way in ways]
    assert len(set(results)) == 1, results


@test
def nights_find_dates_wherever_they_stand(folder):
    job = job_of(folder, csv={'label': 'y'}, holdout=0.2, gate=['loss <= 2 * live'])
    for number, (header, order) in enumerate((('when,size,y', (0, 1, 2)), ('y,size,when', (2, 1, 0)))):
        write_rows(folder / 'data.csv', rows_of(seed=number), header=header, order=order)
        finished = dml('retrain', job, '--json')
        assert finished.status == 0 and finished.json['published'], finished
    assert 'start' in model_of(folder / 'job.state'), finished
    names = [column['name'] for column in model_of(folder / 'job.state')['preparation']['columns']]
    assert names[:3] == ['when', 'size', 'y'] and len(names) == 8, names


@test
def a_file_that_lacks_the_dates_has_missing_ones(folder):
    rows = rows_of()
    write_rows(folder / 'a.csv', rows[:200])
    write_rows(folder / 'b.csv', rows[200:], header='size,y', order=(1, 2))
    write_rows(folder / 'c.csv', [(None, *row[1:]) for row in rows[200:]])
    csv = {'dates': ['when'], 'header': 'yes'}
    lacking, present = (train(write_job(folder, data=['a.csv', other], l2=1e-2, csv=csv, **EXACT,
                                        standardise=True), '--fresh')
                        for other in ('b.csv', 'c.csv'))
    assert math.isclose(lacking['loss'], present['loss'], rel_tol=1e-9), (lacking, present)
    refused = dml('evaluate', folder / 'job.state', folder / 'b.csv')
    assert refused.status == BAD_DATA and 'the column "when" is missing' in refused.stderr, refused


@test
def a_file_without_names_has_dates_by_number(folder):
    write_rows(folder / 'data.csv', rows_of(), header=None)
    train(job_of(folder, dates=['1'], cross=['1.month*1.weekday'], cross_least=1,
                 csv={'header': 'no'}))
    names = model_of(folder / 'job.state')['feature_names']
    assert '1.month=5' in names and '1.month=5 * 1.weekday=Tue' in names, names


@test
def what_is_no_date_is_a_malformed_line(folder):
    rows = write_rows(folder / 'data.csv', rows_of()).read_text().splitlines()
    for bad in ('2023-02-29', '06.05.2024', 'soon', '2024-05-06 25:00', '2024-05-06 07:08:61'):
        (folder / 'data.csv').write_text('\n'.join([*rows[:7], f'{bad},1,no', *rows[7:]]) + '\n')
        finished = dml('run', job_of(folder), '--fresh')
        assert finished.status == BAD_DATA, finished
        assert f'data.csv:8: column 1 (when) holds "{bad}", which is no date' in finished.stderr, \
            finished
        assert train(job_of(folder, bad_lines=1), '--fresh')['examples'] == 400


@test
def what_cannot_be_a_date_is_an_error_that_says_why(folder):
    write_rows(folder / 'data.csv', rows_of())
    for settings, status, why in (
            ({'dates': ['wehn']}, BAD_DATA, 'there is no column "wehn" to read as a date'),
            ({'dates': ['y']}, BAD_DATA, 'csv.dates, and is the label'),
            ({'csv': {'date_format': '%Y %H'}}, CONFIG, 'allowed: iso, epoch, epoch_ms, or a format'),
            ({'cross': ['when*size'], 'csv': {'bins': 4}}, CONFIG,
             'it is a date, whose parts are: year, month, weekday, hour and days')):
        finished = dml('run', job_of(folder, **settings))
        assert finished.status == status and why in finished.stderr, (settings, finished)


@test
def columns_that_hold_dates_are_told_by_name(folder):
    write_rows(folder / 'data.csv', rows_of())
    finished = dml('check', write_job(folder, data=['data.csv']))
    assert 'column 1 (when) holds dates, each of which is a category level: list it in csv.dates to learn' in \
        finished.stderr, finished
    refused = dml('run', write_job(folder, data=['data.csv']))
    assert refused.status == BAD_DATA and 'csv.dates' in refused.stderr, refused
    write_rows(folder / 'data.csv', rows_of(), FORMATS['%d.%m.%Y %H:%M:%S'])
    finished = dml('check', write_job(folder, data=['data.csv']))
    assert 'csv.date_format = "%d.%m.%Y %H:%M:%S", to learn' in finished.stderr, finished
    for settings in ({'dates': ['when'], 'date_format': '%d.%m.%Y %H:%M:%S'},
                     {'categories': ['when']}):
        finished = dml('check', write_job(folder, data=['data.csv'], csv=settings))
        assert 'holds dates' not in finished.stderr, finished
    write_rows(folder / 'data.csv', [(datetime.datetime(2024, 5, 1 + i % 7), *row[1:]) for i, row in enumerate(rows_of())])
    trained = dml('run', '--quiet', write_job(folder, data=['data.csv'], l2=1e-3))
    assert trained.status == 0 and ' warning: ' in trained.stderr and '(when) holds dates' in trained.stderr, trained


if __name__ == '__main__':
    sys.exit(main())
