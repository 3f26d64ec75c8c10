"""Data in memory becomes files that the programs read: a table is written as Parquet, batch by batch, and an
array as .npy, a sparse matrix as the .npz that scipy.sparse.save_npz() writes: so no number passes through text, and
the model is that of the same file, to the bit.

None of the libraries is imported unless one of its objects is there."""

import collections.abc
import os

from dml._job import absolute, is_paths
from dml._programs import BAD_DATA, JobError
from dml._rows import array_of, is_array, is_arrow, is_arrow_number, is_frame, is_series, is_sparse

BATCH_ROWS = 1 << 18  # a batch of a table of 30 numbers has 60 MB
BESIDE = ('weights', 'offsets', 'exposures')


class Part:
    """The files of one part of the data: what is trained on, the test or the holdout. `keys` are those of the
    job file that name them, and `label` is the column of the label of a table."""

    def __init__(self, folder, name):
        self.folder, self.name, self.keys, self.label = folder, name, {}, None

    def path(self, ending):
        return os.path.join(self.folder, f'{self.name}{ending}')

    def put(self, rows, label=None, **beside):
        """Writes the rows, with a label for each where these are not a column of them."""
        if is_paths(rows):
            self.keys[self.name] = absolute(rows)
            if label is not None and not isinstance(label, (str, int)):
                raise TypeError('files have their labels in a column, which label names, or in other files, which the '
                                'key `labels` names')
            self.label = label
        elif is_sparse(rows):
            self.put_sparse(rows.tocsr(), label)
        elif is_array(rows) and array_of(rows).dtype.names is None and array_of(rows).dtype.kind in 'biuf':
            self.put_array(array_of(rows), label)
        else:
            self.put_table(rows, label)
        for key, numbers in beside.items():
            if numbers is not None:
                self.put_numbers(key, numbers)

    def key(self, name):
        return name if self.name == 'data' else f'{self.name}_{name}'

    def put_numbers(self, key, numbers):
        import numpy
        self.keys[self.key(key)] = path = self.path(f'.{key}.npy')
        numpy.save(path, numpy.asarray(list_of(numbers) if hasattr(numbers, 'to_pylist') else numbers, 'float64'))

    def put_array(self, rows, label):
        import numpy
        if rows.ndim < 2:
            raise ValueError(f'an array of shape {rows.shape}, and not of two dimensions')
        if label is None:
            raise TypeError('an array has no labels in it: give them by label')
        labels = numbers_of_labels(label, len(rows))
        self.keys[self.name], self.keys[self.key('labels')] = self.path('.npy'), self.path('.labels.npy')
        numpy.save(self.path('.npy'), numpy.ascontiguousarray(numbers_of(rows)))
        numpy.save(self.path('.labels.npy'), labels)

    def put_sparse(self, rows, label):
        """The feature of a column has its number, from 1. Values that a place has several times are added up by the
        program, as by SciPy."""
        import numpy
        if label is None:
            raise TypeError('a matrix has no labels in it: give them by label')
        labels = numbers_of_labels(label, rows.shape[0])
        self.keys[self.name], self.keys[self.key('labels')] = self.path('.npz'), self.path('.labels.npy')
        numpy.savez(self.path('.npz'), indices=rows.indices, indptr=rows.indptr, format=b'csr',
                    shape=numpy.array(rows.shape, 'int64'), data=numbers_of(rows.data))
        numpy.save(self.path('.labels.npy'), labels)

    def put_table(self, rows, label):
        pyarrow = arrow_for(rows)
        import pyarrow.parquet
        if label is not None and not isinstance(label, (str, int)):
            rows, label = with_labels(rows, label)
        batches = batches_of(rows, pyarrow)
        schema = batches.schema
        check_names(schema.names, label)
        texts = [field.name for field in schema if not is_arrow_number(field.type, pyarrow)]
        with pyarrow.parquet.ParquetWriter(self.path('.parquet'), schema, compression='none', use_dictionary=texts,
                                           write_statistics=False) as writer:
            for batch in batches:
                writer.write_batch(batch) if isinstance(batch, pyarrow.RecordBatch) else writer.write_table(batch)
        self.keys[self.name] = self.path('.parquet')
        self.label = label


def arrow_for(rows):
    try:
        import pyarrow
        return pyarrow
    except ImportError:
        raise TypeError(f'to train on a {type(rows).__name__} pyarrow must be installed: pip install pyarrow; else '
                        'give an array, or the path of a file') from None


