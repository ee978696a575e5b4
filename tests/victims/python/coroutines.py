"""Coroutines that take turns: coroutines.py greenlet|gevent COROUTINES TURNS ends|asks|dies.

Each keeps a block in its first turn, and makes one that passes in every turn. They start and go on at different depths of
the stack. After all turns the last one ends the program: in order, after a request that is refused, or by SIGKILL.
"""

import functools
import os
import signal
import sys

KEPT, PASSING, TOO_MUCH = 200_003, 100_003, 1 << 46

kind, all_of_them, turns, end = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
kept = []
checksum = 0


def keep_in_coroutine():
    kept.append(bytearray(KEPT))


def pass_in_coroutine(number):
    global checksum
    checksum = (checksum * 31 + len(bytearray(PASSING)) + number) % 1_000_003


def end_in_coroutine():
    if end == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        bytearray(TOO_MUCH)
    except MemoryError:
        print("refused")


def body(number, switch):
    keep_in_coroutine()
    for _ in range(turns):
        pass_in_coroutine(number)
        switch()
    if number == all_of_them - 1 and end != "ends":
        end_in_coroutine()


def below(depth, function):
    """Calls the function below as many C calls, which no recorder may take for the coroutine's."""
    if depth == 0:
        function()
    else:
        sorted([None], key=lambda _: below(depth - 1, function))


def with_greenlet():
    from greenlet import getcurrent, greenlet

    main = getcurrent()
    coroutines = [greenlet(body) for _ in range(all_of_them)]
    for turn in range(turns + 1):
        for number, coroutine in enumerate(coroutines):
            words = (number, main.switch) if turn == 0 else ()
            below((turn + number) % 7, functools.partial(coroutine.switch, *words))


def with_gevent():
    import gevent

    gevent.joinall([gevent.spawn(body, number, gevent.sleep) for number in range(all_of_them)])


with_greenlet() if kind == "greenlet" else with_gevent()
print(checksum, len(kept))
