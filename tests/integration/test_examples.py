#!/usr/bin/env python3
"""The examples of the manual pages and of README.md work as they are typed: whole job files, lines
to be added to one, command lines, and programs in Python."""

import datetime
import gzip
import http.server
import json
import os
import random
import re
import struct
import subprocess
import sys
import threading
import uuid

from harness import BUILD, SOURCE, Skip, dml, main, run, small_data, test, write_job

# Programs of others, which the machine may lack or which would leave the folder.
STAND_INS = {
    'psql': 'cat people.csv',
    'journalctl': 'true',
    'systemctl': 'true',
}
# What needs a cluster.
ELSEWHERE = re.compile(r'\$ (?:sbatch|ssh|srun) ')
# What a page calls by the names of one machine, and here is another.
HERE = {'/srv/model/': '', '127.0.0.1:8080': '127.0.0.1:0', 'publish 8': 'publish 2', 'models/8': 'models/2',
        ' - --labels': ' - --labels < new.txt'}


# ---- the examples of a page ----

def blocks_of(page):
    """The literal parts of a manual page, and those of README.md, in their order."""
    text = (SOURCE / page).read_text()
    if page.endswith('.md'):
        found = re.findall(r'(?:^    .*\n(?:^\n(?=    ))?)+', text, re.M)
        return [re.sub(r'^    ', '', block, flags=re.M) for block in found]
    found = re.findall(r'^\.(?:Bd -literal.*\n((?:.*\n)*?)\.Ed|Dl (.*))', text, re.M)
    return [(block or line).replace('\\&', '').replace('\\e', '\\') for block, line in found]


def commands_of(block):
    """Lines after `$`, each with the indented ones behind it; of README.md, those of the program."""
    if block.startswith('dml-coordinator '):
        return [line.split('  #')[0] for line in block.splitlines()]
    return [re.sub(r'^\$ ', '', command) for command
            in re.findall(r'^\$ .*(?:\n +\S.*)*', block, re.M) if not ELSEWHERE.match(command)]


def run_commands(folder, block):
    """As in a shell. What goes on until it is ended gets a second."""
    for command in commands_of(block):
        for there, here in HERE.items():
            command = command.replace(there, here)
        endless = ' serve ' in command
        done = run('bash', '-c', f'set -o pipefail; {command}', cwd=folder,
                   **path_with_stand_ins(folder))
        assert done.status == 0 or endless and done.status == 124, done


def path_with_stand_ins(folder):
    tools = folder / 'stand-ins'
    if not tools.exists():
        tools.mkdir()
        for name, does in STAND_INS.items():
            (tools / name).write_text(f'#!/bin/sh\n{does}\n')
        (tools / 'dml-coordinator').write_text(
            f'#!/bin/sh\ncase $1 in serve) exec timeout 1 {BUILD}/dml-coordinator "$@";; esac\n'
            f'exec {BUILD}/dml-coordinator "$@"\n')
        (tools / 'dml-replica').symlink_to(BUILD / 'dml-replica')
        for tool in tools.iterdir():
            tool.chmod(0o755)
    return {'PATH': f'{tools}:{os.environ["PATH"]}'}


# ---- what the examples read ----

def table(folder, name, header, row, rows=90, seed=5):
    source = random.Random(seed)
    (folder / name).write_text('\n'.join([header, *(row(i, source) for i in range(rows))]) + '\n')


def person(i, source):
    """Some do not say their age or where they live."""
    return f'{i},{source.choice([source.randint(18, 80), ""])},{source.choice(["Rome", "Oslo", "?"])},' \
           f'{source.choice([1000, 2000])},{source.choice(["yes", "no"])}'