class Tables:
    """Batches that have one schema."""

    def __init__(self, schema, tables):
        self.schema, self.tables = schema, tables

    def __iter__(self):
        return iter(self.tables)


def batches_of(rows, pyarrow):
    """The rows in batches, of which one is made at a time where the source is columns in memory."""
    if is_frame(rows):
        rows = rows.copy(deep=False)
        rows.columns = [str(name) for name in rows.columns]
        if any(kind == object for kind in rows.dtypes):  # whose type all their cells tell together
            try:
                table = pyarrow.Table.from_pandas(rows, preserve_index=False)
            except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError) as error:
                raise JobError('a column has cells of several types, or of a type that tables do not have: '
                               f'{"; ".join(map(str, error.args))}; frame[column].astype(str) makes strings of them',
                               -BAD_DATA) from error
            return Tables(table.schema, table.to_batches(BATCH_ROWS))
        schema = pyarrow.Schema.from_pandas(rows.iloc[:0], preserve_index=False)
        return Tables(schema, (pyarrow.Table.from_pandas(rows.iloc[first:first + BATCH_ROWS], schema, False)
                               for first in range(0, len(rows), BATCH_ROWS)))
    if isinstance(rows, pyarrow.Table):
        return Tables(rows.schema, rows.to_batches(BATCH_ROWS))
    if is_arrow(rows) and hasattr(rows, '__arrow_c_stream__'):
        return pyarrow.RecordBatchReader.from_stream(rows)
    if is_arrow(rows):
        batch = pyarrow.record_batch(rows)
        return Tables(batch.schema, [batch])
    if isinstance(rows, collections.abc.Mapping):
        table = pyarrow.table({str(name): cells for name, cells in rows.items()})
    elif is_array(rows) and array_of(rows).dtype.names:
        rows = array_of(rows)
        table = pyarrow.table({name: rows[name] for name in rows.dtype.names})
    elif isinstance(rows, (list, tuple)) and rows and isinstance(rows[0], collections.abc.Mapping):
        table = pyarrow.Table.from_pylist(list(rows))
    else:
        raise TypeError(f'data is a {type(rows).__name__}: give a DataFrame, a table with Arrow\'s C stream interface, '
                        'dicts of cells, an array of numbers, a sparse matrix, or paths of files')
    return Tables(table.schema, table.to_batches(BATCH_ROWS))


def with_labels(rows, label):
    """A table with one more column, of these labels, and its name."""
    if is_frame(rows):
        name = free_name([str(column) for column in rows.columns])
        if is_series(label) and hasattr(label, 'array'):
            label = label.array
        return rows.assign(**{name: label}), name
    import pyarrow
    table = pyarrow.table(rows) if is_arrow(rows) else pyarrow.Table.from_batches(list(batches_of(rows, pyarrow)))
    name = free_name(table.column_names)
    values = pyarrow.array(list_of(label))
    if len(values) != table.num_rows:
        raise ValueError(f'{len(values)} labels for {table.num_rows} rows')
    return table.append_column(name, values), name


def free_name(names):
    name = 'label'
    while name in names:
        name += '_'
    return name


def check_names(names, label):
    twice = [name for name, count in collections.Counter(names).items() if count > 1]
    if twice:
        raise ValueError(f'two columns are named {twice[0]!r}')
    if isinstance(label, str) and label not in names:
        raise ValueError(f'no column is named {label!r}, the label; the columns are {", ".join(map(repr, names))}')


def numbers_of(array):
    """The array, in a type that the program reads, with the same numbers as far as float64 has them."""
    return array.astype('float64') if array.dtype == 'float16' or array.dtype.itemsize > 8 else array


def list_of(values):
    if hasattr(values, 'to_pylist'):
        return values.to_pylist()
    return values.tolist() if hasattr(values, 'tolist') else list(values)


def numbers_of_labels(label, count):
    """Labels beside rows that are numbers, as an array of NumPy."""
    import numpy
    labels = numpy.asarray(label)
    labels = labels.ravel() if labels.ndim == 2 and labels.shape[1] == 1 else labels
    if labels.dtype.kind not in 'biuf':
        raise TypeError(f'labels are of type {labels.dtype}, and those of an array or a sparse matrix are numbers: '
                        'give their codes, as numpy.unique(labels, return_inverse=True) does, or a DataFrame')
    if labels.shape != (count,):
        raise ValueError(f'labels of shape {labels.shape} for {count} rows')
    return labels.astype('float64') if labels.dtype.itemsize > 8 or labels.dtype.kind == 'f' else labels
