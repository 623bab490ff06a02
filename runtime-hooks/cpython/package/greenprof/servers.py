# SPDX-License-Identifier: MIT
"""Requests of web servers, without a line in the program: `greenprof run -- python3 app.py` imports this as the program
imports the first server or framework that is named below; so does a program that wants the same without `greenprof run`.

    wsgiref, werkzeug, gunicorn, eventlet.wsgi, gevent.pywsgi, cheroot      their WSGI application goes through wsgi.Tracing
    uvicorn, hypercorn                                                      their ASGI application through Asgi
    aiohttp's server                                                        each call of its handler
    Starlette (FastAPI), Django, Flask, aiohttp                             name the request by its route

Modules of clients (greenprof.libraries) are changed in the same way. A request is a greenprof.span from the call of the application to the end of the response, below the caller's span. Each module
is changed once, right after it was executed.
"""
import functools
import sys

import greenprof
import greenprof.libraries
import greenprof.wsgi

_HEADERS = frozenset(name.encode() for name in greenprof._CONTEXT_HEADERS)


def _cancelled():
    import asyncio  # a program with threads alone need not have it
    return asyncio.CancelledError


def _route(template):
    request = greenprof._request.get()
    if request is not None:
        request.route(template)


class Asgi:
    """Wrap an ASGI application: each HTTP request, and each WebSocket, is a greenprof.span."""

    def __init__(self, application):
        self.application = application

    def __getattr__(self, name):
        return getattr(self.application, name)

    async def __call__(self, scope, receive, send):
        if scope["type"] not in ("http", "websocket") or "greenprof.request" in scope:
            return await self.application(scope, receive, send)
        headers = scope.get("headers") or ()
        context = greenprof.context_read(headers) if any(name in _HEADERS for name, _ in headers) else None
        method = scope.get("method", "WEBSOCKET")
        name = f"{method} {scope.get('path', '')}"
        request = scope["greenprof.request"] = greenprof._begin_request(context, name, method)
        greenprof._incoming.set(context)
        greenprof._request.set(request)

        async def answer(message):
            await send(message)
            kind = message["type"]
            if kind == "http.response.start":
                request.answer(message["status"])
            elif kind == "websocket.close" or (kind == "http.response.body" and not message.get("more_body", False)):
                request.is_complete = True
                request.end()  # what the application does behind it, the client does not wait for

        async def hear(*arguments):
            message = await receive(*arguments)
            if message["type"] == "websocket.disconnect":
                request.is_complete = True
            return message

        try:
            await self.application(scope, hear if method == "WEBSOCKET" else receive, answer)
        except _cancelled():
            request.end()
            raise
        except BaseException as error:
            request.end(type(error), error, error.__traceback__)
            raise
        finally:
            request.end()
            _name_task(request, name)


def _name_task(request, name):
    greenprof.set_name(f"{request.method} {request.template}" if request.template else name)


def _traced(application):
    return application if isinstance(application, greenprof.wsgi.Tracing) else greenprof.wsgi.Tracing(application)


def _around(owner, name, make):
    original = getattr(owner, name)
    setattr(owner, name, functools.wraps(original)(make(original)))


def _before(owner, method, attribute, server=lambda self: self):
    """As the method begins, what `server` says of its object has a WSGI application as that attribute: also one that was made before."""
    def make(original):
        def call(self, *args, **kw):
            its, application = server(self), getattr(server(self), attribute, None)
            if callable(application) and not isinstance(application, greenprof.wsgi.Tracing):
                setattr(its, attribute, _traced(application))
            return original(self, *args, **kw)
        return call
    _around(owner, method, make)


def _wsgiref(module):
    _around(module.BaseHandler, "run", lambda original: lambda self, application: original(self, _traced(application)))


def _gunicorn(module):
    def of(worker):
        return None if type(worker).__module__.startswith("uvicorn") else worker  # which has an ASGI application
    _before(module.Worker, "notify", "wsgi", of)  # in each round of its loop


def _uvicorn(module):
    def make(original):
        def load(self):
            original(self)
            self.loaded_app = Asgi(self.loaded_app)
        return load
    _around(module.Config, "load", make)


def _uvicorn_cycle(module):
    """Of a server that was there before, and of connections that were."""
    def make(original):
        def run_asgi(self, app):
            return original(self, app if isinstance(app, Asgi) else Asgi(app))
        return run_asgi
    _around(module.RequestResponseCycle, "run_asgi", make)