def tables(folder):
    head = 'id,age,city,zip,bought'
    for name in 'people.csv', 'new.csv', 'checked.csv', 'later.csv':
        table(folder, name, head, person, rows=300, seed=len(name))
    for name in 'payments.csv', 'test.csv':
        table(folder, name, 'hour,amount,fraud',
              lambda i, source: f'{i % 24},{source.random():.3},{source.choice(["yes", "no"])}')
    table(folder, 'counts.csv', 'x,y', lambda i, _: f'{i % 7},{i % 3}')
    table(folder, 'reviews.csv', 'x,y,grade', lambda i, source:
          f'{i % 7},{i % 5},{source.choice(["low", "medium", "high"])}')
    table(folder, 'tags.csv', 'x,y,tags', lambda i, source:
          f'{i % 7},{i % 5},{source.choice(["", "blue", chr(34) + "red,big" + chr(34), "red"])}')
    table(folder, 'bends.csv', 'x,y,side', lambda i, _:
          f'{i % 7 + i / 1024},{i % 5},{"in" if (i % 7 - 3) * (i % 5 - 2) > 0 else "out"}', rows=210)
    table(folder, 'messages.csv', 'message,kind', lambda i, source:
          f'well it is a {source.choice(["good", "bad"][i % 2:] + ["fair"])} day {i},{"us"[i % 2]}')
    table(folder, 'policies.csv', 'age,years,claims', lambda i, source:
          f'{i % 7},{source.uniform(0.1, 2):.3},{source.choice([0, 0, 1, 2])}')
    table(folder, 'wdbc.csv', 'id,x,diag', lambda i, source: f'{i},{source.random()},{"MB"[i % 2]}')


def images(folder):
    """IDX: images of two pixels."""
    for name, rows in (('train', 60), ('t10k', 9)):
        pixels = bytes((i * 37 + j) % 256 for i in range(rows) for j in range(2))
        (folder / f'{name}-images-idx3-ubyte.gz').write_bytes(
            gzip.compress(struct.pack('>4I', 0x803, rows, 1, 2) + pixels))
        (folder / f'{name}-labels-idx1-ubyte.gz').write_bytes(
            gzip.compress(struct.pack('>2I', 0x801, rows) + bytes(i % 3 for i in range(rows))))


def files(folder):
    """All that the pages name."""
    tables(folder)
    images(folder)
    for name in 'inbox', 'checked', '2026-01':
        (folder / name).mkdir()
    for name in ('train.libsvm', 'new.libsvm', 'inbox/1.libsvm', 'checked/may.libsvm', 'train.txt',
                 'new.txt'):
        small_data(folder, name, rows=300, seed=len(name))
    for name in 'a9a.gz', 'a9a.t.gz':
        (folder / name).write_bytes(gzip.compress((folder / 'train.txt').read_bytes()))
    (folder / '2026-01/part-1.zst').write_bytes((folder / 'train.txt').read_bytes())


# ---- the pages ----

def write_whole_job(folder, block):
    """Whether the block is a job file, which begins with a comment of its name."""
    name = re.match(r'# ([\w-]+\.conf)\n', block)
    if name:
        (folder / name[1]).write_text(block)
    return name and name[1]


def add_to_a_job(folder, block):
    """A key, or several, that a page adds to a job."""
    job = write_job(folder, 'addition', data=['train.libsvm'], holdout=0.1)
    job.write_text(re.sub('^holdout.*\n', '', job.read_text(), flags=re.M)
                   if re.search('^holdout', block, re.M) else job.read_text())
    with open(job, 'a') as file:
        file.write(block)
    checked = dml('check', job)
    assert checked.status == 0, (block, checked)


@test
def every_example_of_the_tasks_works_as_typed(folder):
    files(folder)
    jobs = commands = 0
    for block in blocks_of('man/dml-tasks.7'):
        if name := write_whole_job(folder, block):
            finished = dml('run', folder / name, '--json')
            assert finished.status == 0 and finished.json['converged'], (block, finished)
            jobs += 1
        elif block.startswith('$ '):
            run_commands(folder, block)
            commands += 1
        elif re.match(r'\w+ += ', block):
            add_to_a_job(folder, block)
    assert jobs == 12 and commands == 13, (jobs, commands)


