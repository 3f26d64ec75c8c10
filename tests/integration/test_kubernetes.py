#!/usr/bin/env python3
"""The files of examples/kubernetes: the API's schemas, the options of the programs, and the keys of the job."""

import re
import sys

from harness import BUILD, SOURCE, Skip, dml, main, run, small_data, test

FOLDER = SOURCE / 'examples/kubernetes'
FILES = sorted(FOLDER.glob('*.yaml'))


@test
def the_files_fit_the_schemas_of_the_api(folder):
    try:
        import kubernetes_validate  # pylint: disable=import-outside-toplevel
        import yaml  # pylint: disable=import-outside-toplevel
    except ImportError:
        raise Skip('not installed: kubernetes-validate') from None
    documents = [(path, one) for path in FILES for one in yaml.safe_load_all(path.read_text())]
    assert {one['kind'] for _, one in documents} >= {'Job', 'CronJob', 'StatefulSet', 'Service',
                                                     'PodDisruptionBudget'}, documents
    for path, one in documents:
        try:
            kubernetes_validate.validate(one, kubernetes_validate.latest_version(), strict=True)
        except kubernetes_validate.ValidationError as error:
            raise AssertionError(f'{path.name}, {one["kind"]}: {error.message}') from error


@test
def programs_have_the_options_that_the_files_give_them(folder):
    commands = [line for path in FILES for line in re.findall(r'^ *command: \[(.*)\]$', path.read_text(), re.M)]
    called = [re.search(r'(dml-\w+)(?:, (\w+))?(.*)', line) for line in commands if 'dml-' in line]
    assert len(called) == 4, commands
    for program, command, rest in (found.groups() for found in called):
        words = [BUILD / program, *([command] if command and program == 'dml-coordinator' else []), '--help']
        text = run(*words).stdout
        for option in re.findall(r'--[a-z-]+', rest):
            assert re.search(rf'^ +{option}\b', text, re.M), (program, option)


@test
def the_job_is_accepted(folder):
    text = (FOLDER / 'job.yaml').read_text()
    lines = re.search(r'clicks\.conf: \|\n((?:    .*\n)+)', text)[1]
    job = folder / 'clicks.conf'
    job.write_text(re.sub(r'"/data/clicks/.*?"', f'"{small_data(folder)}"', lines)
                   .replace('/data/clicks.state', str(folder / 'clicks.state')))
    checked = dml('check', job)
    assert checked.status == 0 and 'dns:dml-replicas:7000' in checked.stdout, checked


@test
def the_workers_of_the_job_are_those_of_the_files(folder):
    workers, job = (FOLDER / 'workers.yaml').read_text(), (FOLDER / 'job.yaml').read_text()
    listed = set(re.findall(r'dml-shards-\d+\.(dml-shards):(\d+)', job)) | set(
        re.findall(r'dns:(dml-replicas):(\d+)', job))
    assert listed == {('dml-shards', '7000'), ('dml-replicas', '7000')}, listed
    for name, port in listed:
        assert f'serviceName: {name}\n' in workers and f'port: {port}' in workers, name
    shards = re.search(r'serviceName: dml-shards\n  replicas: (\d+)', workers)[1]
    assert len(re.findall(r'dml-shards-\d+\.', job)) == int(shards), shards


if __name__ == '__main__':
    sys.exit(main())
