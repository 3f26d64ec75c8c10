#!/usr/bin/env python3
"""Tells a catalogue that speaks OpenLineage of a model that has become live. In the job file:

    on_publish = "python3 /srv/model/openlineage.py"

The event goes to OPENLINEAGE_URL (OPENLINEAGE_API_KEY is sent as a bearer token, if it is set); without
that it is printed. OPENLINEAGE_NAMESPACE names the place that jobs and models belong to, "dml" without
it. Needs nothing but Python."""

import datetime
import json
import os
import sys
import urllib.parse
import urllib.request
import uuid
from pathlib import Path

PRODUCER = 'https://example.org/dml'  # whoever runs the job: put your own address here
SCHEMA = 'https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/'
COMMANDS = 'on_publish', 'launch'  # which may have a password in them
FIGURES = 'loss', 'auc', 'accuracy', 'rmse', 'deviance'


def facet(schema, **members):
    return {'_producer': PRODUCER, '_schemaURL': SCHEMA + schema, **members}


def dataset(path, folder):
    """A file, glob or address as OpenLineage names it: where it is, and what it is called there."""
    address = urllib.parse.urlsplit(path)
    if address.scheme in ('s3', 'http', 'https'):
        return {'namespace': f'{address.scheme}://{address.hostname}', 'name': address.path.lstrip('/')}
    return {'namespace': 'file', 'name': os.path.abspath(folder / path)}


def event(model, environment):
    settings = {name: value for name, value in model['settings'].items() if name not in COMMANDS}
    result = model.get('result', {})
    namespace = environment.get('OPENLINEAGE_NAMESPACE', 'dml')
    folder = Path(environment['DML_STATE']).parent  # the job file is beside its state, if it does not say otherwise
    evaluated = result.get('holdout') or result.get('test') or {}
    figures = {name: evaluated[name] for name in FIGURES if isinstance(evaluated.get(name), float)}
    name = f'{environment["DML_JOB"]}/{environment["DML_RUN"]}/{environment["DML_MODEL_SHA256"]}'
    return {
        'eventType': 'COMPLETE',
        'eventTime': datetime.datetime.now(datetime.timezone.utc).isoformat(),
        'producer': PRODUCER,
        'schemaURL': SCHEMA + 'RunEvent',
        'run': {'runId': str(uuid.uuid5(uuid.NAMESPACE_URL, f'{PRODUCER}/{name}')),
                'facets': {'dml': facet('RunFacet', run=int(environment['DML_RUN']),
                                        kind=environment['DML_KIND'], reason=result.get('reason'),
                                        data_fingerprint=model.get('data_fingerprint'),
                                        settings=settings)}},
        'job': {'namespace': namespace, 'name': environment['DML_JOB']},
        'inputs': [dataset(path, folder) for path in settings['data'] + settings.get('test', [])],
        'outputs': [{'namespace': namespace, 'name': f'{environment["DML_JOB"]}.model',
                     'facets': {'version': facet('DatasetFacet', datasetVersion=model['model_sha256']),
                                'dml': facet('DatasetFacet', objective=model['objective'],
                                             folder=environment['DML_MODEL'], figures=figures)}}],
    }


def send(body, url, key):
    headers = {'Content-Type': 'application/json'}
    if key:
        headers['Authorization'] = f'Bearer {key}'
    address = url.rstrip('/') + '/api/v1/lineage'
    with urllib.request.urlopen(urllib.request.Request(address, body.encode(), headers), timeout=30):
        pass


def main():
    model = json.loads((Path(os.environ['DML_MODEL']) / 'model.json').read_text(encoding='utf-8'))
    body = json.dumps(event(model, os.environ), allow_nan=False)
    url = os.environ.get('OPENLINEAGE_URL')
    if not url:
        print(body)
        return
    try:
        send(body, url, os.environ.get('OPENLINEAGE_API_KEY'))
    except OSError as error:
        sys.exit(f'openlineage.py: {url} did not take the event: {error}')


if __name__ == '__main__':
    main()
