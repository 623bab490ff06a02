# SPDX-License-Identifier: MIT
"""Consumers by the Python package. Where it was not built the test is skipped, as all of tests/python are."""
import asyncio
import gc
import os
import unittest

from support import Case, skip, until

try:
    import greenprof
except ImportError as why:
    skip(why)


class Python(Case):
    def test_spans_of_traces(self):
        url = "file://" + self.path("d")
        greenprof.consumer(url)
        with self.assertRaises(OSError):
            greenprof.consumer(url)
        greenprof.set_trace("00000000-0000-0000-0000-0000000000ab")
        greenprof.set_trace(None)
        greenprof.consumer_flush(60)
        (span,) = self.spans("d")
        self.assertEqual((span["trace"], span["flags"], span["pid"]), ("ab".zfill(32), ["implicit"], os.getpid()))
        status = greenprof.consumer_status(url)
        self.assertEqual((status["given"], status["sent"], status["last_error"]), (1, 1, 0))
        self.assertEqual(greenprof.consumer_status(), status)
        greenprof.consumer_close(url)
        with self.assertRaises(FileNotFoundError):
            greenprof.consumer_close(url)
        with self.assertRaises(FileNotFoundError):
            greenprof.consumer_status(url)
        greenprof.consumer_close()

    def test_profiles_of_tasks(self):
        """Requests that end with their tasks: the collector finds out."""
        async def task(number):
            greenprof.set_trace(f"{number:032x}")
            await asyncio.sleep(0.001)

        async def main():
            await asyncio.gather(*(task(number) for number in range(1, 11)))

        url = f"file://{self.path('d')}?profile=folded,prof"
        greenprof.consumer(url)
        asyncio.run(main())
        gc.collect()
        until(lambda: greenprof.consumer_status()["profiles"] == 10, "all are written")
        self.assertEqual(greenprof.consumer_status()["profiles_lost"], 0)
        greenprof.consumer_close(url)
        for number in range(1, 11):
            names = os.listdir(os.path.join(self.path("d"), f"{number:032x}"))
            self.assertEqual(sorted(name.rsplit(".", 1)[1] for name in names), ["folded", "jsonl", "prof"])

    def test_mistakes(self):
        for url in ("nothing://x", "file:relative", ""):
            with self.assertRaises(ValueError):
                greenprof.consumer(url)
        for call in (greenprof.consumer, greenprof.consumer_close, greenprof.consumer_status, greenprof.consumer_flush):
            with self.assertRaises(TypeError):
                call(b"x")
        with self.assertRaises(ValueError):
            greenprof.consumer_flush(-1)


if __name__ == "__main__":
    unittest.main()
