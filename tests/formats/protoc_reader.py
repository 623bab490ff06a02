# SPDX-License-Identifier: MIT
"""Reads a protobuf file with `protoc --decode`."""
import os, re, shutil, subprocess

PROTOC = shutil.which("protoc")
ESCAPES = {"n": b"\n", "r": b"\r", "t": b"\t", '"': b'"', "'": b"'", "\\": b"\\"}


def unescape(text):
    """The bytes of a quoted string of protobuf's text format."""
    parts = re.findall(r'\\([0-7]{3})|\\(.)|([^\\]+)', text)
    return b"".join(bytes([int(octal, 8)]) if octal else ESCAPES[char] if char else plain.encode()
                    for octal, char, plain in parts)


def parse_message(lines):
    """Lines of the text format up to the closing brace: {field: [value, ...]}."""
    message = {}
    for line in lines:
        line = line.strip()
        if line == "}":
            break
        if line.endswith("{"):
            name, value = line[:-1].strip(), parse_message(lines)
        else:
            name, value = line.split(": ", 1)
            value = unescape(value[1:-1]) if value.startswith('"') else value == "true" or int(value)
        if name.isdigit():
            raise AssertionError(f"unknown field {name}: {value}")
        message.setdefault(name, []).append(value)
    return message


def decode(path, proto, message):
    """A file as nested {field: [value, ...]}; an unknown field is an error."""
    with open(path, "rb") as file:
        result = subprocess.run([PROTOC, "-I" + os.path.dirname(proto), "--decode=" + message, proto], stdin=file,
                                capture_output=True, check=True)
    if result.stderr:
        raise AssertionError(result.stderr.decode())
    return parse_message(iter(result.stdout.decode("utf8").splitlines()))
