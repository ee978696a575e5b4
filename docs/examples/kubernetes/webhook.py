#!/usr/bin/env python3
"""A mutating webhook for Kubernetes: pods with the label oomrec/record: "true" are recorded, and their deaths shipped.

It adds a volume, an init container that puts the recorder's library there, LD_PRELOAD and its settings to the pod's
containers, and a sidecar that runs `oomrec watch --ship`. A pod that cannot be recorded starts as it is, with a warning
that kubectl shows; the webhook never refuses one. webhook.yaml has the manifests, README.md the steps.

Settings, as environment variables:
    OOMREC_IMAGE         of the init container and the sidecar: has the command oomrec
    OOMREC_SHIP_URL      where deaths go, as for `oomrec watch --ship`; empty: they stay on the volume
    OOMREC_STORE_SECRET  a secret in the pod's namespace, with AWS_ACCESS_KEY_ID and so on (oomrec-store)
    TLS_DIR              has tls.crt and tls.key (/tls)
    PORT                 (8443)
"""

import base64
import http.server
import json
import os
import ssl
import sys

VOLUME, MOUNT = "oomrec", "/oomrec"
LABEL, CONTAINERS = "oomrec/record", "oomrec/containers"  # the annotation: names, with commas
MOST_BYTES = 8 << 20
TIMEOUT_S = 10
RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}


class NotRecorded(Exception):
    """Why a pod stays as it is."""


def patch_of(pod, settings):
    """The operations of a JSON patch (RFC 6902) that records a pod. None if it does not ask for it, or has it already.

    Raises:
        NotRecorded: it cannot be recorded
    """
    metadata, spec = member(pod, "metadata", dict), member(pod, "spec", dict)
    if member(metadata, "labels", dict).get(LABEL) != "true":
        return []
    volumes = member(spec, "volumes", list)
    if any(volume.get("name") == VOLUME for volume in volumes):
        return []
    if member(spec, "os", dict).get("name") == "windows":
        raise NotRecorded("it is a pod for Windows")
    chosen = chosen_containers(spec, member(metadata, "annotations", dict).get(CONTAINERS, ""))
    user = user_of(spec, [container for _, container in chosen])
    volume_mount = {"name": VOLUME, "mountPath": MOUNT}
    first = [installer(user, volume_mount, settings), sidecar(user, volume_mount, settings)]
    operations = [
        operation("/spec/volumes", [*volumes, {"name": VOLUME, "emptyDir": {}}]),
        operation("/spec/initContainers", [*first, *member(spec, "initContainers", list)]),
    ]
    for index, container in chosen:
        path = f"/spec/containers/{index}"
        mounts = member(container, "volumeMounts", list)
        operations.append(operation(f"{path}/env", recorded_environment(container)))
        operations.append(operation(f"{path}/volumeMounts", [*mounts, volume_mount]))
    return operations


def operation(path, value):
    """Adds a member of an object, or puts the value in its place."""
    return {"op": "add", "path": path, "value": value}


def member(of, name, kind):
    """A list of objects, or an object; empty if it is missing or null."""
    value = of.get(name)
    if value is None:
        return kind()
    if not isinstance(value, kind) or (
        kind is list and not all(isinstance(each, dict) for each in value)
    ):
        raise NotRecorded(f"its {name} are not as in the API")
    return value


def chosen_containers(spec, names):
    """(index, container) of those that the annotation names; of all without one."""
    containers = list(enumerate(member(spec, "containers", list)))
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    if missing := set(wanted) - {container.get("name") for _, container in containers}:
        raise NotRecorded(
            f"{CONTAINERS} names {', '.join(sorted(missing))}, which it does not have"
        )
    chosen = [each for each in containers if not wanted or each[1].get("name") in wanted]
    for _, container in chosen:
        for each in member(container, "volumeMounts", list):
            if each.get("mountPath", "").rstrip("/") == MOUNT:
                raise NotRecorded(
                    f"container {container.get('name')} has another volume at {MOUNT}"
                )
    return chosen


def user_of(spec, containers):
    """Only its owner can read a recording, so the sidecar runs as the containers' user."""
    of_pod = member(spec, "securityContext", dict).get("runAsUser")
    users = {
        member(container, "securityContext", dict).get("runAsUser", of_pod)
        for container in containers
    }
    if None in users or not users:
        raise NotRecorded("runAsUser is not set, and the sidecar must run as the same user")
    if len(users) > 1:
        raise NotRecorded(
            f"its containers run as different users: name some of one in {CONTAINERS}"
        )
    return users.pop()


def security_context(user):
    return {**RESTRICTED, "runAsUser": user, "runAsNonRoot": user != 0}


