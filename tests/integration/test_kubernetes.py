"""The manifests and the webhook of docs/examples/kubernetes, against the published schemas of Kubernetes.

There is no cluster here: a patched pod is run as containers are, each in a pid namespace of its own.
"""

from __future__ import annotations

import base64
import contextlib
import copy
import http.client
import importlib.util
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time

import object_store
import pytest
from conftest import SOURCE

EXAMPLES = SOURCE / "docs" / "examples" / "kubernetes"
VERSIONS = ("1.29", "1.33", "1.37")  # the first with native sidecars, with the schemas' newest
SETTINGS = {"image": "example.com/oomrec:1", "url": "s3://oom/prod", "secret": "oomrec-store"}


@pytest.fixture(scope="module")
def webhook():
    spec = importlib.util.spec_from_file_location("webhook", EXAMPLES / "webhook.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def validate():
    """validate(object) fails unless it is valid, without unknown fields, in each of VERSIONS."""
    package = pytest.importorskip("kubernetes_validate", reason="kubernetes-validate is missing")

    def check(thing):
        for version in VERSIONS:
            package.validate(thing, version, strict=True)

    return check


def manifests(name):
    yaml = pytest.importorskip("yaml", reason="PyYAML is missing")
    return [each for each in yaml.safe_load_all((EXAMPLES / name).read_text()) if each]


def pod(labels={"oomrec/record": "true"}, annotations=None, user=1000, **changed):  # noqa: B006
    """A pod as a client sends it."""
    spec = {
        "containers": [
            {
                "name": "train",
                "image": "train:1",
                "command": ["python", "train.py"],
                "env": [{"name": "A", "value": "b"}],
                "volumeMounts": [{"name": "data", "mountPath": "/data"}],
            },
            {"name": "proxy", "image": "proxy:1"},
        ],
        "initContainers": [{"name": "fetch", "image": "fetch:1"}],
        "volumes": [{"name": "data", "emptyDir": {}}],
        "securityContext": {"runAsUser": user},
        **changed,
    }
    metadata = {"name": "train-0", "labels": labels}
    if annotations:
        metadata["annotations"] = annotations
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def review(thing):
    request = {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "operation": "CREATE",
        "object": thing,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


@pytest.fixture
def admit(webhook):
    """admit(pod) is (the pod after the patch, warnings). The answer is as the API server wants it."""
    jsonpatch = pytest.importorskip("jsonpatch", reason="jsonpatch is missing")

    def run(thing, settings=SETTINGS):
        asked = review(thing)
        answer = json.loads(webhook.review(json.dumps(asked).encode(), settings))
        response = answer.pop("response")
        assert answer == {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
        assert response.pop("uid") == asked["request"]["uid"] and response.pop("allowed") is True
        warnings = response.pop("warnings", [])
        assert all(len(each) <= 250 for each in warnings)
        if not response:
            return thing, warnings
        assert response.pop("patchType") == "JSONPatch" and list(response) == ["patch"]
        patch = json.loads(base64.b64decode(response["patch"]))
        return jsonpatch.apply_patch(copy.deepcopy(thing), patch), warnings

    return run


def environment(container):
    return {each["name"]: each.get("value") for each in container.get("env", [])}


@pytest.mark.parametrize("name", ["pod.yaml", "webhook.yaml"])
def test_manifests_are_valid(validate, name):
    found = manifests(name)
    for each in found:
        validate(each)
    assert len(found) == {"pod.yaml": 1, "webhook.yaml": 4}[name]


def test_schemas_know_a_wrong_manifest(validate):
    import kubernetes_validate

    [thing] = manifests("pod.yaml")
    thing["spec"]["initContainers"][0]["restartPolice"] = "Always"
    with pytest.raises(kubernetes_validate.ValidationError):
        validate(thing)


def test_the_webhook_is_asked_only_for_labelled_pods_and_may_fail():
    [found] = [each for each in manifests("webhook.yaml") if each["kind"].startswith("Mutating")]
    [hook] = found["webhooks"]
    assert hook["failurePolicy"] == "Ignore"
    assert hook["objectSelector"] == {"matchLabels": {"oomrec/record": "true"}}
    [service] = [each for each in manifests("webhook.yaml") if each["kind"] == "Service"]
    assert hook["clientConfig"]["service"]["name"] == service["metadata"]["name"]


def test_a_labelled_pod_is_recorded(admit, validate):
    before = pod()
    after, warnings = admit(before)
    validate(after)
    assert not warnings
    spec = after["spec"]
    install, sidecar, theirs = spec["initContainers"]
    assert theirs == before["spec"]["initContainers"][0]
    assert "restartPolicy" not in install and sidecar["restartPolicy"] == "Always"
    assert sidecar["command"] == "oomrec watch --ship s3://oom/prod /oomrec/sessions".split()
    assert sidecar["envFrom"] == [{"secretRef": {"name": "oomrec-store", "optional": True}}]
    assert spec["volumes"] == [*before["spec"]["volumes"], {"name": "oomrec", "emptyDir": {}}]
    for container, was in zip(spec["containers"], before["spec"]["containers"]):
        added = environment(container)
        assert added["LD_PRELOAD"] == "/oomrec/liboomrec.so"
        assert added["OOMREC_LABELS"] == f"k8s.container.name={was['name']}"
        assert added.items() >= environment(was).items()
        assert container["volumeMounts"][-1] == {"name": "oomrec", "mountPath": "/oomrec"}
        for each in ("env", "volumeMounts"):
            container.pop(each), was.pop(each, None)
        assert container == was  # nothing else has changed
    for each in (install, sidecar):
        context = each["securityContext"]
        assert context["runAsUser"] == 1000 and context["runAsNonRoot"]
        assert not context["allowPrivilegeEscalation"] and context["capabilities"] == {
            "drop": ["ALL"]
        }


def test_a_pod_is_patched_once(admit):
    once, _ = admit(pod())
    assert admit(once) == (once, [])


@pytest.mark.parametrize("labels", [None, {}, {"oomrec/record": "false"}, {"app": "x"}])
def test_other_pods_are_left_alone(admit, labels):
    thing = pod(labels)
    assert admit(thing) == (thing, [])


def test_the_example_pod_is_recorded_already(admit):
    [thing] = manifests("pod.yaml")
    thing["metadata"]["labels"] = {"oomrec/record": "true"}
    assert admit(thing) == (thing, [])


def test_a_pod_with_nothing_but_a_container(admit, validate):
    thing = pod(containers=[{"name": "one", "image": "one:1"}], volumes=None)
    del thing["spec"]["initContainers"]
    thing["metadata"].pop("name")  # generated later
    after, warnings = admit(thing)
    assert not warnings and len(after["spec"]["initContainers"]) == 2
    validate(after)


def test_named_containers_only(admit, validate):
    after, _ = admit(pod(annotations={"oomrec/containers": " proxy "}))
    validate(after)
    train, proxy = after["spec"]["containers"]
    assert "LD_PRELOAD" not in environment(train) and "LD_PRELOAD" in environment(proxy)


def test_settings_of_the_user_stay(admit):
    own = [
        {"name": "LD_PRELOAD", "value": "/usr/lib/libjemalloc.so.2"},
        {"name": "OOMREC_LABELS", "value": "team=x"},
        {"name": "OOMREC_LIMIT", "value": "8G"},
    ]
    after, _ = admit(pod(containers=[{"name": "one", "image": "one:1", "env": own}]))
    [container] = after["spec"]["containers"]
    names = [each["name"] for each in container["env"]]
    found = environment(container)
    assert len(names) == len(set(names))
    assert found["LD_PRELOAD"] == "/oomrec/liboomrec.so:/usr/lib/libjemalloc.so.2"
    assert found["OOMREC_LABELS"] == "team=x" and found["OOMREC_LIMIT"] == "8G"


def test_without_a_store_bundles_stay_on_the_volume(admit, validate):
    after, _ = admit(pod(), {**SETTINGS, "url": ""})
    validate(after)
    sidecar = after["spec"]["initContainers"][1]
    assert sidecar["command"] == ["oomrec", "watch", "/oomrec/sessions"] and not sidecar["envFrom"]


def test_the_sidecar_runs_as_the_containers_user(admit):
    containers = [
        {"name": "one", "image": "x", "securityContext": {"runAsUser": 0}},
        {"name": "two", "image": "x"},
    ]
    after, _ = admit(pod(annotations={"oomrec/containers": "one"}, containers=containers))
    context = after["spec"]["initContainers"][1]["securityContext"]
    assert context["runAsUser"] == 0 and not context["runAsNonRoot"]


@pytest.mark.parametrize(
    "changed, why",
    [
        ({"user": None}, "runAsUser is not set"),
        ({"annotations": {"oomrec/containers": "train,x"}}, "names x, which it does not have"),
        (
            {"containers": [{"name": "a", "securityContext": {"runAsUser": 5}}, {"name": "b"}]},
            "different users",
        ),
        ({"containers": []}, "runAsUser is not set"),
        ({"containers": "many"}, "containers are not as in the API"),
        ({"containers": ["one"]}, "containers are not as in the API"),
        ({"os": {"name": "windows"}}, "for Windows"),
        (
            {"containers": [{"name": "a", "env": [{"name": "LD_PRELOAD", "valueFrom": {}}]}]},
            "LD_PRELOAD of container a comes from elsewhere",
        ),
        (
            {"containers": [{"name": "a", "volumeMounts": [{"mountPath": "/oomrec/"}]}]},
            "another volume at /oomrec",
        ),
        ({"containers": [{"name": "a", "volumeMounts": [{"mountPath": 5}]}]}, "int"),
    ],
)
def test_a_pod_that_cannot_be_recorded_starts_with_a_warning(admit, changed, why):
    thing = pod(**changed)
    same, [warning] = admit(thing)
    assert same == thing and why in warning and "does not record" in warning


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[]", b"null", b'{"request": 5}', b'{"request": {"object": []}}', b"[" * 100_000]
    + [b"\xff\xfe", b'{"request": {"object": {"spec": 1, "metadata": {"labels": 7}}}}'],
)
def test_bad_input_is_allowed_with_a_message(webhook, data):
    response = json.loads(webhook.review(data, SETTINGS))["response"]
    assert response["allowed"] is True and "patch" not in response
    assert len(response["warnings"]) == 1


# --- over TLS --------------------------------------------------------------------------------------


@pytest.fixture
def served(webhook, tmp_path, monkeypatch):
    """A running webhook: a function that opens a connection which trusts its certificate."""
    if not shutil.which("openssl"):
        pytest.skip("not installed: openssl")

    def certificate():
        words = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=x"
        files = ["-keyout", "tls.key", "-out", "tls.crt", "-addext", "subjectAltName=DNS:localhost"]
        subprocess.run([*words.split(), *files], cwd=tmp_path, check=True, capture_output=True)

    certificate()
    monkeypatch.setattr(webhook.Server, "tls_dir", str(tmp_path))
    monkeypatch.setattr(webhook.Handler, "settings", SETTINGS)
    server = webhook.Server(("127.0.0.1", 0), webhook.Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()

    def connect():
        context = ssl.create_default_context(cafile=str(tmp_path / "tls.crt"))
        return http.client.HTTPSConnection(
            "localhost", server.server_port, timeout=300, context=context
        )

    connect.port, connect.renew = server.server_port, certificate
    yield connect
    server.shutdown()
    server.server_close()
    thread.join()


def post(connection, body, **headers):
    with contextlib.closing(connection):
        connection.request("POST", "/?timeout=5s", body, headers)
        response = connection.getresponse()
        return response.status, response.read()


def test_the_server_answers_over_tls(served):
    status, body = post(served(), json.dumps(review(pod())))
    assert status == 200 and json.loads(body)["response"]["patch"]
    connection = served()
    connection.request("GET", "/")
    assert connection.getresponse().status == 200
    connection.close()
    assert post(served(), b"", **{"Content-Length": str(9 << 20)})[0] == 413


def test_a_silent_client_does_not_hold_up_others_and_a_new_certificate_counts(served):
    with socket.create_connection(("127.0.0.1", served.port)):  # and no handshake
        assert post(served(), json.dumps(review(pod())))[0] == 200
        served.renew()
        assert post(served(), json.dumps(review(pod())))[0] == 200


# --- a patched pod, run ----------------------------------------------------------------------------

PROGRAM = "held = []\nwhile True: held.append(bytearray(1 << 20))"


@pytest.mark.needs_cgroup_write
@pytest.mark.needs_pid_namespace
def test_a_patched_pods_death_arrives_in_the_store(admit, build_dir, library, cgroup, tmp_path):
    """The kernel kills the program at its limit; the sidecar is in another pid namespace and cgroup."""
    store, volume, programs = (tmp_path / name for name in ("store", "volume", "bin"))
    for each in (store, volume, programs):
        each.mkdir()
    (programs / "oomrec").symlink_to(build_dir / "oomrec")
    program = {"name": "train", "image": "train:1", "command": [sys.executable, "-c", PROGRAM]}
    asked = pod(user=os.getuid(), containers=[program])
    del asked["spec"]["initContainers"]
    patched, _ = admit(asked, {**SETTINGS, "url": f"file://{store}"})
    text = json.dumps(patched["spec"])
    for before in ('"', " "):  # the volume is mounted elsewhere
        text = text.replace(f"{before}/oomrec", f"{before}{volume}")
    spec = json.loads(text)
    fields = {"metadata.name": "train-0", "metadata.namespace": "shop"}

    def start(container, enter=None):
        given = {
            each["name"]: each.get("value") or fields[each["valueFrom"]["fieldRef"]["fieldPath"]]
            for each in container.get("env", [])
        }
        base = {"PATH": f"{programs}:{os.environ['PATH']}", "OOMREC_LIBRARY": str(library)}
        words = ["unshare", "-fp", "--kill-child", "--mount-proc", *container["command"]]
        with (tmp_path / container["name"]).open("wb") as output:
            return subprocess.Popen(
                words, env={**base, **given}, stdout=output, stderr=output, preexec_fn=enter
            )

    install, sidecar = spec["initContainers"]
    assert start(install).wait(60) == 0, (tmp_path / "oomrec-install").read_text()
    watcher = start(sidecar)
    try:
        died = start(spec["containers"][0], cgroup("96M").enter)
        assert died.wait(120) != 0
        until = time.monotonic() + 60
        while not (  # a warning at 95 % of the limit comes before
            rows := [row for row in object_store.rows(store).values() if row["kind"] == "death"]
        ):
            said = (tmp_path / "oomrec").read_text()
            assert time.monotonic() < until and watcher.poll() is None, said
            time.sleep(0.1)
    finally:
        for pid in children(watcher.pid):
            os.kill(int(pid), signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            watcher.wait(60)
        watcher.kill()
    [row] = rows
    assert (row["namespace"], row["pod"], row["container"]) == ("shop", "train-0", "train")
    assert row["verdict"] in ("cgroup_oom_kill", "killed_near_limit"), row["summary"]
    assert row["holders"][0]["frames"][0]["function"] == "<module>"


def children(pid):
    """None, once the process is gone."""
    with contextlib.suppress(FileNotFoundError), open(f"/proc/{pid}/task/{pid}/children") as listed:
        return listed.read().split()
    return []
