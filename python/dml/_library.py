"""The shared library, by ctypes: what dml/model.h declares."""

import ctypes
import os
import pathlib
from ctypes import (POINTER, Structure, c_char_p, c_double, c_int, c_int32, c_size_t, c_uint,
                    c_uint64, c_void_p)

NAME = 'libdml.so.0'
HERE = pathlib.Path(__file__).resolve().parent


class Rows(Structure):
    _fields_ = [('count', c_size_t), ('texts', c_void_p), ('numbers', c_void_p), ('start', c_void_p),
                ('ids', c_void_p), ('values', c_void_p), ('offsets', c_void_p),
                ('exposures', c_void_p)]


class Scores(Structure):
    _fields_ = [('margins', c_void_p), ('values', c_void_p), ('probabilities', c_void_p),
                ('labels', c_void_p)]


class Explained(Structure):
    _fields_ = [('columns', c_size_t), ('names', POINTER(c_char_p)), ('base', POINTER(c_double))]


FUNCTIONS = {
    'dml_error_text': (c_char_p, []),
    'dml_version': (c_char_p, []),
    'dml_model_open': (c_int, [c_char_p, POINTER(c_void_p)]),
    'dml_model_close': (None, [c_void_p]),
    'dml_model_description': (c_char_p, [c_void_p]),
    'dml_scorer_of_columns': (c_int, [c_void_p, c_size_t, POINTER(c_char_p), c_uint,
                                      POINTER(c_void_p)]),
    'dml_scorer_of_ids': (c_int, [c_void_p, c_size_t, POINTER(c_uint64), POINTER(c_void_p)]),
    'dml_scorer_of_sparse': (c_int, [c_void_p, POINTER(c_void_p)]),
    'dml_scorer_free': (None, [c_void_p]),
    'dml_scorer_unseen': (c_uint64, [c_void_p, POINTER(c_uint64), POINTER(c_uint64)]),
    'dml_score': (c_int, [c_void_p, POINTER(Rows), POINTER(Scores), POINTER(c_size_t)]),
    'dml_scorer_explained': (c_int, [c_void_p, POINTER(Explained)]),
    'dml_explain': (c_int, [c_void_p, POINTER(Rows), POINTER(c_double), POINTER(c_size_t)]),
}


def build_folders():
    """Where a source tree may have been built: the folder that the environment names, and those of the tree."""
    tree = HERE.parents[1]
    return [pathlib.Path(folder) for folder in (os.environ.get('DML_BUILD'), tree / 'build', tree) if folder]


def candidates():
    """Where the library may be: what the environment names, beside this file as in a wheel, in the
    build folder of a source tree, and wherever the system has it."""
    if os.environ.get('DML_LIBRARY'):
        yield os.environ['DML_LIBRARY']
        return
    for folder in [HERE, *build_folders()]:
        if (folder / NAME).exists():
            yield str(folder / NAME)
    yield NAME


def declared(library):
    """It, with the types of its functions. One of another version may lack some."""
    for name, (result, arguments) in FUNCTIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


def load():
    refused = []
    for path in candidates():
        try:
            return declared(ctypes.CDLL(path))
        except OSError as error:
            refused.append(f'{path}: {error}' if path not in str(error) else str(error))
        except AttributeError as error:
            refused.append(f'{error}; it is of another version than this package')
    raise ImportError(f'{"; ".join(refused)}. Build it with `./bootstrap && mkdir build && cd build && '
                      f'../configure && make libdml.so.0`, install it (Debian: libdml0, of the version of '
                      f'python3-dml), or set DML_LIBRARY to the path of {NAME}')
