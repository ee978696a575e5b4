"""web.py ROUNDS: Django renders pages and FastAPI answers with JSON, called without a network between them."""

import asyncio
import json
import sys

import django
from django.conf import settings
from django.http import JsonResponse
from django.template import engines
from django.test import Client
from django.urls import path
from fastapi import FastAPI
from pydantic import BaseModel

settings.configure(
    ROOT_URLCONF=__name__,
    ALLOWED_HOSTS=["*"],
    TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates"}],
)
django.setup()
rows = engines["django"].from_string(
    "{% for row in rows %}<li>{{ row.name }} {{ row.value|floatformat:2 }}</li>{% endfor %}"
)


def page(request):
    found = [{"name": f"row {number}", "value": number * 1.1} for number in range(40)]
    return JsonResponse({"html": rows.render({"rows": found})})


urlpatterns = [path("rows/", page)]


class Order(BaseModel):
    number: int
    names: list[str]


api = FastAPI()


@api.post("/orders")
def place(order: Order):
    return {"number": order.number, "names": [name.upper() for name in order.names]}


async def ask_api(number):
    """A request as a server would hand it over (ASGI)."""
    body = json.dumps({"number": number, "names": [f"thing {i}" for i in range(40)]}).encode()
    sent = []

    async def receive():
        return {"type": "http.request", "body": body}

    async def send(message):
        sent.append(message)

    scope = {
        "type": "http",
        "http_version": "1.1",
        "scheme": "http",
        "server": ("localhost", 80),
        "method": "POST",
        "path": "/orders",
        "query_string": b"",
        "headers": [(b"content-type", b"application/json")],
    }
    await api(scope, receive, send)
    assert sent[0]["status"] == 200, sent


async def ask_often(rounds):
    for number in range(rounds):
        await ask_api(number)


def main(rounds):
    client = Client()
    for _ in range(rounds):
        assert client.get("/rows/").status_code == 200
    asyncio.run(ask_often(rounds))


main(int(sys.argv[1]))
