"""A cache of pages whose key is the whole address."""

CACHE = {}


def cached(function):
    def wrapper(number):
        key = f"/article?id={number}&t={number * 7}"
        if key not in CACHE:
            CACHE[key] = function(number)
        return CACHE[key]

    return wrapper


@cached
def render(number):
    return "".join(f"<li>article {number}.{n}</li>" for n in range(10_000))
