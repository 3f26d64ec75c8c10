#!/usr/bin/env python3
"""examples/intro.ipynb: its cells run in their order, and answer what the notebook shows. And the functions for the
runs of a state folder that it uses."""

import ast
import contextlib
import io
import json
import os
import shutil
import sys
import warnings

from harness import BUILD, SOURCE, UNAVAILABLE, USAGE, dml as program, exception_of, main, small_job, test, train

os.environ.setdefault('DML_BUILD', str(BUILD))
sys.path.insert(0, str(SOURCE / 'python'))

import dml  # noqa: E402

NOTEBOOK = SOURCE / 'examples/intro.ipynb'


def execute(source, names):
    """What a cell prints, and the value of its last line as the notebook shows it."""
    body = ast.parse(source).body
    last = body.pop() if isinstance(body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(ast.Module(body, []), NOTEBOOK.name, 'exec'), names)
        value = eval(compile(ast.Expression(last.value), NOTEBOOK.name, 'eval'), names) if last else None
    return printed.getvalue(), '' if value is None else repr(value)


def shown(cell):
    """The same as it is stored."""
    texts = {'stream': '', 'execute_result': ''}
    for output in cell['outputs']:
        texts[output['output_type']] += ''.join(output.get('text') or output['data']['text/plain'])
    return tuple(texts.values())


@test
def each_cell_of_the_notebook_answers_what_it_shows(folder):
    notebook = json.loads(NOTEBOOK.read_text())
    cells = [cell for cell in notebook['cells'] if cell['cell_type'] == 'code']
    assert notebook['nbformat'] == 4 and len(cells) > 8, notebook.keys()
    shutil.copy(SOURCE / 'examples/wdbc.csv', folder)
    here, names = os.getcwd(), {}
    os.chdir(folder)
    try:
        for cell in cells:
            source = ''.join(cell['source'])
            with warnings.catch_warnings():
                warnings.simplefilter('ignore', dml.TrainingWarning)
                found = execute(source, names)
            assert found == shown(cell), f'{source}\n{found}\nand not\n{shown(cell)}'
        shutil.rmtree(names['state'].parent)
    finally:
        os.chdir(here)


@test
def the_notebook_is_a_valid_one_of_version_4(folder):
    notebook = json.loads(NOTEBOOK.read_text())
    assert set(notebook) == {'cells', 'metadata', 'nbformat', 'nbformat_minor'} and notebook['nbformat_minor'] == 5
    ids = [cell['id'] for cell in notebook['cells']]
    assert len(set(ids)) == len(ids), ids
    code = [cell for cell in notebook['cells'] if cell['cell_type'] == 'code']
    assert [cell['execution_count'] for cell in code] == list(range(1, len(code) + 1))
    for cell in notebook['cells']:
        assert {'cell_type', 'id', 'metadata', 'source'} <= set(cell) and isinstance(cell['source'], list), cell
    assert NOTEBOOK.stat().st_size < 20000, 'outputs are small'


@test
def runs_are_listed_compared_and_published_as_the_program_does(folder):
    job, state = small_job(folder, holdout=0.3), folder / 'job.state'
    train(job, '--tag', 'first')
    program('run', job, '--set', 'l2=0.1')
    assert dml.jobs(state) == program('jobs', state, '--json').json['folders'][0]['runs']
    difference = dml.compare('first', 2, state)
    assert difference == program('jobs', '--diff', 1, 2, state, '--json').json
    assert repr(difference) == program('jobs', '--diff', 1, 2, state).stdout
    assert difference._repr_html_().startswith('<pre>A  run 1 of ')
    made = dml.publish('first', state, threshold='recall >= 0.9', tag='wide', note='few are missed')
    assert (made['run'], made['derived']) == (3, {'run': 1, 'set': {'threshold': 'recall >= 0.9'}}), made
    last = dml.jobs(state)[-1]
    assert (last['tag'], last['note'], last['publication']) == ('wide', 'few are missed', 'live'), last
    assert dml.rollback(state)['run'] == 1 and dml.rollback(state, to='wide')['run'] == 3
    assert dml.publish(2, state)['previous_run'] == 3


@test
def what_the_program_refuses_is_an_exception_and_what_it_warns_of_a_warning(folder):
    job, state = small_job(folder, holdout=0.3), folder / 'job.state'
    train(job)
    error = exception_of(dml.Error, dml.compare, 1, 9, state)
    assert error.code == -UNAVAILABLE and 'there is no run 9' in str(error), error
    error = exception_of(dml.JobError, dml.publish, 1, state, threshold=2)
    assert error.code == -USAGE and 'a probability from 0 to 1' in str(error), error
    exception_of(TypeError, dml.publish, 1)
    shutil.rmtree(state / 'packs')
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        dml.publish(1, state, threshold=0.3)
    assert [each.category for each in caught] == [dml.TrainingWarning] and 'left out' in str(caught[0].message)
    assert caught[0].filename == __file__, caught[0]


if __name__ == '__main__':
    sys.exit(main())
