"""Models and scorers."""

from __future__ import annotations

import array
import collections.abc
import ctypes
import io
import itertools
import json
import math
import operator
import os
import sys
import threading
import warnings
from typing import Any

from dml._library import Explained, Rows, Scores, load
from dml._rows import (Cells, Kind, array_of, arrow_columns, frame_cells, is_array, is_arrow, is_frame, is_series,
                       is_sparse, returns_arrays)

MISSING_COLUMNS = 1
USAGE = -64
MUTE_ROWS_LEAST = 10
PLAIN_NUMBERS = ('bool', 'float64', *(f'{sign}int{bits}' for sign in ('', 'u') for bits in (8, 16, 32, 64)))
LIBRARY = load()
version = LIBRARY.dml_version().decode()


class Error(Exception):
    """What the library says. `code` is as in dml-model(3), and `row` the row that was refused, from 0,
    if it was one."""

    def __init__(self, text, code=-65, row=None):
        super().__init__(text)
        self.code, self.row = code, row


class Explanation(collections.namedtuple('Explanation', 'contributions base columns')):
    """What Model.explain() returns; dml-model(3) says what contributions are.

    Parameters
    ----------
    contributions : lists or array
        Rows × columns, or rows × margins × columns where rows have several margins: an array where an array, a frame
        or a table was given. The base, a row's contributions and its offset add up to its margin.
    base : float or list of float
        The margin of a row that has the training means; a list, one a class, where rows have several margins.
    columns : list of str
        The names of the columns that contribute.
    """

    def frame(self, margin=None):
        """Return the contributions as a DataFrame of pandas, with a row for each row and a column for each column.

        Parameters
        ----------
        margin : int, optional
            The place of one of several margins.
        """
        import pandas
        if isinstance(self.base, float) != (margin is None):
            raise ValueError('rows have one margin: leave `margin` out' if isinstance(self.base, float) else
                             f'rows have {len(self.base)} margins: give the place of one')
        return pandas.DataFrame([row if margin is None else row[margin] for row in self.contributions],
                                columns=list(self.columns), dtype='float64')


class UnseenWarning(UserWarning):
    """A column says nothing: it is missing, or has texts that training did not have, in all of many rows."""


class Refused(Error, ValueError, TypeError):
    """Rows, or what stands beside them, that are not as they must be."""


def check(code, row=None):
    if code:
        raise Error(LIBRARY.dml_error_text().decode(errors='replace'), code, row)


class Handle:
    """What is freed when nothing refers to it any more. A collector of garbage, or the end of the
    interpreter, may free a model before its scorers: the library keeps it until the last is gone."""

    def __init__(self, function, free, *arguments):
        self.free, self.pointer = free, ctypes.c_void_p()
        check(function(*arguments, ctypes.byref(self.pointer)))

    def __del__(self):
        if self.pointer:
            self.free(self.pointer)


class Users:
    """The threads that score with a model, for whom close() waits. A process that was forked has none of
    them but its own."""

    def __init__(self):
        self.closed = False
        self.begin()

    def begin(self):
        self.process, self.changed, self.threads = os.getpid(), threading.Condition(), []

    def here(self):
        if self.process != os.getpid():
            self.begin()
        return self.changed

    def __enter__(self):
        with self.here():
            if self.closed:
                raise ValueError('the model is closed')
            self.threads.append(threading.get_ident())

    def __exit__(self, *_):
        with self.here():
            if threading.get_ident() in self.threads:  # it was not forked off meanwhile
                self.threads.remove(threading.get_ident())
            self.changed.notify_all()

    def close(self):
        """Lets nobody in any more, and waits until the others are out. At the end of the interpreter
        threads may stand still for ever."""
        with self.here():
            self.closed = True
            self.changed.wait_for(lambda: sys.is_finalizing() or
                                  set(self.threads) <= {threading.get_ident()})


def numbers_of(values):
    """Doubles in memory, and where they are. What is masked of an array of NumPy is missing."""
    if is_array(values):
        if hasattr(values, 'mask') and hasattr(values, 'filled'):
            values = values.astype('float64').filled(math.nan)
        found = sys.modules['numpy'].ascontiguousarray(values, dtype='float64')
        return found, found.ctypes.data
    found = array.array('d', values)
    return found, found.buffer_info()[0]


def numbers_beside(values, count, name):
    """The same of a number for each row."""
    found, address = numbers_of(values)
    size = found.size if is_array(found) else len(found)
    if size != count:
        raise ValueError(f'{size} {name} for {count} rows')
    return found, address


