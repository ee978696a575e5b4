"""Reads protobuf messages without their schema: {field number: [value, …]}.

A value is an integer, or bytes: a text, a message of its own, or a packed list.
"""

from __future__ import annotations


def varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        shift += 7
        if byte < 0x80:
            return value, at


def message(data: bytes) -> dict[int, list]:
    fields: dict[int, list] = {}
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == 0:
            value, at = varint(data, at)
        else:
            assert tag & 7 == 2, f"wire type {tag & 7} at byte {at}"
            length, at = varint(data, at)
            value = data[at : at + length]
            assert len(value) == length, "cut short"
            at += length
        fields.setdefault(tag >> 3, []).append(value)
    return fields


def packed(data: bytes) -> list[int]:
    numbers, at = [], 0
    while at < len(data):
        number, at = varint(data, at)
        numbers.append(number)
    return numbers
