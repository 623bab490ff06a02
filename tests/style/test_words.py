# SPDX-License-Identifier: MIT
"""Comments name the thing first: no sentence begins with It, What, Those, One or Of, none has two "that". Also which
comments have the faults: `test_words.py [FOLDER...]` lists them."""
import os
import re
import sys
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
FOLDERS = ("src", "runtime-hooks", "tools", "include", "tests")
LINE, BLOCK = re.compile(r"//(?!/) ?(.*)"), re.compile(r"/\*(.*?)\*/", re.DOTALL)
HASH = re.compile(r"(?:^|\s)#(?!!) ?(.*)")
FIRST = re.compile(r"^\W*(It|What|Those|One|Of)\b(?!-)")
THAT = re.compile(r"\bthat\b", re.IGNORECASE)
QUOTED = re.compile(r"`[^`]*`|\"[^\"]*\"")
SENTENCE = re.compile(r"(?<=[.!?:;])\s+(?=[A-Z`])")


def blocks(path):
    """(line, text) of each comment: lines of comments one below the other are one, a trailing comment is one by itself."""
    with open(path, encoding="utf-8") as source:
        text = source.read()
    mark = LINE if path.endswith((".c", ".h", ".S", ".cpp", ".js")) else HASH
    begin, words, column = 0, [], -1
    for number, line in enumerate(text.split("\n"), 1):
        match = mark.search(line) if "://" not in line and not re.search(r"[\"'][^\"']*(//|#)[^\"']*[\"']", line) else None
        place = (match.start() if match else -1) if match and not line[:match.start()].strip() else -1
        follows = words and match and (place == column or place > 0 and column > place)
        if words and not follows:
            yield begin, " ".join(words)
            words = []
        if match:
            if not words:
                begin, column = number, match.start()
            words.append(match[1].strip())
    if words:
        yield begin, " ".join(words)
    if mark is LINE:
        for match in BLOCK.finditer(text):
            yield text.count("\n", 0, match.start()) + 1, re.sub(r"\s*\n\s*\*?\s*", " ", match[1])


def faults(path):
    for number, text in blocks(path):
        for sentence in SENTENCE.split(QUOTED.sub("`x`", text.removeprefix("SPDX-License-Identifier: MIT "))):
            if FIRST.match(sentence) or len(THAT.findall(sentence)) > 1:
                yield number, sentence


def all_faults(folders):
    for folder in folders:
        for place, _, names in os.walk(os.path.join(ROOT, folder)):
            for name in sorted(names):
                if name.endswith((".c", ".h", ".S", ".cpp", ".js", ".css", ".py", ".sh")):
                    path = os.path.join(place, name)
                    for number, sentence in faults(path):
                        yield f"{os.path.relpath(path, ROOT)}:{number}: {sentence}"


class Words(unittest.TestCase):
    maxDiff = None

    def test_sentences(self):
        self.assertEqual(list(all_faults(FOLDERS)), [])


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print("\n".join(all_faults(sys.argv[1:])))
    else:
        unittest.main()
