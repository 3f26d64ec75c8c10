"""What rows of Python's become for the library: cells that are texts as training reads them from CSV,
JSON Lines and Parquet, or numbers. NumPy, pandas, SciPy, polars and Arrow are told by what their objects
have, so that none of them is imported here unless one of its objects is there."""

import array
import ctypes
import datetime
import decimal
import math
import sys

EPOCH = datetime.datetime(1970, 1, 1)
NUMBERS = ('number', 'offset', 'exposure')


# ---- forms of rows ----

def is_sparse(rows):
    return hasattr(rows, 'tocsr')


def is_frame(rows):
    """A DataFrame of pandas, or of what has its interface."""
    return hasattr(rows, 'iloc') and hasattr(rows, 'columns')


def is_series(rows):
    """One column, of pandas, polars or Arrow."""
    return type(rows).__name__ in ('Series', 'ChunkedArray') or (hasattr(rows, 'iloc') and not is_frame(rows))


def is_arrow(rows):
    """A table of Arrow, polars, DuckDB or whatever else has Arrow's C stream interface."""
    if is_frame(rows) or is_series(rows):
        return False
    return hasattr(rows, '__arrow_c_stream__') or (hasattr(rows, '__arrow_c_array__') and hasattr(rows, 'schema'))


def is_array(rows):
    """An array of NumPy, or what becomes one."""
    return hasattr(rows, '__array__') and not is_frame(rows) and not is_arrow(rows)


def returns_arrays(rows):
    return is_sparse(rows) or is_frame(rows) or is_array(rows) or is_arrow(rows)


def array_of(rows):
    """The same as an array of NumPy, which they may be."""
    import numpy
    return rows if isinstance(rows, numpy.ndarray) else numpy.asarray(rows)


def arrow_columns(rows):
    """The names of the columns, and the cells of each."""
    try:
        import pyarrow
    except ImportError:
        raise TypeError(f'to read {type(rows).__name__} pyarrow must be installed; else give the rows as dicts, '
                        'as to_dicts() of polars makes them') from None
    table = rows if isinstance(rows, pyarrow.Table) else pyarrow.table(rows)
    return table.column_names, [arrow_cells(column, pyarrow) for column in table.columns], table.num_rows


def is_arrow_number(kind, pyarrow):
    return pyarrow.types.is_floating(kind) or pyarrow.types.is_integer(kind) or pyarrow.types.is_boolean(kind)


def has_more_than_numbers(rows):
    """Whether a table of Arrow has columns that are no numbers, or missing cells."""
    import pyarrow
    return any(not is_arrow_number(column.type, pyarrow) or column.null_count for column in pyarrow.table(rows).columns)


def arrow_cells(column, pyarrow):
    kind = column.type
    if pyarrow.types.is_dictionary(kind):  # of texts, which are those of its levels, or of what has a type
        kind = kind.value_type
        column = column if str(kind).endswith('_view') else column.cast(kind)
    if pyarrow.types.is_float32(kind):
        return [None if value is None else narrow(value) for value in column.to_pylist()]
    if pyarrow.types.is_duration(kind) or pyarrow.types.is_timestamp(kind) or pyarrow.types.is_time(kind):
        counts = column.cast(pyarrow.int32() if kind.bit_width == 32 else pyarrow.int64()).to_pylist()
        of = Duration if pyarrow.types.is_duration(kind) else Moment if pyarrow.types.is_timestamp(kind) else TimeOfDay
        zone = zone_of(kind.tz) if of is Moment and kind.tz else None
        return [None if count is None else of(count, kind.unit, zone) for count in counts]
    return column.to_pylist()


def zone_of(name):
    """A zone by its name, or a distance from UTC as +02:00."""
    if name[:1] in ('+', '-'):
        hours, minutes = int(name[1:3]), int(name[-2:])
        return datetime.timezone((1 if name[0] == '+' else -1) * datetime.timedelta(hours=hours, minutes=minutes))
    import zoneinfo
    return datetime.timezone.utc if name == 'UTC' else zoneinfo.ZoneInfo(name)