def rows_of(rows):
    """A list of rows, each of which has cells."""
    if isinstance(rows, collections.abc.Iterable):
        rows = list(rows)
        if not rows or hasattr(rows[0], '__len__') and not isinstance(rows[0], (str, bytes)):
            return rows
    raise TypeError(f'rows are a list of dicts or lists, and this was given: {rows!r:.60}')


class Form:
    """Rows in one form: what makes a scorer for it, and the rows themselves, with all that they
    point to."""

    def __init__(self, key):
        self.key, self.rows, self.kept, self.mute = key, Rows(), [], []

    def has(self, number, name):
        """Whether the rows have a column of the model."""
        kind, count, names = self.key
        return name in names if names is not None else number < count

    def keep(self, found):
        kept, address = found
        self.kept.append(kept)
        return address

    def keep_numbers(self, rows, width):
        """Of an array: of the copy that the library reads the shape is what counts."""
        found, self.rows.numbers = numbers_of(rows)
        self.kept.append(found)
        check_width(found, width)
        self.rows.count = found.shape[0]


class Model:
    """A model that is open; see open()."""

    def __init__(self, path, missing_columns=False):
        self.path, self.flags = os.path.abspath(os.fsdecode(path)), MISSING_COLUMNS if missing_columns else 0
        self.users = Users()
        self.handle = Handle(LIBRARY.dml_model_open, LIBRARY.dml_model_close, os.fsencode(path))
        self.described = json.loads(LIBRARY.dml_model_description(self.handle.pointer))
        self.classes = self.described['classes']
        self.columns = [column['name'] for column in self.described['columns']]
        self.kinds = [Kind(column) for column in self.described['columns']]
        self.kind_of_name = dict(zip(self.columns, self.kinds))
        self.local = threading.local()
        self.unseen = {}  # of each column: how many texts, or words of texts, training did not have, so far

    def __repr__(self):
        classes = f' of the classes {", ".join(map(repr, self.classes[:5]))}' if self.classes else ''
        more = f' and {len(self.classes) - 5} more' if len(self.classes or ()) > 5 else ''
        return f'<dml.Model {self.described["objective"]}{classes}{more}, {len(self.columns)} columns: {self.path}>'

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self) -> None:
        """Unmap the model, as soon as no thread scores with it any more.

        Calls of others that have begun end first, and later ones are refused.
        """
        self.users.close()
        self.handle, self.local = None, threading.local()

    def __reduce__(self):
        """Copies, and what pickle makes in other processes, open the path again."""
        if self.users.closed:
            raise ValueError('the model is closed')
        return type(self), (self.path, bool(self.flags))

    def describe(self) -> dict:
        """What the model is: the members are in dml-model(3)."""
        return json.loads(json.dumps(self.described))

    @property
    def about(self) -> dict:
        """How the model came about: its folder, hash and objective, and the result of its run, as
        `dml-coordinator run --json` prints it. None for a run that another model has replaced meanwhile."""
        folder = os.path.realpath(self.path)
        folder = next((place for place in (os.path.join(folder, 'models', 'current'), folder)
                       if os.path.isfile(os.path.join(place, 'model.json'))), os.path.dirname(folder))
        with io.open(os.path.join(folder, 'model.json')) as file:
            told = json.load(file)
        same = told['model_sha256'] == self.described['sha256']
        return {'path': self.path, 'model_sha256': self.described['sha256'], 'objective': self.described['objective'],
                'result': told['result'] if same else None}

    # ---- scores ----

    def predict(self, rows: Any, columns: Any = None, offsets: Any = None, exposures: Any = None) -> Any:
        """Predict the label of each row by the model's threshold, or its value.

        Parameters
        ----------
        rows : list of dicts or lists, DataFrame, table, array or sparse matrix
            As dml.train() takes them, without labels.
        columns : sequence of str, optional
            The names of the columns of rows that are lists or arrays: by default those of describe()['columns'], or
            the features 1, 2, … of a model that is not of a table.
        offsets, exposures : sequences of numbers, optional
            A number for each row, of models that were trained with them.

        Returns
        -------
        list or array
            An array where an array, a frame, a table or a matrix was given. Where rows have several labels, a list of
            them each.

        Examples
        --------
        >>> rows = [{'size': i % 5, 'bought': i % 5 > 2} for i in range(30)]
        >>> model = dml.train(rows, 'bought', l2=0.01).model
        >>> model.predict([{'size': 4}, {'size': 0}])
        ['true', 'false']
        >>> model.predict([[4], [0]], columns=['size'])
        ['true', 'false']
        """
        width = self.described['labels']
        if not width:
            return self.predict_values(rows, columns, offsets, exposures)
        found, count = self.score(rows, columns, offsets, exposures, 'labels', width)
        if 'separator' in self.described:
            return [[name for name, has in zip(self.classes, found[i * width:(i + 1) * width]) if has]
                    for i in range(count)]
        labels = [self.classes[label] for label in found]
        numpy = numpy_for(rows)
        return numpy.array(labels) if numpy else labels

    def predict_proba(self, rows: Any, columns: Any = None, offsets: Any = None, exposures: Any = None) -> Any:
        """Predict the probability of each class, in the order of describe()['classes'].

        Parameters
        ----------
        rows : list of dicts or lists, DataFrame, table, array or sparse matrix
            As dml.train() takes them, without labels.
        columns : sequence of str, optional
            The names of the columns of rows that are lists or arrays: by default those of describe()['columns'], or
            the features 1, 2, … of a model that is not of a table.
        offsets, exposures : sequences of numbers, optional
            A number for each row, of models that were trained with them.

        Returns
        -------
        list of lists or array
        """
        width = self.described['probabilities']
        found, count = self.score(rows, columns, offsets, exposures, 'probabilities', width)
        return shaped(found, count, width, rows, flat=False)

    def predict_values(self, rows: Any, columns: Any = None, offsets: Any = None, exposures: Any = None) -> Any:
        """Predict what `dml-coordinator predict` prints: a number for each row, or a list of them.

        Parameters
        ----------
        rows : list of dicts or lists, DataFrame, table, array or sparse matrix
            As dml.train() takes them, without labels.
        columns : sequence of str, optional
            The names of the columns of rows that are lists or arrays: by default those of describe()['columns'], or
            the features 1, 2, … of a model that is not of a table.
        offsets, exposures : sequences of numbers, optional
            A number for each row, of models that were trained with them.

        Returns
        -------
        list or array
        """
        width = self.described['values']
        found, count = self.score(rows, columns, offsets, exposures, 'values', width)
        return shaped(found, count, width, rows, flat=width == 1)

    def predict_margins(self, rows: Any, columns: Any = None, offsets: Any = None, exposures: Any = None) -> Any:
        """Compute the margins of each row, by which a classifier separates its classes.

        Parameters
        ----------
        rows : list of dicts or lists, DataFrame, table, array or sparse matrix
            As dml.train() takes them, without labels.
        columns : sequence of str, optional
            The names of the columns of rows that are lists or arrays: by default those of describe()['columns'], or
            the features 1, 2, … of a model that is not of a table.
        offsets, exposures : sequences of numbers, optional
            A number for each row, of models that were trained with them.

        Returns
        -------
        list or array
        """
        width = self.described['margins']
        found, count = self.score(rows, columns, offsets, exposures, 'margins', width)
        return shaped(found, count, width, rows, flat=width == 1)

    def explain(self, rows, columns=None, offsets=None, exposures=None):
        """Compute what each column contributes to the margins of each row, against the training means.

        Parameters
        ----------
        rows : list of dicts or lists, DataFrame, table, array or sparse matrix
            As dml.train() takes them, without labels.
        columns : sequence of str, optional
            The names of the columns of rows that are lists or arrays: by default those of describe()['columns'], or
            the features 1, 2, … of a model that is not of a table.
        offsets, exposures : sequences of numbers, optional
            A number for each row, of models that were trained with them.

        Returns
        -------
        Explanation

        Examples
        --------
        >>> rows = [{'size': i % 5, 'town': 'ab'[i % 2], 'price': i % 5 + 2.0 * (i % 2)} for i in range(30)]
        >>> found = dml.train(rows, 'price', objective='squared', l2=0).model.explain(rows[:1])
        >>> found.columns
        ['size', 'town']
        >>> [round(number, 6) for number in found.contributions[0]], round(found.base, 6)
        ([-2.0, -1.0], 3.0)
        """
        form = self.form_beside(rows, columns, offsets, exposures)
        margins = self.described['margins']
        with self.users:
            code, explained, names, base, found = self.call_explain(form, margins)
        check(code, explained if code == -65 else None)
        self.warn_of_mute(form, explained)
        count, width = form.rows.count, len(names)
        contributions = shaped(found, count * margins, width, rows, flat=False)
        if margins > 1:
            contributions = contributions.reshape(count, margins, width) if is_array(contributions) else [
                contributions[i * margins:(i + 1) * margins] for i in range(count)]
        return Explanation(contributions, base if margins > 1 else base[0], names)

    def call_explain(self, form, margins):
        """A function of its own, as call() is. It copies what is the scorer's."""
        scorer, explained, done = self.scorer(form), Explained(), ctypes.c_size_t()
        code = LIBRARY.dml_scorer_explained(scorer.pointer, explained)
        if code:
            return code, 0, [], [], None
        names = [name.decode(errors='replace') for name in explained.names[:explained.columns]]
        found = (ctypes.c_double * (form.rows.count * margins * len(names)))()
        code = LIBRARY.dml_explain(scorer.pointer, form.rows, found, done)
        if self.described['table']:
            self.note_unseen(scorer, form, done.value)
        return code, done.value, names, explained.base[:margins], found

    def form_beside(self, rows, columns, offsets, exposures):
        form = self.form(rows, columns)
        if offsets is not None:
            form.rows.offsets = form.keep(numbers_beside(offsets, form.rows.count, 'offsets'))
        if exposures is not None:
            form.rows.exposures = form.keep(numbers_beside(exposures, form.rows.count, 'exposures'))
        return form

    def score(self, rows, columns, offsets, exposures, what, width):
        form = self.form_beside(rows, columns, offsets, exposures)
        kind = ctypes.c_int32 if what == 'labels' else ctypes.c_double
        found = (kind * (form.rows.count * width))()
        scores = Scores(**{what: ctypes.addressof(found)})
        if not width:  # the library says why
            scores = Scores(**{what: ctypes.addressof(kind())})
        with self.users:
            code, scored = self.call(form, scores)
        check(code, scored if code == -65 else None)
        self.warn_of_mute(form, scored, 4)
        return found, form.rows.count

    @staticmethod
    def warn_of_mute(form, rows, level=3):
        for name, unseen in form.mute:
            warnings.warn(f'column {name}: ' + (
                f'none of {rows} rows has a text that training had: it adds nothing to the scores' if unseen else
                f'missing in each of {rows} rows'), UnseenWarning, level)

    def call(self, form, scores):
        """A function of its own, as it must be over before close() goes on: it holds the scorer, and so the
        model."""
        scorer, scored = self.scorer(form), ctypes.c_size_t()
        code = LIBRARY.dml_score(scorer.pointer, form.rows, scores, scored)
        if self.described['table']:
            self.note_unseen(scorer, form, scored.value)
        return code, scored.value

    def note_unseen(self, scorer, form, rows):
        unseen, known = (ctypes.c_uint64 * len(self.columns))(), (ctypes.c_uint64 * len(self.columns))()
        if LIBRARY.dml_scorer_unseen(scorer.pointer, unseen, known):
            with self.users.here():
                for number, count in enumerate(unseen):
                    if count:
                        name = self.name_at(number)
                        self.unseen[name] = self.unseen.get(name, 0) + count
        if rows >= MUTE_ROWS_LEAST and not all(known):
            form.mute = [(self.name_at(number), unseen[number]) for number, count in enumerate(known)
                         if not count and (unseen[number] or form.has(number, self.columns[number]))]

    def name_at(self, number):
        name = self.columns[number]
        return self.described['columns'][number]['place'] if name is None else name

    def form(self, rows, columns):
        """The rows as the library takes them."""
        if self.users.closed:
            raise ValueError('the model is closed')
        if isinstance(rows, collections.abc.Mapping):
            raise Refused('rows are a list of dicts, and one dict was given: put it into a list', USAGE)
        if is_series(rows):
            raise Error(f'rows are a table, and one {type(rows).__name__} was given: to_frame() makes a column of '
                        'it, and to_frame().T a row', USAGE)
        if isinstance(rows, (str, bytes)):
            raise Error('rows are a list of dicts or lists, and a text was given', USAGE)
        try:
            rows = array_of(rows) if is_array(rows) and not is_sparse(rows) else rows
            return (self.table_form if self.described['table'] else self.number_form)(rows, columns)
        except (Error, MemoryError):
            raise
        except (ValueError, TypeError) as error:
            raise Refused(f'{error}', USAGE) from error
        except Exception as error:  # of whatever library the rows are of
            raise Error(f'rows of type {type(rows).__name__} cannot be read: {error}', USAGE) from error

    def scorer(self, form):
        """Of this thread; kept for rows of the same form."""
        if getattr(self.local, 'key', None) != form.key:
            self.local.scorer = self.new_scorer(*form.key)
            self.local.key = form.key
        return self.local.scorer

    def new_scorer(self, kind, count, names):
        free, model = LIBRARY.dml_scorer_free, self.handle.pointer
        if kind == 'sparse':
            return Handle(LIBRARY.dml_scorer_of_sparse, free, model)
        if kind == 'ids':
            ids = (ctypes.c_uint64 * count)(*names) if names else None
            return Handle(LIBRARY.dml_scorer_of_ids, free, model, count, ids)
        texts = None if names is None else (ctypes.c_char_p * count)(
            *[name.encode(errors='surrogateescape') for name in names])
        return Handle(LIBRARY.dml_scorer_of_columns, free, model, count, texts, self.flags)

    # ---- rows of tables ----

    def table_form(self, rows, columns):
        if is_sparse(rows):
            raise TypeError('the model is of a table: give lists, dicts, an array or a DataFrame')
        if is_frame(rows):
            return self.columns_form([str(name) for name in rows.columns],
                                     [lambda i=i: frame_cells(rows.iloc[:, i]) for i in range(rows.shape[1])],
                                     len(rows))
        if is_arrow(rows):
            names, cells, count = arrow_columns(rows)
            return self.columns_form(names, [lambda i=i: cells[i] for i in range(len(cells))], count)
        if not is_array(rows):
            rows = rows_of(rows)
            if rows and isinstance(rows[0], collections.abc.Mapping):
                return self.dicts_form(rows)
        if columns is None:
            columns = fields_of(rows) or self.columns
        if None in columns:  # the table had no header line: its columns have places
            width = width_of(rows)
            return self.cells_form(None, [self.kind_at(place) for place in range(width)], rows)
        names = [str(name) for name in columns]
        return self.cells_form(names, [self.kind_of(name) for name in names], rows)

    def kind_of(self, name):
        """The kind of a column; None: the model does not know it."""
        return self.kind_of_name.get(name)

    def kind_at(self, place):
        return next((Kind(column) for column in self.described['columns']
                     if column['place'] == place), None)

    def columns_form(self, names, columns, count):
        """Of columns that have these names, and functions that give the cells of each."""
        placed = None in self.columns
        kinds = [self.kind_at(i) if placed else self.kind_of(name) for i, name in enumerate(names)]
        known = [i for i in range(len(names)) if placed or names[i] in self.kind_of_name]
        lists = [columns[i]() if kinds[i] else [None] * count for i in known]
        return self.cells_form(None if placed else [names[i] for i in known], [kinds[i] for i in known],
                               zip(*lists) if lists else [()] * count, len(known))

    def dicts_form(self, rows):
        if None in self.columns:
            raise TypeError('the table had no header line: give rows as lists, by places')
        if not self.flags:
            for number, row in enumerate(rows):
                for name in self.columns:
                    if name not in row:
                        raise Error(f'rows[{number}]: the column "{name}" is missing, which the data '
                                    'that was trained on has', row=number)
        return self.cells_form(self.columns, self.kinds,
                               ([row.get(name) for name in self.columns] for row in rows))

    def cells_form(self, names, kinds, rows, width=None):
        """Cells of columns that the model does not know are not looked at."""
        width = len(kinds) if width is None else width
        form = Form(('columns', width, tuple(names) if names is not None else None))
        if is_array(rows) and str(rows.dtype) in PLAIN_NUMBERS and set(kinds) <= {'number', None}:
            check_width(rows, width)
            form.keep_numbers(rows, width)
            return form
        cells = Cells(width, self.described.get('date_format'))
        count = 0
        for number, row in enumerate(rows):
            row, count = tuple(row), count + 1  # what it says of its length is not asked
            if len(row) != width:
                raise Error(f'rows[{number}]: {len(row)} cells, where there are {width} columns',
                            row=number)
            for place, (value, kind) in enumerate(zip(row, kinds)):
                try:
                    cells.append(None if kind is None else value, kind)
                except (TypeError, ValueError, OverflowError) as error:
                    name = names[place] if names else place + 1
                    raise Refused(f'rows[{number}]: column {name}: {error}', row=number) from error
        form.kept.append(cells.fill(form.rows, count))
        return form

    # ---- rows of numbers ----

    def number_form(self, rows, columns):
        if is_sparse(rows):
            return sparse_form(rows.tocsr())
        if is_frame(rows):
            rows = rows.to_numpy(dtype='float64')
        if is_arrow(rows):
            rows = list(zip(*arrow_columns(rows)[1]))
        if fields_of(rows):
            raise TypeError('an array with named fields, and the model has numbers: give one of two '
                            'dimensions')
        if not is_array(rows):
            rows = list(rows)
            if rows and isinstance(rows[0], collections.abc.Mapping):
                return dicts_of_ids_form(rows)
            rows = [tuple(row) for row in rows]  # what they say of their lengths is not asked
        width = width_of(rows) if len(rows) or is_array(rows) or columns is None else len(columns)
        form = Form(('ids', width, ids_of(columns) if columns is not None else None))
        check_width(rows, width)
        if columns is not None and len(columns) != width:
            raise ValueError(f'{len(columns)} columns for rows of {width} numbers')
        if is_array(rows):
            form.keep_numbers(rows, width)
        else:
            form.rows.count = len(rows)
            form.rows.numbers = form.keep(numbers_of(itertools.chain.from_iterable(rows)))
        return form