def _hypercorn(module):
    def make(original):
        async def invoke_asgi(app, scope, receive, send):
            async def application(scope, receive, send):
                await original(app, scope, receive, send)
            await Asgi(application)(scope, receive, send)
        return invoke_asgi
    original = module.invoke_asgi
    for name, other in list(sys.modules.items()):
        if name.startswith("hypercorn.") and getattr(other, "invoke_asgi", None) is original:
            _around(other, "invoke_asgi", make)


def _aiohttp(module):
    def make(original):
        async def _handle_request(self, request, *args, **kw):
            context, name = greenprof.context_read(request.headers), f"{request.method} {request.path}"
            mine = greenprof._begin_request(context, name, request.method)
            greenprof._incoming.set(context)
            greenprof._request.set(mine)
            try:
                response, reset = result = await original(self, request, *args, **kw)
                resource = getattr(getattr(getattr(request, "_match_info", None), "route", None), "resource", None)
                mine.route(getattr(resource, "canonical", None))
                mine.answer(response.status, getattr(response, "reason", None) or "")
                mine.is_complete = not reset
                return result
            except (_cancelled(), ConnectionError):  # of the client's: others are answered with 500
                mine.end()
                raise
            except BaseException as error:
                mine.end(type(error), error, error.__traceback__)
                raise
            finally:
                mine.end()
                _name_task(mine, name)
        return _handle_request
    _around(module.RequestHandler, "_handle_request", make)


def _starlette(module):
    def make(original):
        async def handle(self, scope, receive, send):
            _route(scope.get("root_path", "") + self.path)
            return await original(self, scope, receive, send)
        return handle
    _around(module.Route, "handle", make)
    _around(module.WebSocketRoute, "handle", make)


def _django(module):
    def make(original):
        def resolve_request(self, request):
            match = original(self, request)
            _route("/" + str(getattr(match, "route", "")))
            return match
        return resolve_request
    _around(module.BaseHandler, "resolve_request", make)


def _flask(module):
    def make(original):
        def match_request(self):
            original(self)
            _route(getattr(self.request.url_rule, "rule", None))
        return match_request
    _around(module.RequestContext, "match_request", make)


_CHANGES = {  # those that are left; imports.c has the same names
    "aiohttp.web_protocol": _aiohttp,
    "cheroot.wsgi": lambda module: _before(module.Gateway, "respond", "wsgi_app", lambda self: self.req.server),
    "django.core.handlers.base": _django,
    "eventlet.wsgi": lambda module: _before(module.HttpProtocol, "handle_one_request", "app", lambda self: self.server),
    "flask.ctx": _flask,
    "gevent.pywsgi": lambda module: _before(module.WSGIHandler, "handle_one_request", "application", lambda self: self.server),
    "gunicorn.workers.base": _gunicorn,
    "hypercorn.utils": _hypercorn,
    "starlette.routing": _starlette,
    "uvicorn.config": _uvicorn,
    "uvicorn.protocols.http.h11_impl": _uvicorn_cycle,
    "uvicorn.protocols.http.httptools_impl": _uvicorn_cycle,
    "werkzeug.serving": lambda module: _before(module.WSGIRequestHandler, "run_wsgi", "app", lambda self: self.server),
    "wsgiref.handlers": _wsgiref,
    **dict.fromkeys(greenprof.libraries.MODULES, greenprof.libraries._came),
}


def _change(module):
    change = _CHANGES.pop(getattr(module, "__name__", None), None)
    try:
        if change is not None:
            change(module)
    except Exception:  # another version, or a stand-in, which has no such thing: its requests are not seen
        pass


class _Finder:
    """Before the one that looks at sys.path: what is found by the others is executed, then changed."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name not in _CHANGES:
            return None
        finders = (finder for finder in list(sys.meta_path) if finder is not _Finder and hasattr(finder, "find_spec"))
        spec = next(filter(None, (finder.find_spec(name, path, target) for finder in finders)), None)
        loader = spec.loader if spec is not None else None
        if not hasattr(loader, "exec_module"):
            return spec
        original = loader.exec_module

        def exec_module(module):
            loader.exec_module = original
            original(module)
            _change(module)
        try:
            loader.exec_module = exec_module
        except AttributeError:
            pass
        return spec


def _watch():
    for name in list(_CHANGES):
        if name in sys.modules:
            _change(sys.modules[name])
    names = [getattr(finder, "__name__", "") for finder in sys.meta_path]
    sys.meta_path.insert(names.index("PathFinder") if "PathFinder" in names else 0, _Finder)


_watch()