@test
def the_way_to_a_nightly_job_works_as_typed(folder):
    files(folder)
    blocks = blocks_of('man/dml-retrain.7')
    job = re.search(r'\n((?:\w+ += .*\n)+)', blocks[0])[1]
    (folder / 'nightly.conf').write_text(job)
    for block in blocks:
        if re.match(r'\w+ += ', block):  # from here on it is in the job
            key = block.split()[0]
            job = re.sub(rf'^{key} .*\n', '', job, flags=re.M) + block + '\n'
            (folder / 'nightly.conf').write_text(job.replace('>= 0.8', '>= 0.4'))
        elif 'retrain' in block and block.startswith('$ '):
            small_data(folder, 'inbox/2.libsvm', rows=300, seed=2)
            run_commands(folder, block)
            small_data(folder, 'inbox/3.libsvm', rows=300, seed=3)
            run_commands(folder, block)
        elif block.startswith('$ ') or not block.startswith(('#', 'MAILTO')):
            run_commands(folder, block if block.startswith('$') else f'$ {block}')


@test
def the_commands_of_the_readme_work_as_typed(folder):
    files(folder)
    adult = next(block for block in blocks_of('README.md') if 'dml-coordinator run' in block)
    job, commands = re.split(r'\n(?=dml-coordinator)', adult, maxsplit=1)
    people = next(block for block in blocks_of('README.md') if 'later.csv' in block)
    (folder / 'adult.conf').write_text(job)
    (folder / 'people.conf').write_text(people)
    first, nightly = re.split(r'(?=dml-coordinator retrain)', commands)
    run_commands(folder, first)
    (folder / 'a9a.gz').write_bytes(gzip.compress(small_data(folder, 'more', rows=400).read_bytes()))
    run_commands(folder, nightly)
    run_commands(folder, '$ dml-coordinator run people.conf')


@test
def every_job_file_of_the_reference_is_valid(folder):
    files(folder)
    checked = 0
    for block in blocks_of('man/dml.conf.5'):
        if re.match(r'(?:# [\w-]+\.conf\n)?data ', block):
            (folder / 'example.conf').write_text(block)
            finished = dml('check', folder / 'example.conf')
            assert finished.status == 0, (block, finished)
            checked += 1
        elif block.startswith('gate'):
            add_to_a_job(folder, block)
    assert checked == 5, checked


@test
def the_commands_of_the_coordinators_page_work_as_typed(folder):
    files(folder)
    for block in blocks_of('man/dml-coordinator.1'):
        if 'cat adult.conf' in block:
            (folder / 'adult.conf').write_text('data = "a9a.gz"\n')
        if block.startswith('$ ') and '--listen' not in block:
            run_commands(folder, block)


# ---- in Python ----

# What reads a model where there is no package safetensors.
READER = '''
import sys, types
sys.path.insert(0, {harness!r})
def load_file(path):
    import numpy, pathlib
    from harness import read_safetensors
    kinds = lambda name: "u8" if name == "feature_id" else "f8"
    return {{name: numpy.array(values, kinds(name)).reshape(shape)
             for name, (shape, values) in read_safetensors(pathlib.Path(path)).items()}}
sys.modules["safetensors"] = types.ModuleType("safetensors")
sys.modules["safetensors.numpy"] = module = types.ModuleType("safetensors.numpy")
module.load_file = load_file
'''
LAST = '\nprint("\\n".join(",".join(map(repr, row)) for row in margins.tolist()))\n'


def margins_in_python(folder, program, rows):
    """What an example computes of rows, which the page calls x."""
    x = f'import numpy\nfrom numpy import nan\nx = numpy.array({rows!r})\n'
    (folder / 'example.py').write_text(
        READER.format(harness=str(SOURCE / 'tests/integration')) + x + program + LAST)
    done = run(sys.executable, 'example.py', cwd=folder)
    assert done.status == 0, done
    return [[float(margin) for margin in line.split(',')] for line in done.stdout.splitlines()]


