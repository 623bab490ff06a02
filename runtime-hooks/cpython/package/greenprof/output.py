# SPDX-License-Identifier: MIT
"""Files that no reader sees half of; the rules are those of prof_dump()."""
import os
import stat

_STREAMS = {"-": 1, "/dev/stdout": 1, "/dev/stderr": 2}


def _write_stream(number, content):
    with open(os.dup(number), "wb") as file:
        file.write(content)


def _replace(path, content, mode):
    directory, name = os.path.split(path)
    temporary = os.path.join(directory, f".{name[:100]}.{os.urandom(4).hex()}")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with open(handle, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _write_file(path, content):
    """Through a symbolic link, the file that it points to; a device or pipe is written to, never replaced."""
    path = os.path.realpath(path)
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return _replace(path, content, 0o666)
    if not stat.S_ISREG(mode):
        with open(path, "wb") as file:
            return file.write(content)
    with open(path, "r+b"):  # a rename would go around the file's own permissions
        pass
    _replace(path, content, stat.S_IMODE(mode))


def write(path, content):
    """path: text, bytes or a Path; '-' is standard output. content: bytes. OSError names the path."""
    name = os.fsdecode(path)
    try:
        if not name:
            raise FileNotFoundError(2, os.strerror(2))
        if name in _STREAMS:
            _write_stream(_STREAMS[name], content)
        else:
            _write_file(name, content)
    except OSError as error:
        raise OSError(error.errno, error.strerror, name) from None
