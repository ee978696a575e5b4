# Holds parsed documents from before and since.
import json

text = json.dumps([{"id": i, "name": f"user {i}", "tags": [str(i), "x" * 40]} for i in range(4000)])
before = [json.loads(text) for _ in range(4)]
attach()  # noqa: F821 (tests/line_shares.py)
since = [json.loads(text) for _ in range(4)]
index = {row["name"]: row for document in since for row in document}
texts = [json.dumps(document) for document in since]
before.pop()
