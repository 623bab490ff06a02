# SPDX-License-Identifier: MIT
"""One web server of each kind, which knows nothing of greenprof: `servers.py KIND PORT`, until it is interrupted."""
import asyncio
import sys
import time

NAP = 0.02
KIND, PORT = sys.argv[1], int(sys.argv[2])
SERVER, _, FRAMEWORK = KIND.partition("+")


def pieces(path):
    for _ in range(500 if path == "/long" else 3):
        time.sleep(NAP / 4)
        yield b"." * (100000 if path == "/long" else 10)


def wsgi(environ, start_response):
    path = environ["PATH_INFO"]
    if path == "/raise":
        raise RuntimeError("on purpose")
    start_response("503 Service Unavailable" if path == "/fail" else "200 OK", [("Content-Type", "text/plain")])
    if path in ("/stream", "/long"):
        return pieces(path)
    time.sleep(NAP)
    return [b"done"]


async def asgi(scope, receive, send):
    if scope["type"] != "http":
        return
    path = scope["path"]
    if path == "/raise":
        raise RuntimeError("on purpose")
    await send({"type": "http.response.start", "status": 503 if path == "/fail" else 200, "headers": []})
    if path in ("/stream", "/long"):
        async def hang_up():
            while (await receive())["type"] != "http.disconnect":
                pass
        gone = asyncio.ensure_future(hang_up())
        for _ in range(500 if path == "/long" else 3):
            await asyncio.sleep(NAP / 4)
            if path == "/long" and gone.done():
                return
            await send({"type": "http.response.body", "body": b"." * (100000 if path == "/long" else 10), "more_body": True})
        gone.cancel()
    else:
        await asyncio.sleep(NAP)
    await send({"type": "http.response.body", "body": b"done"})
    await asyncio.sleep(5 * NAP)  # nobody waits for that


def starlette():
    from starlette.applications import Starlette
    from starlette.responses import PlainTextResponse
    from starlette.routing import Mount, Route

    async def user(request):
        await asyncio.sleep(NAP)
        return PlainTextResponse(request.path_params["id"])
    return Starlette(routes=[Route("/users/{id}", user), Mount("/api", routes=[Route("/items/{n:int}", lambda request: PlainTextResponse("1"))])])


def flask():
    import flask
    app = flask.Flask("servers")
    app.add_url_rule("/users/<id>", "user", lambda id: time.sleep(NAP) or id)
    app.add_url_rule("/api/items/<int:n>", "item", lambda n: str(n))
    return app


def django():
    from django.conf import settings
    from django.core.wsgi import get_wsgi_application
    from django.http import HttpResponse
    settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], SECRET_KEY="none", MIDDLEWARE=[])
    from django.urls import path
    globals()["urlpatterns"] = [path("users/<id>", lambda request, id: time.sleep(NAP) or HttpResponse(id)),
                                path("api/items/<int:n>", lambda request, n: HttpResponse(n))]
    return get_wsgi_application()


def run_wsgiref(app):
    from wsgiref.simple_server import make_server
    make_server("127.0.0.1", PORT, app).serve_forever()


def run_werkzeug(app):
    from werkzeug.serving import run_simple
    run_simple("127.0.0.1", PORT, app, threaded=True)


def run_cheroot(app):
    from cheroot.wsgi import Server
    server = Server(("127.0.0.1", PORT), app)
    try:
        server.start()
    finally:
        server.stop()


def run_eventlet(app):
    import eventlet
    eventlet.monkey_patch()
    import eventlet.wsgi
    eventlet.wsgi.server(eventlet.listen(("127.0.0.1", PORT)), app)


def run_gevent(app):
    import gevent.monkey
    gevent.monkey.patch_all()
    from gevent.pywsgi import WSGIServer
    WSGIServer(("127.0.0.1", PORT), app).serve_forever()


def run_gunicorn(app):
    import gunicorn.app.base

    class Application(gunicorn.app.base.BaseApplication):
        def load_config(self):
            for key, value in {"bind": f"127.0.0.1:{PORT}", "worker_class": SERVER.split("-")[1], "workers": 1, "threads": 2}.items():
                self.cfg.set(key, value)

        def load(self):
            return app
    Application().run()


def run_uvicorn(app):
    import uvicorn
    uvicorn.run(app, host="127.0.0.1", port=PORT, lifespan="off")


def run_hypercorn(app):
    from hypercorn.asyncio import serve
    from hypercorn.config import Config
    config = Config()
    config.bind = [f"127.0.0.1:{PORT}"]
    asyncio.run(serve(app, config))


def run_aiohttp(app):
    from aiohttp import web

    async def user(request):
        await asyncio.sleep(NAP)
        return web.Response(text="x")

    async def other(request):
        if request.path == "/raise":
            raise RuntimeError("on purpose")
        if request.path not in ("/stream", "/long"):
            await asyncio.sleep(NAP)
            return web.Response(status=503 if request.path == "/fail" else 200)
        answer = web.StreamResponse()
        await answer.prepare(request)
        for _ in range(500 if request.path == "/long" else 3):
            await asyncio.sleep(NAP / 4)
            await answer.write(b"." * (100000 if request.path == "/long" else 10))
        return answer
    site = web.Application()
    site.add_routes([web.get("/users/{id}", user), web.get("/api/items/{n}", user)] +
                    [web.get(path, other) for path in ("/plain", "/stream", "/long", "/fail", "/raise")])
    web.run_app(site, host="127.0.0.1", port=PORT)


def main():
    frameworks = {"starlette": starlette, "flask": flask, "django": django}
    app = frameworks[FRAMEWORK]() if FRAMEWORK else asgi if SERVER in ("uvicorn", "hypercorn") else wsgi
    try:
        globals()["run_" + SERVER.split("-")[0]](app)
    except KeyboardInterrupt:
        pass


main()
