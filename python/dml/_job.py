"""Job files: what keyword arguments become. Their keys and sections are those of dml.conf(5)."""

import collections.abc
import os
import pathlib

from dml._rows import plain

SECTIONS = ('csv', 'downpour', 'huber', 'tweedie', 'quantile', 'ordinal', 'multilabel', 'network', 'plugin', 'cost')
PATHS = ('data', 'test', 'holdout', *(f'{part}{name}' for part in ('', 'test_', 'holdout_')
                                      for name in ('labels', 'weights', 'offsets', 'exposures')))
ESCAPES = str.maketrans({'"': '\\"', '\\': '\\\\', '$': '\\$', '\n': '\\n', '\t': '\\t', '\r': '\\r'})


def text_of(value):
    """A value as job files have it. A tuple is a list; numbers keep all their digits."""
    value = plain(value)
    if isinstance(value, (list, tuple, set, frozenset)) or hasattr(value, 'tolist'):
        return '{ ' + ', '.join(text_of(element) for element in value) + ' }'
    if isinstance(value, collections.abc.Mapping):  # as the entries "COLUMN = VALUE" of `penalty`
        return text_of([f'{key} = {element}' for key, element in value.items()])
    if isinstance(value, bool):
        return 'true' if value else 'false'
    if isinstance(value, (int, float)):
        return repr(value).replace('+', '')
    if isinstance(value, (str, os.PathLike)):
        return '"' + os.fspath(value).translate(ESCAPES) + '"'
    raise TypeError(f'a value of a job is a {type(value).__name__}, and not a number, a text, a truth or a list')


def is_address(path):
    return '://' in path or path == '-'


def absolute(paths):
    """Paths of a job file are relative to it, and those of a call to the current folder."""
    if isinstance(paths, (str, os.PathLike)):
        path = os.fspath(paths)
        return path if is_address(path) else os.path.join(os.getcwd(), path)
    return [absolute(path) for path in paths]


def is_paths(value):
    """Whether it is a path, or a list of them."""
    if isinstance(value, (list, tuple)):
        return bool(value) and all(isinstance(entry, (str, os.PathLike)) for entry in value)
    return isinstance(value, (str, os.PathLike))


def by_sections(keys):
    """{'l2': …, 'csv': {'label': …}} of keys such as csv_label, and of sections that are dicts."""
    job = {}
    for name, value in keys.items():
        if value is None:
            continue
        section, _, key = name.partition('_')
        if name in SECTIONS and isinstance(value, collections.abc.Mapping):
            job.setdefault(name, {}).update(value)
        elif section in SECTIONS and key:
            job.setdefault(section, {})[key] = value
        else:
            job[name] = value
    return job


def write(path, job):
    lines = []
    for name, value in job.items():
        if name in SECTIONS:
            lines += [f'{name} {{', *(f'    {key} = {text_of(inner)}' for key, inner in value.items()), '}']
        else:
            lines.append(f'{name} = {text_of(absolute(value) if name in PATHS and is_paths(value) else value)}')
    pathlib.Path(path).write_text('\n'.join(lines) + '\n', errors='surrogateescape')