def width_of(rows):
    """How many cells the first row has; of an array, each."""
    if is_array(rows):
        return rows.shape[1] if rows.ndim == 2 else 0
    return len(rows[0]) if rows else 0


def fields_of(rows):
    """The names that an array of NumPy gives its columns, or None."""
    return rows.dtype.names if is_array(rows) else None


def ids_of(columns):
    ids = tuple(operator.index(column) for column in columns)
    if ids and not 0 <= min(ids) <= max(ids) < 1 << 64:
        raise ValueError(f'ids of features are 0 to 2^64 - 1, and {min(ids)} and {max(ids)} are given')
    return ids


def check_width(rows, width):
    if is_array(rows):
        if rows.ndim != 2 or rows.shape[1] != width:
            raise ValueError(f'an array of shape {rows.shape}, and not of (rows, {width})')
        return
    for number, row in enumerate(rows):
        if len(row) != width:
            raise Error(f'rows[{number}]: {len(row)} numbers, where the first has {width}', row=number)


def sparse_form(matrix):
    """A column's feature has its number, from 1."""
    form, numpy = Form(('sparse', 0, None)), sys.modules['numpy']
    matrix.check_format()  # the library reads as far as it says
    if not matrix.has_canonical_format:
        matrix = matrix.copy()  # it may be the caller's, whom other threads may share it with
        matrix.sum_duplicates()
    start, ids = (numpy.ascontiguousarray(part, dtype='uint64')
                  for part in (matrix.indptr, matrix.indices + numpy.int64(1)))
    form.kept += [start, ids]
    form.rows.count, form.rows.start, form.rows.ids = matrix.shape[0], start.ctypes.data, ids.ctypes.data
    form.rows.values = form.keep(numbers_of(matrix.data))
    return form