class Catalogue(http.server.BaseHTTPRequestHandler):
    """Keeps the last event that it was sent."""
    def do_POST(self):
        body = self.rfile.read(int(self.headers['Content-Length']))
        self.server.event = self.path, self.headers['Authorization'], json.loads(body)
        self.send_response(201)
        self.end_headers()

    def log_message(self, *words):
        pass


def what_a_night_may_not(unit):
    """The lines of a unit that confine it, without remarks."""
    lines = (SOURCE / unit).read_text().splitlines()
    first = lines.index('NoNewPrivileges=yes')
    return [line for line in lines[first:] if not line.startswith('#')]


@test
def nights_of_the_package_and_of_the_example_are_confined_alike(folder):
    package = what_a_night_may_not('debian/dml.dml-retrain@.service')
    assert package == what_a_night_may_not('examples/dml-retrain.service')
    assert 'SystemCallFilter=@system-service' in package, package
    # Either would close the devices of GPUs.
    assert not any(re.match('PrivateDevices|ProtectClock|DeviceAllow', line) for line in package), package


@test
def a_catalogue_is_told_of_a_published_model(folder):
    small_data(folder)
    server = http.server.HTTPServer(('127.0.0.1', 0), Catalogue)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    told = {'OPENLINEAGE_URL': f'http://127.0.0.1:{server.server_port}', 'OPENLINEAGE_API_KEY': 'k'}
    job = write_job(folder, data=['small.libsvm'], holdout=0.3,
                    on_publish=f'WORD=hidden {sys.executable} {SOURCE / "examples/openlineage.py"}')
    finished = dml('run', job, '--json', **told)
    server.shutdown()
    path, key, event = server.event
    assert finished.status == 0 and (path, key) == ('/api/v1/lineage', 'Bearer k'), finished
    assert event['eventType'] == 'COMPLETE' and event['schemaURL'].endswith('#/$defs/RunEvent'), event
    uuid.UUID(event['run']['runId'])
    assert datetime.datetime.fromisoformat(event['eventTime']).tzinfo, event
    assert event['inputs'] == [{'namespace': 'file', 'name': str(folder / 'small.libsvm')}], event
    assert 'hidden' not in json.dumps(event), event
    version = event['outputs'][0]['facets']['version']
    assert version['datasetVersion'] == finished.json['model_sha256'], event
    for facets in event['run']['facets'], event['outputs'][0]['facets']:
        assert all(facet['_producer'] and facet['_schemaURL'] for facet in facets.values()), event


@test
def the_examples_in_python_compute_the_margins(folder):
    if subprocess.run([sys.executable, '-c', 'import numpy'], stderr=subprocess.DEVNULL).returncode:
        raise Skip('NumPy is not installed')
    files(folder)
    blocks = blocks_of('man/dml-tasks.7')
    data = {'select': 'new.libsvm', 'bends': 'bends.csv'}
    rows = {'select': [[dict(pair.split(':') for pair in line.split()[1:]).get(str(j), 0)
                        for j in range(1, 21)] for line in open(folder / 'new.libsvm')],
            'bends': [[*line.split(',')[:2], 'nan']
                      for line in open(folder / 'bends.csv').read().splitlines()[1:]]}
    for block in blocks:
        write_whole_job(folder, block)
    for name, program in zip(data, [block for block in blocks if block.startswith('import')]):
        run_commands(folder, f'$ dml-coordinator run {name}.conf')
        computed = margins_in_python(folder, program,
                                     [[float(cell) for cell in row] for row in rows[name]])
        predicted = dml('predict', '--margins', folder / f'{name}.state', folder / data[name])
        expected = [[float(margin) for margin in re.split('[ ,\t]', line)]
                    for line in predicted.stdout.splitlines()]
        assert len(computed) == len(expected) > 50, predicted
        for ours, theirs in zip(computed, expected):
            assert len(ours) == len(theirs), (ours, theirs)
            assert all(abs(a - b) <= 1e-12 * max(1, abs(b)) for a, b in zip(ours, theirs))


sys.exit(main())
