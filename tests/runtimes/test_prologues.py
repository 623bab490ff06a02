# SPDX-License-Identifier: MIT
"""The decoder of entry patches against objdump, on every function that libraries and programs of Debian have."""
import os
import re
import shutil
import subprocess
import sys
import unittest

NEED = 5
FILES = sys.argv[1:] or ["/lib/x86_64-linux-gnu/libc.so.6", "/usr/bin/lua5.4"]
LABEL = re.compile(r"^[0-9a-f]+ <([^>]+)>:$")
INSTRUCTION = re.compile(r"^ +[0-9a-f]+:\t((?:[0-9a-f]{2} )+) *(?:\t(.*))?$")


def functions(path):
    """Name -> its first instructions, as (bytes, text)."""
    text = subprocess.run(["objdump", "-d", "--wide", path], capture_output=True, check=True, text=True).stdout
    name, taken, found = None, 0, {}
    for line in text.splitlines():
        label, instruction = LABEL.match(line), INSTRUCTION.match(line)
        if label:
            name, taken = label.group(1), 0
            found[name] = []
        elif instruction and name and taken < 32:
            code = bytes.fromhex(instruction.group(1))
            found[name].append((code, instruction.group(2) or ""))
            taken += len(code)
    return {name: listed for name, listed in found.items() if sum(len(code) for code, _ in listed) >= NEED}


class Prologues(unittest.TestCase):
    def check(self, path):
        known = functions(path)
        lines = "\n".join(b"".join(code for code, _ in listed).hex() for listed in known.values())
        done = subprocess.run([os.environ["PROGRAMS"] + "/prologue_lengths"], input=lines + "\n", capture_output=True, text=True,
                              check=True)
        accepted = 0
        for (name, listed), taken in zip(known.items(), map(int, done.stdout.split()), strict=True):
            if taken == 0:
                continue
            accepted += 1
            length, texts = 0, []
            for code, text in listed:
                if length >= NEED:
                    break
                length += len(code)
                texts.append(text)
            self.assertEqual(taken, length, f"{path} {name}: {texts}")
            for text in texts:
                self.assertNotRegex(text, r"^(ret|int3|hlt|syscall|loop|jrcxz|\(bad\))|^(jmp|call) +\*", f"{path} {name}")
            self.assertNotIn("call", {text.split()[0] for text in texts[:-1]}, f"{path} {name}")  # it returns to the function
        print(f"{path}: {len(known)} functions, {accepted} accepted, all of them as long as objdump says")
        self.assertGreater(accepted, len(known) // 3)  # stubs of the procedure linkage table are refused

    def test_files(self):
        for path in FILES:
            if os.path.exists(path):
                self.check(path)


if __name__ == "__main__":
    if shutil.which("objdump") is None or not os.path.exists(os.environ["PROGRAMS"] + "/prologue_lengths"):
        print("there is no objdump, or the decoder is not built for this machine")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2)