def directories():
    return [
        {"name": "OOMREC_SESSION_DIR", "value": f"{MOUNT}/sessions"},
        {"name": "OOMREC_DUMP_DIR", "value": f"{MOUNT}/dumps"},
    ]


def recorded_environment(container):
    """The container's environment, with the recorder. What the user has set stays."""
    environment = list(member(container, "env", list))
    library = f"{MOUNT}/liboomrec.so"
    own = next((each for each in environment if each.get("name") == "LD_PRELOAD"), None)
    if own is None:
        environment.append({"name": "LD_PRELOAD", "value": library})
    elif "valueFrom" in own:
        raise NotRecorded(f"LD_PRELOAD of container {container.get('name')} comes from elsewhere")
    else:
        preloaded = ":".join(filter(None, [library, own.get("value")]))
        environment[environment.index(own)] = {"name": "LD_PRELOAD", "value": preloaded}
    field = {
        "POD_NAME": {"fieldRef": {"fieldPath": "metadata.name"}},
        "POD_NAMESPACE": {"fieldRef": {"fieldPath": "metadata.namespace"}},
    }
    added = [*directories(), *({"name": name, "valueFrom": of} for name, of in field.items())]
    added.append({"name": "OOMREC_LABELS", "value": f"k8s.container.name={container.get('name')}"})
    names = {each.get("name") for each in environment}
    return environment + [each for each in added if each["name"] not in names]


def installer(user, volume_mount, settings):
    copy = f'cp "$(oomrec lib)" {MOUNT}/new && mv {MOUNT}/new {MOUNT}/liboomrec.so'
    return {
        "name": "oomrec-install",
        "image": settings["image"],
        "command": ["sh", "-c", f"mkdir -p -m 700 {MOUNT}/sessions {MOUNT}/dumps && {copy}"],
        "securityContext": security_context(user),
        "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"memory": "64Mi"}},
        "volumeMounts": [volume_mount],
    }


def sidecar(user, volume_mount, settings):
    """A native sidecar: it starts before the containers, ends after them, and keeps no job from ending."""
    ship = ["--ship", settings["url"]] if settings["url"] else []
    secret = {"secretRef": {"name": settings["secret"], "optional": True}}
    return {
        "name": "oomrec",
        "image": settings["image"],
        "restartPolicy": "Always",
        "command": ["oomrec", "watch", *ship, f"{MOUNT}/sessions"],
        "env": directories(),
        "envFrom": [secret] if ship else [],
        "securityContext": security_context(user),
        "resources": {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}},
        "volumeMounts": [volume_mount],
    }


def review(data, settings):
    """The answer to an AdmissionReview, both as JSON. Whatever comes in, the pod is allowed."""
    response = {"uid": "", "allowed": True}
    try:
        request = member(json.loads(data), "request", dict)
        response["uid"] = str(request.get("uid", ""))
        if operations := patch_of(member(request, "object", dict), settings):
            patch = base64.b64encode(json.dumps(operations).encode()).decode()
            response.update(patchType="JSONPatch", patch=patch)
    except (NotRecorded, ValueError, TypeError, AttributeError, RecursionError) as error:
        response["warnings"] = [f"oomrec does not record this pod: {error}"[:250]]
    answer = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
    return json.dumps(answer).encode()


class Handler(http.server.BaseHTTPRequestHandler):
    timeout = TIMEOUT_S
    settings = {}

    def do_POST(self):
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > MOST_BYTES:
            return self.send_error(413)
        return self.answer("application/json", review(self.rfile.read(int(length)), self.settings))

    def do_GET(self):
        self.answer("text/plain", b"ok\n")  # for probes

    def answer(self, content, body):
        self.send_response(200)
        self.send_header("Content-Type", content)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    """Each connection has its thread, also for TLS's handshake, and reads the certificate, which may be a new one."""

    daemon_threads = True
    tls_dir = "/tls"

    def finish_request(self, request, client_address):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(f"{self.tls_dir}/tls.crt", f"{self.tls_dir}/tls.key")
        request.settimeout(TIMEOUT_S)
        with context.wrap_socket(request, server_side=True) as encrypted:
            super().finish_request(encrypted, client_address)

    def handle_error(self, request, client_address):
        print(f"{client_address[0]}: {sys.exc_info()[1]}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    Handler.settings = {
        "image": os.environ["OOMREC_IMAGE"],
        "url": os.environ.get("OOMREC_SHIP_URL", ""),
        "secret": os.environ.get("OOMREC_STORE_SECRET", "oomrec-store"),
    }
    Server.tls_dir = os.environ.get("TLS_DIR", Server.tls_dir)
    Server(("", int(os.environ.get("PORT", "8443"))), Handler).serve_forever()
