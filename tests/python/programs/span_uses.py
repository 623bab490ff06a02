# SPDX-License-Identifier: MIT
"""Every use of greenprof.span. Argument: recorded, where a capture is written, or absent."""
import asyncio
import contextlib
import sys
import threading

import greenprof

recorded = sys.argv[1] == "recorded"
span = greenprof.span


def refuses(error, function, *args, **kw):
    try:
        function(*args, **kw)
    except error as why:
        return str(why)
    raise AssertionError(f"{args} {kw}: no {error.__name__}")


class Broken(Exception):
    def __str__(self):
        raise RuntimeError("it cannot be shown")


class Unfit:
    def __str__(self):
        raise ValueError("unfit")


# Wrong arguments are refused, whether the span would be recorded or not.
assert "external_command" in refuses(ValueError, span, "none", "x")
refuses(ValueError, span, None, "x")
refuses(TypeError, span, "task")
refuses(TypeError, span, "task", 5)
refuses(ValueError, span, "task", "x", trace="zz")
refuses(ValueError, span, "task", "x", trace=5)
refuses(ValueError, span, "task", "x", parent=-1)
refuses(ValueError, span, "task", "x", remote_parent="5")
refuses(ValueError, span, "task", "x", start_unix_ns=1 << 64)

# An exception goes on, and is in the span.
for name, error in (("fails", KeyError("k")), ("broken", Broken()), ("left", GeneratorExit())):
    try:
        with span("task", name):
            raise error
    except BaseException as it:
        assert it is error
with span("task", "said") as said:
    said.fail("Timeout", "after 5 s")
with span("task", "caught") as caught:
    try:
        open("/nonexistent/file")
    except OSError as error:
        caught.fail(error)
with span("task", "plain") as plain:
    plain.fail()

# Fields of any kind, keys that are parameters, too.
with span("task", "fields", name="n", kind="k", number=5, **{"db.system": "\udc80", "nul": "a\0b"}) as fields:
    refuses(TypeError, fields.set, 1, 2)
    refuses(TypeError, fields.set, "one")
    fields.set("unicode", "\u00e9")
    fields.set("trace", None)
if recorded:
    refuses(ValueError, span("task", "unfit", unfit=Unfit()).begin)

# Begin and end apart, on several threads; ended twice, never ended, used again.
apart = span("request", "apart").begin()
refuses(RuntimeError, apart.begin)
thread = threading.Thread(target=apart.end)
thread.start()
thread.join()
assert (apart.id is not None) == recorded
apart.end()
apart.set("late", 1)
apart.fail("late")
again = span("task", "again")
for _ in range(2):
    with again:
        pass
with span("task", "around"):
    span("task", "dropped").begin()
    assert (greenprof.current_span() is not None) == recorded
assert greenprof.current_span() is None
with span("task", "elsewhere", parent=apart.id):
    pass
loop = span("task", "cycle")
loop.set("self", loop)
del loop


# Decorators: each call is a span of its own, also of those that overlap.
@span("task", "recursive", trace="1" * 32)
def recursive(n):
    """Doc."""
    return 0 if n == 0 else 1 + recursive(n - 1)


@span("task", "generated")
def generated():
    got = yield 1
    yield got


@contextlib.contextmanager
@span("task", "managed")
def managed():
    yield


@span("task", "awaited")
async def awaited(n):
    await asyncio.sleep(0.001)
    return n


@span("task", "streamed")
async def streamed():
    got = yield 1
    yield got


async def tasks():
    assert await asyncio.gather(*[asyncio.create_task(awaited(i)) for i in range(10)]) == list(range(10))
    steps = streamed()
    assert await steps.asend(None) == 1 and await steps.asend(5) == 5
    await steps.aclose()


assert recursive.__name__ == "recursive" and recursive.__doc__ == "Doc." and recursive(3) == 3
generator = generated()
assert next(generator) == 1 and generator.send("sent") == "sent"
generator.close()
with managed():
    assert (greenprof.current_span() is not None) == recorded
asyncio.run(tasks())
greenprof.coro_idle()
greenprof.set_trace("2" * 32)
assert (greenprof.current_span() is not None) == recorded
greenprof.coro_idle()
assert greenprof.current_span() is None
print("end")
