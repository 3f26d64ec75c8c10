"""The live model of a state folder, for services that run for months."""

from __future__ import annotations

import os
import threading
import warnings
import weakref

from dml import _model


followers = weakref.WeakSet()


def renew_locks():
    """In a process that was forked: another thread of its parent may have held a lock."""
    for follower in list(followers):
        follower.lock = threading.Lock()


os.register_at_fork(after_in_child=renew_locks)


class Follower:
    """A model that is replaced when another one goes live; see follow(). It has the methods of Model.

    A call uses one model from its beginning to its end: calls that have begun when another model goes live end
    with the former one. Threads share the model; a process that is forked keeps it, and follows by itself."""

    def __init__(self, path, missing_columns=False):
        self.path, self.missing_columns = os.path.abspath(os.fsdecode(path)), missing_columns
        self.link = os.path.join(self.path, 'models', 'current')
        self.lock, self.refused = threading.Lock(), None
        self.live, self.opened = self._open()
        followers.add(self)

    def _open(self):
        """The name of the live model, and the model. One that is replaced while it is opened is opened again."""
        while True:
            live = os.readlink(self.link)
            try:
                return live, _model.open(os.path.join(self.path, 'models', live), self.missing_columns)
            except _model.Error:
                if os.readlink(self.link) == live:
                    raise

    @property
    def model(self) -> _model.Model:
        """The live model: a Model, which the caller may keep. If the new one cannot be opened, the former one stays
        in use, with a warning."""
        live = os.readlink(self.link) if os.path.islink(self.link) else self.live
        if live not in (self.live, self.refused):
            with self.lock:
                if live not in (self.live, self.refused):
                    try:
                        self.live, self.opened = self._open()
                        self.refused = None
                    except (_model.Error, OSError) as error:
                        self.refused = live
                        warnings.warn(f'{self.path}: the model that went live cannot be opened, and {self.live} stays '
                                      f'in use: {error}', RuntimeWarning, 3)
        return self.opened

    def __getattr__(self, name):
        if name in ('opened', 'live', 'lock') or name.startswith('__'):
            raise AttributeError(name)
        return getattr(self.model, name)

    def __reduce__(self):
        return type(self), (self.path, self.missing_columns)


def follow(path: str, missing_columns: bool = False) -> Follower:
    """Open the live model of a state folder, and another one as soon as it goes live.

    A model goes live by publish, rollback or retrain. Looking costs a microsecond a call.

    Parameters
    ----------
    path : path
        The state folder.
    missing_columns : bool
        As of dml.open().

    Returns
    -------
    Follower
        It has the methods of Model.

    Examples
    --------
    >>> rows = [{'size': i % 5, 'bought': i % 5 > 2} for i in range(30)]
    >>> run = dml.train(rows, 'bought', l2=0.01, state='shop.state')
    >>> live = dml.follow('shop.state')
    >>> live.predict([{'size': 4}])
    ['true']
    """
    if not os.path.islink(os.path.join(path, 'models', 'current')):
        raise _model.Error(f'{os.fsdecode(path)} has no live model: dml-coordinator publish makes one live', -69)
    return Follower(path, missing_columns)
