# SPDX-License-Identifier: MIT
"""Switches that do not simply arrive: thrown, refused, to a greenlet that is over, by one that ends or is freed. What follows
each takes 0.1 s of CPU in a function of its own; prints which greenlet must have it; main: the thread."""
import threading
import time

import greenlet

main = greenlet.getcurrent()


def burn():
    end = time.thread_time() + 0.1
    while time.thread_time() < end:
        for _ in range(200):
            pass


def after_throw():
    burn()


def after_refusal():
    burn()


def after_the_dead():
    burn()


def after_the_end():
    burn()


def after_free():
    burn()


def in_free():
    burn()


def one():
    try:
        main.switch()
    except KeyError:
        after_throw()
    try:
        foreign.switch()
    except greenlet.error:
        after_refusal()
    dead = greenlet.greenlet(lambda: None)  # a child of this one
    dead.switch()
    after_the_end()
    greenlet.greenlet(two).switch(dead)
    after_the_dead()


def two(dead):
    dead.switch()  # its parent goes on


def three():
    try:
        main.switch()
    except greenlet.GreenletExit:
        in_free()


foreign = None
ready, done = threading.Event(), threading.Event()


def holder():
    global foreign
    foreign = greenlet.greenlet(lambda: greenlet.getcurrent().parent.switch())
    foreign.switch()
    ready.set()
    done.wait()


thread = threading.Thread(target=holder)
thread.start()
ready.wait()
first = greenlet.greenlet(one)
first.switch()


first.throw(KeyError)
last = greenlet.greenlet(three)
last.switch()
del last
after_free()
done.set()
thread.join()
print("after_throw one\nafter_refusal one\nafter_the_end one\nafter_the_dead one\nin_free three\nafter_free main")
