# SPDX-License-Identifier: MIT
"""Another of these programs, with tasks that are written in Python, as nest_asyncio has them. Arguments: its name, and its own."""
import asyncio
import gc
import os
import runpy
import sys
import unittest.mock

asyncio.Task = asyncio.tasks.Task = asyncio.tasks._PyTask
if sys.version_info >= (3, 14):  # where each kind has its own current one
    asyncio.current_task = asyncio.tasks.current_task = asyncio.tasks._py_current_task
gc.collect()
gc.freeze()  # so that the next collection is a short one
for made in unittest.mock.Mock(), unittest.mock.Mock(get_loop=None):  # may be registered, too
    asyncio.tasks._register_task(made)
    asyncio.tasks._unregister_task(made)
    asyncio.tasks._py_register_task(made)
    asyncio.tasks._py_unregister_task(made)
del made
gc.collect()  # until then what was registered is ready
del sys.argv[0]
runpy.run_path(os.path.join(os.path.dirname(os.path.abspath(__file__)), sys.argv[0]), run_name="__main__")
