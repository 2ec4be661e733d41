"""SIGTERM and SIGHUP end the program through its `finally` blocks, as Ctrl-C does; nothing interrupts the clean-up."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn


class Interrupted(BaseException):
    """A signal asked the program to end. Like KeyboardInterrupt no Exception, so that no handler swallows it."""

    def __init__(self, signum: int) -> None:
        super().__init__(f"ended by {signal.Signals(signum).name}")
        self.exit_code = 128 + signum


@contextmanager
def interrupts_raise() -> Iterator[None]:
    """Within the block SIGINT, SIGTERM and SIGHUP raise `Interrupted` once; further ones wait for the clean-up."""
    handled = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def raise_once(signum: int, _frame: FrameType | None) -> NoReturn:
        for each in handled:
            signal.signal(each, signal.SIG_IGN)
        raise Interrupted(signum)

    previous = {each: signal.signal(each, raise_once) for each in handled}
    try:
        yield
    finally:
        for each, handler in previous.items():
            signal.signal(each, handler)
