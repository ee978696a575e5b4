"""The data in a report's page, read without a browser."""

import base64
import json
import re
import struct
import zlib
from array import array

TYPES = {"u8": "B", "u16": "H", "u32": "I", "f64": "d"}


class Page:
    """Page(html).json is the page's JSON, page["row_node"] one of its arrays."""

    def __init__(self, html: str):
        self.html = html
        (data,) = re.findall(r'<script type="application/octet-stream" id="data">([^<]*)<', html)
        self.inflated = zlib.decompress(base64.b64decode(data, validate=True))
        (length,) = struct.unpack_from("<I", self.inflated)
        self.json = json.loads(self.inflated[4 : 4 + length])
        self._arrays = self.inflated[(4 + length + 7) // 8 * 8 :]

    def __getitem__(self, name: str) -> array:
        row = self.json["arrays"][name]
        values = array(TYPES[row["type"]])
        end = row["offset"] + row["length"] * values.itemsize
        assert row["offset"] % 8 == 0 and end <= len(self._arrays)
        values.frombytes(self._arrays[row["offset"] : end])
        return values

    def rows(self):
        """(space, live bytes, live count, node) of each row."""
        spaces = [space["name"] for space in self.json["spaces"]]
        return zip(
            [spaces[number] for number in self["row_space"]],
            self["row_live_bytes"],
            self["row_live_count"],
            self["row_node"],
        )

    def functions(self, node: int) -> list[str]:
        """The functions of a stack, innermost first."""
        parents, locations = self["node_parent"], self["node_place"]
        names, strings = self["place_function"], self.json["strings"]
        found = []
        while node:
            found.append(strings[names[locations[node]]])
            node = parents[node]
        return found
