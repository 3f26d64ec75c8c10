#!/usr/bin/env python3
"""A service that scores rows with the live model of a state folder (dml-python(7)).

    DML_STATE=people.state flask --app examples/service.py run

    curl -H 'Content-Type: application/json' -d '[{"age": 39, "workclass": "State-gov"}]' localhost:5000/predict

The answer has the hash of the model that gave it. A model that goes live, by `publish`, `rollback` or a night's
`retrain`, answers from the next request on, without a restart; requests that have begun end with the former one.
Under gunicorn, with threads or processes, each process follows by itself."""

import os

import flask

import dml

app = flask.Flask(__name__)
live = dml.follow(os.environ['DML_STATE'])


@app.post('/predict')
def predict():
    model = live.model  # one model for the whole request
    try:
        values = model.predict_values(flask.request.get_json())
    except dml.Error as error:
        return {'error': str(error), 'row': error.row}, 422
    return {'values': values, 'model_sha256': model.describe()['sha256']}


@app.get('/health')
def health():
    """The model that answers now, and how many texts of each column training did not know."""
    model = live.model
    return {'model_sha256': model.describe()['sha256'], 'unseen': model.unseen}
