"""Scores rows with the models of dml, in this process: what `dml-coordinator predict` prints, to the
last bit. See dml-model(3).

    import dml
    model = dml.open('adult.state')
    model.describe()['columns']
    model.predict([{'age': 39, 'workclass': 'State-gov', ...}])
    model.predict_proba(frame)

Rows are a list of dicts, of lists or of tuples, an array of NumPy, a DataFrame of pandas, a sparse
matrix of SciPy, or what has Arrow's C stream interface, as tables of pyarrow, polars and DuckDB; none of
these packages is needed. What comes back is an array where an array, a frame, a table or a matrix was
given, else a list.

A model may be used by several threads at once. Copies of it, and what pickle makes of it in another
process, open its path again.
"""

from dml._model import Error, Model, UnseenWarning, open, version

__all__ = ['Error', 'Model', 'UnseenWarning', 'open', 'version']