def frame_cells(series):
    """The cells of a column of a DataFrame, none of which has lost what its type says."""
    kind = getattr(series.dtype, 'numpy_dtype', series.dtype)
    if hasattr(series.dtype, 'pyarrow_dtype'):
        import pyarrow
        return arrow_cells(pyarrow.chunked_array([pyarrow.array(series)]), pyarrow)
    if hasattr(series, 'cat'):
        levels, codes = frame_cells(series.cat.categories.to_series()), series.cat.codes.tolist()
        return [levels[code] if code >= 0 else None for code in codes]
    if str(kind) == 'float32':
        return [None if is_missing(value) else narrow(value) for value in series.tolist()]
    if str(kind).startswith('timedelta64['):
        return array_cells(series.to_numpy())
    return series.tolist()


def array_cells(values):
    """The same of an array of one dimension."""
    kind = str(values.dtype)
    if kind == 'float32':
        return [narrow(value) for value in values.tolist()]
    if values.dtype.kind in 'mM':
        of, unit = Duration if values.dtype.kind == 'm' else Moment, kind[kind.index('[') + 1:-1]
        if unit not in UNITS:
            values, unit = values.astype(f'{kind[:kind.index("[")]}[s]'), 's'
        return [None if count == NOT_A_TIME else of(count, unit) for count in values.astype('int64').tolist()]
    return values.tolist()


# ---- cells ----

UNITS = {'s': 1, 'ms': 1000, 'us': 1000000, 'ns': 1000000000}
NOT_A_TIME = -1 << 63


def fraction_of(rest, unit):
    """The digits of a unit behind the seconds, as Arrow writes them."""
    return f'.{unit + rest}'.replace('.1', '.', 1) if unit > 1 else ''


class Duration:
    """A number of units."""

    def __init__(self, count, unit, zone=None):
        self.count, self.unit = count, UNITS[unit]


class Moment:
    """The moment so many units after the year 1970 began, where clocks show `zone` if it is known."""

    def __init__(self, count, unit, zone=None):
        self.unit, self.zone = UNITS[unit], zone
        seconds, self.rest = divmod(count, self.unit)
        self.date = EPOCH + datetime.timedelta(seconds=seconds)
        if zone:
            self.date = self.date.replace(tzinfo=datetime.timezone.utc).astimezone(zone)

    def fraction(self):
        return fraction_of(self.rest, self.unit)


class TimeOfDay:
    """So many units after midnight."""

    def __init__(self, count, unit, zone=None):
        seconds, rest = divmod(count, UNITS[unit])
        self.text = f'{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{fraction_of(rest, UNITS[unit])}'


class narrow(float):
    """A number of 32 bits: the one that its shortest text means, as 0.1 is where its neighbours are
    further from it than 0.1."""

    def __new__(cls, value):
        return super().__new__(cls, shortest(value))


def shortest(value):
    if not math.isfinite(value):
        return value
    for digits in range(6, 10):
        text = f'{value:.{digits - 1}e}'
        if ctypes.c_float(float(text)).value == value:
            break
    if value and abs(value) < 2 ** -126:  # these have fewer digits
        text = next(few for few in (f'{value:.{digits}e}' for digits in range(9))
                    if ctypes.c_float(float(few)).value == value)
    return float(text)


def is_missing(value):
    """None, NaN, and pandas' NaT and NA, none of which equals itself."""
    if value is None:
        return True
    if isinstance(value, (str, bytes, int)):
        return False
    try:
        return not value == value
    except (TypeError, ValueError):  # pandas.NA has no truth, nor has an array
        return not hasattr(value, '__len__')


def plain(value):
    """A number, truth or time of NumPy as one of the above or of Python's own."""
    kind = getattr(value, 'dtype', None)
    if kind is None or not hasattr(value, 'item') or getattr(value, 'shape', ()):
        return value
    if getattr(value, 'mask', False):
        return None
    if kind.kind in 'mM' or str(kind) == 'float32':
        return array_cells(value.reshape(1))[0]
    return value.item()


def text_of_number(value):
    """The shortest text, with an exponent above 10 digits and below 1e-6, as Arrow writes it."""
    if not math.isfinite(value):
        return 'nan' if math.isnan(value) else 'inf' if value > 0 else '-inf'
    sign, digits, exponent = decimal.Decimal(float.__repr__(float(value))).as_tuple()
    digits = ''.join(map(str, digits))
    power = len(digits) + exponent - 1 if value else 0
    digits = digits.rstrip('0') or '0'
    if not value:
        text = '0'
    elif power < -6 or power > 9:
        text = f'{digits[0]}{"." if digits[1:] else ""}{digits[1:]}e{power:+}'
    elif power < 0:
        text = f'0.{"0" * (-power - 1)}{digits}'
    elif len(digits) <= power + 1:
        text = digits + '0' * (power + 1 - len(digits))
    else:
        text = f'{digits[:power + 1]}.{digits[power + 1:]}'
    return ('-' if math.copysign(1, value) < 0 else '') + text


