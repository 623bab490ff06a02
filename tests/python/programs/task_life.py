# SPDX-License-Identifier: MIT
"""What tasks can do in their lives, each printed: greenprof must change nothing of it."""
import asyncio
import contextvars
import gc
import re
import sys
import threading
import weakref

variable = contextvars.ContextVar("variable", default="unset")


def say(*what):
    print(*(re.sub(r" at 0x[0-9a-f]+| created at .*?>|Task-\d+", "", str(one)) for one in what))


async def sleeper(seconds=60):
    await asyncio.sleep(seconds)


async def fails():
    await asyncio.sleep(0)
    raise ValueError("as it should")


async def cancels():
    task = asyncio.create_task(sleeper(), name="long sleep")
    await asyncio.sleep(0)
    say(task, task.get_coro().__qualname__, task.get_stack()[-1].f_code.co_name, task in asyncio.all_tasks())
    task.cancel("enough")
    try:
        await task
    except asyncio.CancelledError as error:
        say("cancelled", error.args, task.cancelled(), task)


async def survives_cancel():
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        say("no", asyncio.current_task().cancelling(), asyncio.current_task().uncancel())
    return 7


async def contexts():
    variable.set("parent")
    async def child():
        before = variable.get()
        variable.set("child")
        return before, variable.get()
    say(await asyncio.create_task(child()), variable.get())
    context = contextvars.Context()
    say(await asyncio.create_task(child(), context=context), variable.get(), context[variable])


async def groups():
    try:
        async with asyncio.timeout(0.01):
            await sleeper()
    except TimeoutError:
        say("timeout")
    say(await asyncio.gather(fails(), survives(), return_exceptions=True))
    say(await asyncio.wait_for(survives(), 5))
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(fails())
            group.create_task(sleeper())
    except* ValueError as errors:
        say(errors.exceptions)


async def survives():
    task = asyncio.create_task(survives_cancel())
    await asyncio.sleep(0)
    task.cancel()
    return await task


class Named(asyncio.Task):
    pass


class Initialized(asyncio.Task):
    def __init__(self, coro, **more):
        super().__init__(coro, **more)
        self.made_by = asyncio.current_task(loop=more["loop"])


async def factories():
    loop = asyncio.get_running_loop()
    for kind in (Named, Initialized, *([asyncio.tasks._PyTask] if sys.version_info < (3, 14) else [])):  # then not current
        loop.set_task_factory(lambda loop, coro, **more: kind(coro, loop=loop, **more))
        task = asyncio.create_task(survives(), name=kind.__name__)
        say(type(task).__name__, task.get_name(), await task, loop.get_task_factory() is not None)
    loop.set_task_factory(None)


async def freed():
    task = asyncio.create_task(sleeper(0))
    gone = weakref.ref(task)
    await task
    del task
    await asyncio.sleep(0.001)
    gc.collect()
    say("freed", gone() is None)
    references = sys.getrefcount(fails)
    for _ in range(300):
        await asyncio.gather(asyncio.create_task(asyncio.sleep(0)), fails(), return_exceptions=True)
    say("no leak", sys.getrefcount(fails) - references)


async def everything():
    for part in (cancels, contexts, groups, factories, freed):
        await part()
    asyncio.current_task().set_name("all done")
    say(asyncio.current_task().get_name(), asyncio.get_running_loop().get_debug())


def in_thread(results, number):
    async def add():
        await asyncio.gather(*[asyncio.sleep(0.001 * i) for i in range(5)])
        results.append(number)
    asyncio.run(add())
    asyncio.run(add())


def exits():
    async def leave():
        raise SystemExit(3)
    try:
        asyncio.run(leave())
    except SystemExit as status:
        say("exit", status.code)


def left_alone():
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda loop, context: say(context["message"]))
    task = loop.create_task(sleeper())
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    del task
    gc.collect()


asyncio.run(everything())
asyncio.run(everything(), debug=True)
results = []
threads = [threading.Thread(target=in_thread, args=(results, i)) for i in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
say(sorted(results))
exits()
left_alone()