def dicts_of_ids_form(rows):
    form = Form(('sparse', 0, None))
    rows = [dict(row) for row in rows]  # what they say of their lengths is not asked
    start = array.array('Q', [0, *itertools.accumulate(map(len, rows))])
    ids = array.array('Q', itertools.chain.from_iterable(rows))
    form.kept += [start, ids]
    form.rows.count = len(rows)
    form.rows.start, form.rows.ids = start.buffer_info()[0], ids.buffer_info()[0]
    form.rows.values = form.keep(numbers_of(itertools.chain.from_iterable(
        row.values() for row in rows)))
    return form


def numpy_for(rows):
    """NumPy, where what comes back is an array of it; tables of Arrow may be there without it."""
    if not returns_arrays(rows):
        return None
    try:
        import numpy
        return numpy
    except ImportError:
        return None


def shaped(found, count, width, rows, flat):
    numpy = numpy_for(rows)
    if numpy:
        result = numpy.ctypeslib.as_array(found)
        return result if flat else result.reshape(count, width)
    return list(found) if flat else [list(found[i * width:(i + 1) * width]) for i in range(count)]


def open(path: str, missing_columns: bool = False) -> Model:
    """Open a model.

    Parameters
    ----------
    path : path
        The folder of the model, its model.safetensors, or a state folder, which stands for its live model.
    missing_columns : bool
        Whether a column that rows lack counts as missing in them; else its lack is an error.

    Returns
    -------
    Model

    Examples
    --------
    >>> rows = [{'size': i % 5, 'bought': i % 5 > 2} for i in range(30)]
    >>> dml.train(rows, 'bought', l2=0.01).save('bought')
    >>> dml.open('bought').describe()['classes']
    ['false', 'true']
    """
    return Model(path, missing_columns)
