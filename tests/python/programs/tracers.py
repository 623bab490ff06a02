# SPDX-License-Identifier: MIT
"""A program that traces greenlet switches itself: it must see what it would see alone. Prints its events."""
import greenlet

events = []


def tracer(event, args):
    events.append((event, args[1] is main))


def body():
    main.switch()


main = greenlet.getcurrent()
greenlet.greenlet(lambda: None).switch()
print(greenlet.gettrace(), greenlet.settrace(tracer))
g = greenlet.greenlet(body)
g.switch()
g.switch()
print(greenlet.gettrace() is tracer, greenlet.settrace(None) is tracer, greenlet.gettrace(), events)


def failing(event, args):
    raise ValueError("in the tracer")


greenlet.settrace(failing)
try:
    greenlet.greenlet(body).switch()
except ValueError as error:
    print(error, greenlet.gettrace())


class Derived(greenlet.greenlet):
    def __new__(cls, *args):
        return super().__new__(cls)


print(Derived(lambda: 7).switch())
