"""Models and scorers."""

import array
import collections.abc
import ctypes
import itertools
import json
import math
import operator
import os
import sys
import threading

from dml._library import Rows, Scores, load
from dml._rows import Cells, is_array, is_frame, is_sparse, returns_arrays

MISSING_COLUMNS = 1
LIBRARY = load()
version = LIBRARY.dml_version().decode()


class Error(Exception):
    """What the library says. `code` is as in dml-model(3), and `row` the row that was refused, from 0,
    if it was one."""

    def __init__(self, text, code=-65, row=None):
        super().__init__(text)
        self.code, self.row = code, row


def check(code, row=None):
    if code:
        raise Error(LIBRARY.dml_error_text().decode(errors='replace'), code, row)


class Handle:
    """What is freed when nothing refers to it any more; a scorer refers to its model."""

    def __init__(self, function, free, *arguments, owner=None):
        self.free, self.owner, self.pointer = free, owner, ctypes.c_void_p()
        check(function(*arguments, ctypes.byref(self.pointer)))

    def __del__(self):
        if self.pointer:
            self.free(self.pointer)


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


class Form:
    """Rows in one form: what makes a scorer for it, and the rows themselves, with all that they
    point to."""

    def __init__(self, key):
        self.key, self.rows, self.kept = key, Rows(), []

    def keep(self, found):
        kept, address = found
        self.kept.append(kept)
        return address


