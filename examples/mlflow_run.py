#!/usr/bin/env python3
"""Notes a model that has become live as a run of MLflow: its settings as parameters, its figures as
metrics, its folder as an artifact. In the job file:

    on_publish = "MLFLOW_TRACKING_URI=http://mlflow:5000 /srv/venv/bin/python /srv/model/mlflow_run.py"

Needs the package mlflow or mlflow-skinny."""

import json
import os
from pathlib import Path

import mlflow


def numbers(figures, kind):
    return {f'{kind}_{name}': value for name, value in (figures or {}).items()
            if isinstance(value, (int, float)) and not isinstance(value, bool)}


def parameters(settings):
    """What the job says; values that are not set, and long ones, would only hide the others. Commands may
    have a password in them."""
    texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in settings.items()
             if value not in (None, [], 'auto', 'off') and name not in ('on_publish', 'launch')}
    return {name: text for name, text in texts.items() if len(text) <= 500}


def main():
    folder = Path(os.environ['DML_MODEL'])
    model = json.loads((folder / 'model.json').read_text(encoding='utf-8'))
    result = model.get('result', {})
    mlflow.set_experiment(os.environ['DML_JOB'])
    with mlflow.start_run(run_name=f'{os.environ["DML_JOB"]} {os.environ["DML_RUN"]}'):
        mlflow.set_tags({'dml.kind': os.environ['DML_KIND'], 'dml.state': os.environ['DML_STATE'],
                         'dml.model_sha256': os.environ['DML_MODEL_SHA256'],
                         'dml.data_fingerprint': model.get('data_fingerprint', '')})
        mlflow.log_params(parameters(model['settings']))
        mlflow.log_metrics({name: result[name] for name in ('loss', 'steps', 'evaluations') if name in result})
        for kind in 'holdout', 'test':
            mlflow.log_metrics(numbers(result.get(kind), kind))
        mlflow.log_artifacts(str(folder), 'model')


if __name__ == '__main__':
    main()
