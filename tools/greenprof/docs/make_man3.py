# SPDX-License-Identifier: MIT
"""Manual pages of the functions, man(7), from the comments of the public headers.

usage: make_man3.py OUT HEADER...
  Writes OUT/NAME.3 for each function, or for several that one comment is for (the others are `.so` of the first), and
  OUT/greenprof-HEADER.3 with what stands above all of them, and with the types.

A comment is text, then arguments ("  name: text", indented), then "Returns", "Threads:", "Signals:", "Cost:", "Source:".
Declarations without an empty line between them belong together.
"""
import os
import re
import sys

DATE = "2026-11-21"  # of the manual
MODEL = "Unless a declaration says otherwise"
PARTS = ("Returns", "Threads", "Signals", "Cost", "Source")
ARGUMENT = re.compile(r" {2,}([a-z_][a-z_, ]*): +(\S.*)")
NAME = re.compile(r"\b(prof_\w+)(?=\(|;)")


def escape(text):
    """Text for roff: nothing of it is a request or an escape."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
    text = re.sub(r"`([^`]*)`", r"\\fI\1\\fR", text)
    return "\\&" + text if text.startswith(".") else text


def sentences(text):
    """Sentences begin on lines of their own."""
    return "".join(escape(part) + "\n" for part in re.split(r"(?<=[.:;]) (?=[A-Z`])", text.strip()) if part)


class Comment:
    """The lines of a comment, taken apart."""

    def __init__(self, lines):
        self.arguments, self.parts, text = [], {}, []
        in_argument = False
        for line in lines:
            match = ARGUMENT.fullmatch(line)
            if match:
                self.arguments.append([match[1], match[2]])
            elif in_argument and line.startswith("   "):
                self.arguments[-1][1] += " " + line.strip()
                continue
            else:
                text.append(line.strip())
            in_argument = bool(match)
        pieces = re.split(r"(?:^|(?<=[.;)] ))(?=(?:Returns |(?:Threads|Signals|Cost|Source): ))", " ".join(text).strip())
        self.text = pieces[0] if not pieces[0].startswith(PARTS) else ""
        for piece in pieces[0 if not self.text else 1:]:
            part = re.match(r"\w+", piece)[0]
            self.parts[part] = piece.strip() if part == "Returns" else piece.split(":", 1)[1].strip()

    def first_sentence(self):
        return re.match(r"(.*?)(?:\.(?: |$)|: (?=.)|$)", self.text)[1]


class Header:
    """A public header: `about`, its first comment; `functions`, (names, declarations, Comment); `types`, text."""

    def __init__(self, path):
        self.name = os.path.basename(path)
        with open(path, encoding="utf-8") as file:
            lines = re.sub(r"#ifdef __cplusplus\n.*?#endif\n", "", file.read(), flags=re.DOTALL).splitlines()
        begin = next(i for i, line in enumerate(lines) if line.startswith("#ifndef GREENPROF_"))
        self.about = [line[2:].removeprefix(" ") for line in lines[1:begin]]
        self.functions, self.types = [], []
        for block in self.blocks(lines[begin:]):
            self.add(block)

    @staticmethod
    def blocks(lines):
        """Blocks between empty lines, other than lines within braces."""
        block, depth = [], 0
        for line in lines:
            if line or depth > 0:
                block.append(line)
                depth += line.count("{") - line.count("}")
            elif block:
                yield block
                block = []
        yield block

    def add(self, block):
        comment, declarations, code = [], [], []
        for line in block:
            if line.startswith("//") and "clang-format" not in line:
                comment.append(line[2:].removeprefix(" "))
            elif line.startswith(("PROF_API", "static inline")):
                declarations.append(re.sub(r"^(PROF_API|static inline) ", "", line))
                code = declarations
            elif code is declarations and code and not code[-1].endswith(";"):
                code.append(line.strip() if line.startswith((" ", "{", "}")) else line)
            elif not line.startswith("//"):
                code = self.code_of(block) if not declarations else code
                break
        if declarations:
            self.add_functions(comment, declarations)
        elif code and re.search(r"PROF_|prof_", "\n".join(code)) and not code[0].startswith(("#if", "#include")):
            self.types.append("\n".join(code))

    @staticmethod
    def code_of(block):
        return [re.sub(r"\s*\\$", "", line) for line in block if "clang-format" not in line]

    def add_functions(self, comment, declarations):
        text = re.sub(r"\{.*", "", " ".join(declarations), flags=re.DOTALL)
        text = re.sub(r"__attribute__\(\(\w+\)\) | PROF_DIRECT\b", "", text)
        prototypes = [re.sub(r"\s+", " ", part).strip() + ";" for part in text.split(";") if NAME.search(part + ";")]
        if not prototypes:
            return
        names = [NAME.search(prototype)[1] for prototype in prototypes]
        if not comment:
            sys.exit(f"make_man3.py: {self.name}: {names[0]} has no comment")
        self.functions.append((names, prototypes, Comment(comment)))

    def page(self):
        return "greenprof-" + self.name.removesuffix(".h")

    def defaults(self):
        text = " ".join(self.about)
        return text[text.index(MODEL):] if MODEL in text else ""


def head(title, version, names, what):
    return (f'.\\" Made from the public headers by make_man3.py.\n.TH {escape(title.upper())} 3 "{DATE}" "greenprof {version}" '
            f'"greenprof manual"\n.SH NAME\n{escape(", ".join(names))} \\- {escape(what)}\n.SH LIBRARY\n'
            ".RI ( libgreenprof ,\n.BR \\-lgreenprof )\n")


def wrapped(prototype):
    """A prototype on lines of at most 76 columns, broken behind commas."""
    lines, indent = [""], " " * (prototype.index("(") + 1 if "(" in prototype else 0)
    for part in re.split(r"(?<=,) ", prototype):
        if len(lines[-1]) + len(part) > 76 and lines[-1]:
            lines.append(indent[:40] + part)
        else:
            lines[-1] += (" " if lines[-1] else "") + part
    return lines


def synopsis(header, prototypes=()):
    text = f".SH SYNOPSIS\n.nf\n.B #include <greenprof/{header.name}>\n"
    for prototype in prototypes:
        text += ".PP\n" + "".join(f'.B "{escape(line)}"\n' for line in wrapped(prototype))
    return text + ".fi\n"


def see_also(names):
    names = sorted(set(names))
    return ".SH SEE ALSO\n" + "".join(f".BR {escape(name)} {section}{',' if i + 1 < len(names) else ''}\n"
                                      for i, (name, section) in enumerate(names))


def function_page(header, version, function, pages):
    names, prototypes, comment = function
    what = comment.first_sentence()
    text = head(names[0], version, names, what[:1].lower() + what[1:]) + synopsis(header, prototypes)
    text += ".SH DESCRIPTION\n" + sentences(comment.text)
    for name, meaning in comment.arguments:
        text += f".TP\n.I {escape(name)}\n" + sentences(meaning)
    if "Returns" in comment.parts:
        text += ".SH RETURN VALUE\n" + sentences(comment.parts["Returns"])
    safety = "".join(f".TP\n.B {part}\n" + sentences(comment.parts[part]) for part in PARTS[1:] if part in comment.parts)
    if header.defaults():
        safety += (".PP\n" if safety else "") + sentences(header.defaults())
    text += ".SH SAFETY AND COST\n" + safety if safety else ""
    everything = " ".join([comment.text, *comment.parts.values(), *(meaning for _, meaning in comment.arguments)])
    mentioned = [(name, "(3)") for name in re.findall(r"(prof_\w+)\(", everything) if name in pages and name not in names]
    return text + see_also([("greenprof", "(1)"), (header.page(), "(3)"), *mentioned])


def paragraphs(lines):
    text = ""
    for part in "\n".join(lines).split("\n\n"):
        text += (".PP\n" if text else "") + sentences(" ".join(part.split()))
    return text


def header_page(header, version):
    what = header.about[0].rstrip(".")
    text = head(header.page(), version, [header.page()], what[:1].lower() + what[1:]) + synopsis(header)
    text += ".SH DESCRIPTION\n" + paragraphs(header.about) + ".SH FUNCTIONS\n"
    for names, _, comment in header.functions:
        text += ".TP\n" + f".BR {escape(names[0])} (3)\n" + sentences(comment.first_sentence() + ".")
    text += ".SH TYPES AND CONSTANTS\n.nf\n" if header.types else ""
    for code in header.types:
        text += "".join(escape(line) + "\n" for line in code.replace("`", "").splitlines() if line) + ".PP\n"
    text = text.removesuffix(".PP\n") + (".fi\n" if header.types else "")
    return text + see_also([("greenprof", "(1)")])


def write(folder, name, text):
    with open(os.path.join(folder, name + ".3"), "w", encoding="utf-8") as file:
        file.write(text)


def version_of(headers):
    for path in headers:
        with open(path, encoding="utf-8") as file:
            found = re.findall(r"^#define PROF_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)$", file.read(), re.MULTILINE)
        if found:
            return ".".join(found)
    sys.exit("make_man3.py: no header has the version")


def main():
    folder, *paths = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    version, headers = version_of(paths), [Header(path) for path in paths]
    pages = {name for header in headers for names, _, _ in header.functions for name in names}
    for header in headers:
        write(folder, header.page(), header_page(header, version))
        for function in header.functions:
            write(folder, function[0][0], function_page(header, version, function, pages))
            for name in function[0][1:]:
                write(folder, name, f".so man3/{function[0][0]}.3\n")


main()