class Model:
    """A model that is open; see open()."""

    def __init__(self, path, missing_columns=False):
        self.flags = MISSING_COLUMNS if missing_columns else 0
        self.handle = Handle(LIBRARY.dml_model_open, LIBRARY.dml_model_close, os.fsencode(path))
        self.described = json.loads(LIBRARY.dml_model_description(self.handle.pointer))
        self.classes = self.described['classes']
        self.columns = [column['name'] for column in self.described['columns']]
        self.kinds = [column['kind'] for column in self.described['columns']]
        self.kind_of_name = dict(zip(self.columns, self.kinds))
        self.local = threading.local()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Unmaps the model, as soon as no thread scores with it any more."""
        self.handle, self.local = None, threading.local()

    def describe(self):
        """What the model is: the members are in dml-model(3)."""
        return json.loads(json.dumps(self.described))

    # ---- scores ----

    def predict(self, rows, columns=None, offsets=None, exposures=None):
        """The label of each row by the model's threshold, a list of labels where rows have several;
        or the value that is predicted.

        `columns` names the columns of rows that are lists or arrays: by default those of
        describe()['columns'], or the features 1, 2, … of a model that is not of a table."""
        width = self.described['labels']
        if not width:
            return self.predict_values(rows, columns, offsets, exposures)
        found, count = self.score(rows, columns, offsets, exposures, 'labels', width)
        if 'separator' in self.described:
            return [[name for name, has in zip(self.classes, found[i * width:(i + 1) * width]) if has]
                    for i in range(count)]
        labels = [self.classes[label] for label in found]
        return sys.modules['numpy'].array(labels) if returns_arrays(rows) else labels

    def predict_proba(self, rows, columns=None, offsets=None, exposures=None):
        """The probability of each class: a row for each row, in the order of describe()['classes']."""
        width = self.described['probabilities']
        found, count = self.score(rows, columns, offsets, exposures, 'probabilities', width)
        return shaped(found, count, width, rows, flat=False)

    def predict_values(self, rows, columns=None, offsets=None, exposures=None):
        """What `dml-coordinator predict` prints: a number for each row, or a list of them."""
        width = self.described['values']
        found, count = self.score(rows, columns, offsets, exposures, 'values', width)
        return shaped(found, count, width, rows, flat=width == 1)

    def predict_margins(self, rows, columns=None, offsets=None, exposures=None):
        """The margins of each row: what the classes of a classifier are told apart by."""
        width = self.described['margins']
        found, count = self.score(rows, columns, offsets, exposures, 'margins', width)
        return shaped(found, count, width, rows, flat=width == 1)

    def score(self, rows, columns, offsets, exposures, what, width):
        if self.handle is None:
            raise ValueError('the model is closed')
        if isinstance(rows, collections.abc.Mapping):
            raise TypeError('rows are a list of dicts, and one dict was given: put it into a list')
        form = (self.table_form if self.described['table'] else self.number_form)(rows, columns)
        if offsets is not None:
            form.rows.offsets = form.keep(numbers_beside(offsets, form.rows.count, 'offsets'))
        if exposures is not None:
            form.rows.exposures = form.keep(numbers_beside(exposures, form.rows.count, 'exposures'))
        kind = ctypes.c_int32 if what == 'labels' else ctypes.c_double
        found = (kind * (form.rows.count * width))()
        scores = Scores(**{what: ctypes.addressof(found)})
        if not width:  # the library says why
            scores = Scores(**{what: ctypes.addressof(kind())})
        scored = ctypes.c_size_t()
        code = LIBRARY.dml_score(self.scorer(form).pointer, form.rows, scores, scored)
        check(code, scored.value if code == -65 else None)
        return found, form.rows.count

    def scorer(self, form):
        """Of this thread; kept for rows of the same form."""
        if getattr(self.local, 'key', None) != form.key:
            self.local.scorer = self.new_scorer(*form.key)
            self.local.key = form.key
        return self.local.scorer

    def new_scorer(self, kind, count, names):
        free, model = LIBRARY.dml_scorer_free, self.handle
        if kind == 'sparse':
            return Handle(LIBRARY.dml_scorer_of_sparse, free, model.pointer, owner=model)
        if kind == 'ids':
            ids = (ctypes.c_uint64 * count)(*names) if names else None
            return Handle(LIBRARY.dml_scorer_of_ids, free, model.pointer, count, ids, owner=model)
        texts = names and (ctypes.c_char_p * count)(*[name.encode(errors='surrogateescape')
                                                      for name in names])
        return Handle(LIBRARY.dml_scorer_of_columns, free, model.pointer, count, texts, self.flags,
                      owner=model)

    # ---- rows of tables ----

    def table_form(self, rows, columns):
        if is_sparse(rows):
            raise TypeError('the model is of a table: give lists, dicts, an array or a DataFrame')
        if is_frame(rows):
            return self.frame_form(rows)
        if not is_array(rows):
            rows = list(rows)
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
        return next((column['kind'] for column in self.described['columns']
                     if column['place'] == place), None)

    def frame_form(self, frame):
        names = [str(name) for name in frame.columns]
        if None in self.columns:
            return self.cells_form(None, [self.kind_at(i) for i in range(len(names))],
                                   frame.itertuples(index=False, name=None), len(names))
        known = [i for i, name in enumerate(names) if name in self.kind_of_name]
        lists = [frame.iloc[:, i].tolist() for i in known]
        names = [names[i] for i in known]
        return self.cells_form(names, [self.kind_of(name) for name in names],
                               zip(*lists) if lists else [()] * len(frame), len(names))

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
        if is_array(rows) and rows.dtype.kind in 'biuf' and set(kinds) <= {'number', None}:
            check_width(rows, width)
            form.rows.count, form.rows.numbers = len(rows), form.keep(numbers_of(rows))
            return form
        cells = Cells(width, self.described.get('date_format'))
        for number, row in enumerate(rows):
            if len(row) != width:
                raise Error(f'rows[{number}]: {len(row)} cells, where there are {width} columns',
                            row=number)
            for value, kind in zip(row, kinds):
                cells.append(None if kind is None else value, kind)
        form.kept.append(cells.fill(form.rows))
        return form

    # ---- rows of numbers ----

    def number_form(self, rows, columns):
        if is_sparse(rows):
            return sparse_form(rows.tocsr())
        if is_frame(rows):
            rows = rows.to_numpy(dtype='float64')
        if fields_of(rows):
            raise TypeError('an array with named fields, and the model has numbers: give one of two '
                            'dimensions')
        if not is_array(rows):
            rows = list(rows)
            if rows and isinstance(rows[0], collections.abc.Mapping):
                return dicts_of_ids_form(rows)
        width = width_of(rows) if len(rows) or is_array(rows) or columns is None else len(columns)
        form = Form(('ids', width, ids_of(columns) if columns is not None else None))
        check_width(rows, width)
        if columns is not None and len(columns) != width:
            raise ValueError(f'{len(columns)} columns for rows of {width} numbers')
        form.rows.count = len(rows)
        form.rows.numbers = form.keep(numbers_of(rows if is_array(rows) else
                                                 itertools.chain.from_iterable(rows)))
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
    start = array.array('Q', [0, *itertools.accumulate(map(len, rows))])
    ids = array.array('Q', itertools.chain.from_iterable(rows))
    form.kept += [start, ids]
    form.rows.count = len(rows)
    form.rows.start, form.rows.ids = start.buffer_info()[0], ids.buffer_info()[0]
    form.rows.values = form.keep(numbers_of(itertools.chain.from_iterable(
        row.values() for row in rows)))
    return form


def shaped(found, count, width, rows, flat):
    if returns_arrays(rows):
        result = sys.modules['numpy'].ctypeslib.as_array(found)
        return result if flat else result.reshape(count, width)
    return list(found) if flat else [list(found[i * width:(i + 1) * width]) for i in range(count)]


def open(path, missing_columns=False):
    """Opens a model: its folder, its model.safetensors, or a state folder, which stands for its live
    model. With `missing_columns` a column that rows lack counts as missing in them; else its lack is
    an error."""
    return Model(path, missing_columns)
