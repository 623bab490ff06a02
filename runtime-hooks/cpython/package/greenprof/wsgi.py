# SPDX-License-Identifier: MIT
"""A profile of every request of a WSGI application, one file each; or each request as a span."""
import itertools
import os
import re
import time

import greenprof


class Middleware:
    """Wrap a WSGI application: each request is profiled for itself, with the greenlets that it spawns.

    directory: where the files go
    pattern:   their names; {number}, {method}, {path}, {trace} and {time} may stand in it. What they stand for is the client's
               choice, so it is reduced to letters, digits, '.', '-' and '_'
    choose:    called with the environ; a request is profiled where it says so (default: every one)
    options:   of greenprof.Profile: frequency, clock, mode, ...

    Where there are keys, or a policy (doc/wire.md), these come first: with keys alone, only signed requests are profiled; of those
    that are faster than slower= says, no file is written.

    Files are written by a thread of greenprof's own (Profile.finish()). Whatever goes wrong with a profile is written to
    wsgi.errors, that of a file with a request that comes later; requests do not notice.
    """

    def __init__(self, application, directory=".", pattern="{number:06d}-{method}{path}.prof", choose=None, **options):
        greenprof.Profile(**options)  # complains now, not at the first request
        pattern.format(number=1, method="", path="", trace="", time=0.0)
        self.application, self.directory, self.pattern = application, directory, pattern
        self.choose, self.options = choose, options
        self.numbers = itertools.count(1)

    def __call__(self, environ, start_response):
        begun, profile = time.monotonic_ns(), self._start(environ)
        if profile is None:
            return self.application(environ, start_response)
        try:
            body = self.application(environ, start_response)
            whole = isinstance(body, (list, tuple))  # servers know its length then
            return (_Whole if whole else _Stream)(body, lambda: self._end(profile, environ, begun))
        except BaseException:
            self._end(profile, environ, begun)
            raise

    def _start(self, environ):
        try:
            if not greenprof._is_chosen(_context(environ)) or (self.choose is not None and not self.choose(environ)):
                return None
            _set_trace(environ)
            profile = greenprof.Profile(name=environ.get("PATH_INFO", "")[:60].encode("ascii", "replace").decode(),
                                        **self.options)
            profile.start()
            return profile
        except Exception as error:  # the request matters more
            _complain(environ, error)

    def _end(self, profile, environ, begun):
        try:
            if greenprof._is_kept(_context(environ), time.monotonic_ns() - begun):
                profile.finish(os.path.join(self.directory, self._name(environ)))
            else:
                profile.stop()
            if environ.get("HTTP_TRACEPARENT"):
                greenprof.set_trace(None)  # the next request on this connection has one of its own, or none
            greenprof.flush(0)
        except TimeoutError:
            pass  # some are still being written
        except Exception as error:
            _complain(environ, error)

    def _name(self, environ):
        texts = {"method": "REQUEST_METHOD", "path": "PATH_INFO", "trace": "HTTP_TRACEPARENT"}
        texts = {name: environ.get(key, "") for name, key in texts.items()}
        if not texts["trace"] and _context(environ) is not None:
            texts["trace"] = _context(environ).trace
        texts = {name: re.sub(r"[^A-Za-z0-9._-]", "_", text)[:80] for name, text in texts.items()}
        return self.pattern.format(number=next(self.numbers), time=time.time(), **texts)


class Tracing:
    """Wrap a WSGI application: each request is a greenprof.span, in the trace and below the caller's span that its headers
    name (W3C's, OSProfiler's, greenprof's own), from the call to the end of the response.

    name: what a request is called, from the environ; default: its method and path, and where greenprof.servers knows the
          framework, its route. Few different ones are best

    Inside a Middleware it is within the profile; around one, the profile is within it.
    """

    def __init__(self, application, name=None):
        self.application, self.name = application, name

    @classmethod
    def filter_factory(cls, global_conf):
        """For a pipeline of Paste Deploy:

            [filter:trace]
            paste.filter_factory = greenprof.wsgi:Tracing.filter_factory
        """
        return cls

    def __call__(self, environ, start_response):
        around = environ.get("greenprof.request")  # the server's, under `greenprof run`
        if around is not None:
            if self.name is not None:
                around.is_named = True
                around.span.rename(self.name(environ))
            return self.application(environ, start_response)
        context = _context(environ)
        method = environ.get("REQUEST_METHOD", "")
        name = self.name(environ) if self.name is not None else f"{method} {environ.get('PATH_INFO', '')}"
        request = environ["greenprof.request"] = greenprof._begin_request(context, name, method, self.name is not None)
        greenprof._incoming.set(context)
        greenprof._request.set(request)

        def note_status(status, *more):
            code, _, reason = status.partition(" ")
            request.answer(code, reason)
            return start_response(status, *more)

        def end(*exception):
            greenprof._incoming.set(None)
            greenprof._request.set(None)
            request.end(*exception)

        try:
            body = self.application(environ, note_status)
            if isinstance(body, (list, tuple)):
                request.is_complete = True  # the server has all of it
                return _Whole(body, end)
            return _Stream(body, end, request)
        except BaseException as error:
            end(type(error), error, error.__traceback__)
            raise


def filter_factory(global_conf, directory=".", **options):
    """For a pipeline of Paste Deploy (api-paste.ini of OpenStack's services):

        [filter:greenprof]
        paste.filter_factory = greenprof.wsgi:filter_factory
        directory = /var/log/nova/profiles
    """
    if "frequency" in options:
        options["frequency"] = int(options["frequency"])
    return lambda application: Middleware(application, directory, **options)


def _context(environ):
    """Read once: a context with a nonce is good once."""
    if "greenprof.context" not in environ:
        environ["greenprof.context"] = greenprof.context_read(environ)
    return environ["greenprof.context"]


def _set_trace(environ):
    try:
        if environ.get("HTTP_TRACEPARENT"):
            greenprof.set_trace(environ["HTTP_TRACEPARENT"])
    except ValueError:
        pass  # the client's mistake


def _complain(environ, error):
    errors = environ.get("wsgi.errors")
    if errors is not None:
        errors.write(f"greenprof: {error}\n")


class _Closing:
    """The response: the profile ends when it has been sent."""

    def close(self):
        end, self.end = self.end, lambda: None
        try:
            if hasattr(self.body, "close"):
                self.body.close()
        finally:
            end()


class _Whole(_Closing, list):
    def __init__(self, body, end):
        super().__init__(body)
        self.body, self.end = body, end


class _Stream(_Closing):
    def __init__(self, body, end, request=None):
        self.body, self.iterator, self.end, self.request = body, iter(body), end, request

    def __iter__(self):
        return self

    def __next__(self):
        try:
            return next(self.iterator)
        except BaseException as error:
            if self.request is not None:
                self.request.is_complete = isinstance(error, StopIteration)
                if not self.request.is_complete:
                    self.end(type(error), error, error.__traceback__)
            raise
