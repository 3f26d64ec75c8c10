"""What rows of Python's become for the library. NumPy, pandas and SciPy are told by what their
objects have, so that none of them is imported here unless one of its objects is there."""

import array
import ctypes
import datetime
import math

EPOCH = datetime.datetime(1970, 1, 1)


def is_sparse(rows):
    return hasattr(rows, 'tocsr')


def is_frame(rows):
    return hasattr(rows, 'columns') and hasattr(rows, 'iloc')


def is_array(rows):
    return hasattr(rows, '__array__') and not is_frame(rows)


def returns_arrays(rows):
    return is_sparse(rows) or is_frame(rows) or is_array(rows)


# ---- cells ----

def is_missing(value):
    """None, NaN, and pandas' NaT and NA, none of which equals itself."""
    if value is None:
        return True
    if isinstance(value, (str, bytes, int)):
        return False
    try:
        return not value == value
    except TypeError:  # pandas.NA has no truth
        return True


def text_of(value, date_format):
    """The text that a CSV file would have."""
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode(errors='surrogateescape')
    if isinstance(value, datetime.date):
        return text_of_date(value, date_format)
    if hasattr(value, 'item'):  # a number of NumPy
        return text_of(value.item(), date_format)
    if isinstance(value, float) and value.is_integer() and abs(value) < 2 ** 53:
        return str(int(value))  # whole numbers become such where a column has missing cells
    return str(value)


def text_of_date(date, date_format):
    if date_format in (None, 'iso'):
        return date.isoformat()
    if date_format == 'epoch':
        if not isinstance(date, datetime.datetime):
            date = datetime.datetime(date.year, date.month, date.day)
        if date.tzinfo:
            date = date.astimezone(datetime.timezone.utc).replace(tzinfo=None)
        return repr((date - EPOCH).total_seconds())
    return date.strftime(date_format)


def encoded(text):
    if '\0' in text:
        raise ValueError(f'a text has a zero character: {text[:40]!r}')
    return text.encode(errors='surrogateescape')


class Cells:
    """The cells of a table, row by row: a text each, or else a number."""

    def __init__(self, columns, date_format):
        self.columns, self.date_format = columns, date_format
        self.texts, self.numbers = [], array.array('d')

    def append(self, value, kind):
        if is_missing(value):
            self.put(None, math.nan)
        elif kind in NUMBERS and not isinstance(value, (str, bytes)):
            self.put(None, float(value))
        else:
            self.put(encoded(text_of(value, self.date_format)), 0.0)

    def put(self, text, number):
        self.texts.append(text)
        self.numbers.append(number)

    def fill(self, rows):
        texts = (ctypes.c_char_p * len(self.texts))(*self.texts)
        rows.texts, rows.numbers = ctypes.addressof(texts), self.numbers.buffer_info()[0]
        rows.count = len(self.texts) // self.columns if self.columns else 0
        return texts, self.numbers


NUMBERS = ('number', 'offset', 'exposure')
