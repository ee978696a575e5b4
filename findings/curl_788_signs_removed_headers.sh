#!/bin/bash
# curl 7.88's --aws-sigv4 signs a header that -H 'Name:' has removed, so every S3 store answers 403.
#
# Seen with curl 7.88.1 (Debian 12) and libcurl 8.23.0 (in pycurl 7.49.0, PyPI), Python 3.11: `-H 'Expect:'` is curl's documented way
# to send a request without that header. 7.88.1 sends none, but names it in SignedHeaders, so a store that computes the signature
# of what it got finds another one (SeaweedFS 4.48: SignatureDoesNotMatch). With 8.23.0 it is neither sent nor signed.
# A tool that uploads with the curl of a stable distribution cannot switch off "Expect: 100-continue" this way;
# --expect100-timeout 0.001 has the same effect.
set -eu
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
python3.11 -m venv "$work/v"
"$work/v/bin/pip" install -q --only-binary :all: pycurl==7.49.0
cd "$work"; printf body > body
"$work/v/bin/python" - > "$work/seen" <<'P'
import http.server, io, re, subprocess, threading
import pycurl

class Handler(http.server.BaseHTTPRequestHandler):
    def do_PUT(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        signed = re.search("SignedHeaders=([^,]*)", self.headers["Authorization"])[1].split(";")
        print(self.headers["X-Client"], "signed:", "expect" in signed, "sent:", "Expect" in self.headers)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()
    def log_message(self, *_): pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
url, provider = f"http://127.0.0.1:{server.server_port}/bucket/name", "aws:amz:us-east-1:s3"
version = subprocess.run(["curl", "--version"], capture_output=True, text=True).stdout.split()[1]
subprocess.run(["curl", "-sS", "-T", "body", "-H", "Expect:", "-H", f"X-Client: curl {version}",
                "--user", "key:secret", "--aws-sigv4", provider, url], check=True)
curl = pycurl.Curl()
for option, value in [(curl.URL, url), (curl.USERPWD, "key:secret"), (curl.AWS_SIGV4, provider), (curl.UPLOAD, 1), (curl.INFILESIZE, 4),
                      (curl.READDATA, io.BytesIO(b"body")),
                      (curl.HTTPHEADER, ["Expect:", f"X-Client: {pycurl.version.split()[1].replace('/', ' ')}"])]:
    curl.setopt(option, value)
curl.perform()
P
cat "$work/seen"
diff "$work/seen" - <<'S' && echo "as described"
curl 7.88.1 signed: True sent: False
libcurl 8.23.0 signed: False sent: False
S
