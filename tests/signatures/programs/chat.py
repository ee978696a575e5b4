"""A chat server on asyncio: chat.py backlog|tasks|history."""

import asyncio
import sys

ROOMS = {"lobby": [], "work": []}


class Room:
    def __init__(self):
        self.backlog = []
        self.typing = []

    async def post(self, text):
        self.backlog.append(text.encode() * 50)
        await asyncio.sleep(0)

    async def announce(self, gate, text):
        body = text * 1000
        await gate.wait()
        return body


async def speak(room):
    number = 0
    while True:
        number += 1
        await room.post(f"message {number:05d} " * 500)
        await asyncio.sleep(0.012)


async def broadcast(room):
    gate, number = asyncio.Event(), 0
    while True:
        number += 1
        room.typing.append(asyncio.ensure_future(room.announce(gate, f"hello {number} " * 30)))
        await asyncio.sleep(0.012)


async def archive():
    while True:
        for name, lines in ROOMS.items():
            lines.append([name] + [f"{name} {n} {len(lines)}" for n in range(3000)])
        await asyncio.sleep(0.015)


async def compress():
    """The bystander."""
    while True:
        block = bytearray(2_500_000)
        await asyncio.sleep(0.05)
        del block


async def main():
    room = Room()
    work = {"backlog": lambda: speak(room), "tasks": lambda: broadcast(room), "history": archive}
    await asyncio.gather(work[sys.argv[1]](), compress())


asyncio.run(main())