def text_of(value, kind, date_format):
    """The text that training reads."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value).decode(errors='surrogateescape')
    if isinstance(value, bool):
        return 'true' if value else 'false'
    if isinstance(value, (Moment, datetime.date)):
        return text_of_date(value, date_format if kind == 'date' else None)
    if isinstance(value, (Duration, datetime.timedelta)):
        return str(duration_of(value).count)
    if isinstance(value, datetime.time):
        return f'{value:%H:%M:%S}{fraction_of(value.microsecond, 1000000)}'
    if isinstance(value, TimeOfDay):
        return value.text
    if isinstance(value, float):
        return text_of_number(value)
    if isinstance(value, decimal.Decimal):
        return format(value, 'f')
    if isinstance(value, (list, tuple, dict, set)) or hasattr(value, '__array__'):
        raise TypeError(f'a cell is a {type(value).__name__}, and not a number, a text, a truth or a time')
    return str(value)


def number_of(value, kind):
    if not isinstance(value, (Duration, datetime.timedelta)):
        return float(value)
    duration = duration_of(value)
    unit = kind.unit or duration.unit
    return float(duration.count) * max(unit // duration.unit, 1) / max(duration.unit // unit, 1)


def duration_of(value):
    """Python's own durations have microseconds, as Arrow takes them for; pandas' have units of their own."""
    if hasattr(value, 'asm8'):
        value = plain(value.asm8)
    return value if isinstance(value, Duration) else Duration(value // datetime.timedelta(microseconds=1), 'us')


class Kind(str):
    """The kind of a column, and of durations how many units a second has."""

    def __new__(cls, column):
        self = super().__new__(cls, column['kind'])
        self.unit = column.get('unit')
        return self


def text_of_date(date, date_format):
    if date_format not in (None, 'iso', 'epoch'):
        return (date.date if isinstance(date, Moment) else date).strftime(date_format)
    if not isinstance(date, (Moment, datetime.datetime)):
        if date_format != 'epoch':
            return date.isoformat()
        date = datetime.datetime(date.year, date.month, date.day)
    if isinstance(date, Moment):
        date, fraction = date.date, date.fraction()
    else:
        unit = UNITS[getattr(date, 'unit', 'us')]  # of pandas
        fraction = fraction_of((date.microsecond * 1000 + getattr(date, 'nanosecond', 0)) // (10 ** 9 // unit), unit)
    if date_format == 'epoch':
        if date.tzinfo:
            date = date.astimezone(datetime.timezone.utc).replace(tzinfo=None)
        whole = (date.replace(microsecond=0) - EPOCH) // datetime.timedelta(seconds=1)
        return repr(whole + float(fraction or 0))
    return f'{date.year:04}-{date.month:02}-{date.day:02} {date.hour:02}:{date.minute:02}:{date.second:02}' \
           f'{fraction}{text_of_zone(date)}'


def text_of_zone(date):
    if date.tzinfo is None:
        return ''
    away = date.utcoffset() // datetime.timedelta(minutes=1)
    if str(date.tzinfo) in ('UTC', 'Etc/UTC', 'UTC+00:00'):
        return 'Z'
    return f'{"-" if away < 0 else "+"}{abs(away) // 60:02}{abs(away) % 60:02}'


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
        value = plain(value)
        if is_missing(value):
            self.put(None, math.nan)
        elif kind in NUMBERS and not isinstance(value, (str, bytes, datetime.date, Moment)):
            self.put(None, number_of(value, kind))
        else:
            self.put(encoded(text_of(value, kind, self.date_format)), 0.0)

    def put(self, text, number):
        self.texts.append(text)
        self.numbers.append(number)

    def fill(self, rows, count):
        """Points the rows to the cells, of which there must be so many."""
        assert len(self.texts) == len(self.numbers) == count * self.columns
        texts = (ctypes.c_char_p * len(self.texts))(*self.texts)
        rows.texts, rows.numbers, rows.count = ctypes.addressof(texts), self.numbers.buffer_info()[0], count
        return texts, self.numbers
