"""A profile of every request of a WSGI application, one file each."""
import itertools
import os
import time

import greenprof


class Middleware:
    """Wrap a WSGI application: each request is profiled for itself, with the greenlets that it spawns.

    directory: where the files go; {number}, {method}, {path} and {trace} may stand in `pattern`
    choose:    called with the environ; a request is profiled where it says so (default: every one)
    """

    def __init__(self, application, directory=".", pattern="{number:06d}-{method}{path}.prof", choose=None, frequency=1000):
        self.application, self.directory, self.pattern = application, directory, pattern
        self.choose, self.frequency = choose, frequency
        self.numbers = itertools.count(1)

    def __call__(self, environ, start_response):
        if self.choose is not None and not self.choose(environ):
            return self.application(environ, start_response)
        profile = self._start(environ)
        try:
            body = self.application(environ, start_response)
        except BaseException:
            self._end(profile, environ)
            raise
        return _Body(body, lambda: self._end(profile, environ))

    def _start(self, environ):
        profile = greenprof.Profile(frequency=self.frequency, name=environ.get("PATH_INFO", "")[:60])
        try:
            if environ.get("HTTP_TRACEPARENT"):
                greenprof.set_trace(environ["HTTP_TRACEPARENT"])
        except ValueError:
            pass
        try:
            profile.start()
        except OSError:
            return None  # the request matters more
        return profile

    def _end(self, profile, environ):
        if profile is None:
            return
        path = environ.get("PATH_INFO", "").replace("/", "_")[:80]
        name = self.pattern.format(number=next(self.numbers), method=environ.get("REQUEST_METHOD", ""), path=path,
                                   trace=environ.get("HTTP_TRACEPARENT", ""), time=time.time())
        try:
            profile.disable()
            profile.dump(os.path.join(self.directory, name))
        except OSError as error:
            environ.get("wsgi.errors") and environ["wsgi.errors"].write(f"greenprof: {name}: {error.strerror}\n")


class _Body:
    """The response: the profile ends when it has been sent."""

    def __init__(self, body, end):
        self.body, self.iterator, self.end = body, iter(body), end

    def __iter__(self):
        return self

    def __next__(self):
        return next(self.iterator)

    def close(self):
        try:
            if hasattr(self.body, "close"):
                self.body.close()
        finally:
            end, self.end = self.end, lambda: None
            end()
