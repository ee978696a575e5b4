# A threaded web server that keeps every session.
import json
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

sessions = {}


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        sessions[body["id"]] = {
            "user": body,
            "page": "<p>" + body["text"] * 3,
            "cart": list(range(300)),
        }
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"done")

    def log_message(self, *words):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()


def post(number):
    data = json.dumps({"id": number, "text": "some words " * 200}).encode()
    urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/", data).read()


for number in range(50):
    post(number)
attach()  # noqa: F821 (tests/line_shares.py)
for number in range(50, 1500):
    post(number)
server.shutdown()
