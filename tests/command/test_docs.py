# SPDX-License-Identifier: MIT
"""Manual pages and shell completions say what the command's own help says.

usage: test_docs.py GREENPROF DOCS-OF-THE-BUILD MAN-SOURCES
"""
import os, re, shutil, subprocess, sys, tempfile, unittest

GREENPROF, DOCS, SOURCES = (os.path.abspath(path) for path in sys.argv[1:4])


def help_of(*arguments):
    return subprocess.run([GREENPROF, *arguments, "--help"], capture_output=True, text=True, check=True).stdout


COMMANDS = re.findall(r"^  (\w+) ", help_of(), re.M)


def options_of(command):
    """{--long: (letter or None, value or None)}, from the help text."""
    return {long: (letter or None, value or None)
            for letter, long, value in re.findall(r"^  (?:-(\w), |    )(--[\w-]+)(?: (\S+))?", help_of(command), re.M)}


class Man(unittest.TestCase):
    def page(self, name):
        return os.path.join(DOCS, "man", name + ".1")

    def text(self, name):
        environment = {**os.environ, "MANWIDTH": "1000", "LC_ALL": "C.UTF-8"}
        text = subprocess.run(["man", "-l", "-P", "cat", self.page(name)], capture_output=True, text=True, check=True, env=environment).stdout
        return re.sub(r".\x08", "", text)

    def test_every_command_has_a_page(self):
        self.assertEqual(sorted(os.listdir(os.path.join(DOCS, "man"))), sorted(["greenprof.1"] + [f"greenprof-{name}.1" for name in COMMANDS]))
        for source in os.listdir(SOURCES):  # nothing is left of a command that is gone
            self.assertIn(source.removesuffix(".man"), ["greenprof", *COMMANDS])

    def check(self, *checker):
        if shutil.which(checker[0]) is None:
            self.skipTest(f"no {checker[0]}")
        for name in sorted(os.listdir(os.path.join(DOCS, "man"))):
            result = subprocess.run([*checker, os.path.join(DOCS, "man", name)], capture_output=True, text=True)
            self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""), name)

    def test_mandoc(self):
        self.check("mandoc", "-Tlint", "-Wwarning")

    def test_groff(self):
        self.check("groff", "-man", "-ww", "-z")

    def test_same_as_help(self):
        if shutil.which("man") is None:
            self.skipTest("no man")
        for command in COMMANDS:
            text, words = self.text("greenprof-" + command), lambda string: " ".join(string.split())
            for long, (letter, value) in options_of(command).items():
                self.assertRegex(text, rf"(?m)^ +{f'-{letter}, ' if letter else ''}{long}{' ' + re.escape(value) if value else ''}(?:$| {{1,2}}[A-Za-z]+:? )", command)
            self.assertIn(f"greenprof-{command} - ", text)
            self.assertIn("DESCRIPTION", text)
            what = re.search(r"(?m)^(\w.*)\.$", help_of(command))[1]
            self.assertIn(what[0].lower() + what[1:], text)
        overview = self.text("greenprof")
        for command in COMMANDS:
            self.assertRegex(overview, rf"(?m)^ +{command}\b")
            self.assertIn(f"greenprof-{command}(1)", overview)


class Completion(unittest.TestCase):
    def path(self, name):
        return os.path.join(DOCS, "completion", name)

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        for name in ("one.greenprof", "two words.greenprof", "other.txt"):
            open(os.path.join(self.directory, name), "w").close()

    def complete(self, line):
        raise NotImplementedError

    def check_all(self):
        self.assertEqual(set(COMMANDS) - set(self.complete("greenprof ")), set())
        self.assertEqual(self.complete("greenprof expo"), ["export"])
        for command in COMMANDS:
            options = options_of(command)
            self.assertEqual({word for word in self.complete(f"greenprof {command} --") if word.startswith("--")}, set(options), command)
            for long, (letter, value) in options.items():
                if value and "|" in value and value.islower():
                    for name in [long] + ([f"-{letter}"] if letter else []):
                        self.assertEqual(sorted(self.complete(f"greenprof {command} {name} ")), sorted(value.split("|")), (command, name))
        formats = re.findall(r"(?m)^ {29,}(\w+) {2,}\S", help_of("export"))
        self.assertGreater(len(formats), 8)
        self.assertEqual(sorted(self.complete("greenprof export --format ")), sorted(formats))
        self.assertEqual(sorted(self.complete("greenprof report --sort cum")), ["cumtime", "cumulative"])
        self.assertEqual(sorted(self.complete("greenprof help re")), ["record", "recover", "report"])
        self.assertIn("one.greenprof", self.complete("greenprof report o"))


class Bash(Completion):
    def complete(self, line):
        words = line.split(" ")
        quoted = " ".join("'" + word + "'" for word in words)
        script = f"source {self.path('greenprof.bash')}; COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _greenprof; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        result = subprocess.run(["bash", "--norc", "-c", script], capture_output=True, text=True, cwd=self.directory)
        self.assertEqual(result.stderr, "")
        return result.stdout.split("\n")[:-1] if result.stdout.strip() else []

    def test_all(self):
        self.check_all()

    def test_files(self):
        self.assertEqual(sorted(self.complete("greenprof info ")), ["one.greenprof", "two words.greenprof"])
        self.assertEqual(self.complete("greenprof export --output ot"), ["other.txt"])
        self.assertIn("true", self.complete("greenprof run tru"))

    def test_equals_sign_and_lists(self):
        script = f"source {self.path('greenprof.bash')}; COMP_WORDS=(greenprof report --by = co); COMP_CWORD=4; _greenprof; echo \"${{COMPREPLY[@]}}\""
        self.assertEqual(subprocess.run(["bash", "-c", script], capture_output=True, text=True).stdout, "coroutine\n")
        self.assertEqual(self.complete("greenprof report -s time,nf"), ["time,nfl"])


class Fish(Completion):
    def setUp(self):
        super().setUp()
        if shutil.which("fish") is None:
            self.skipTest("no fish")

    def complete(self, line):
        script = f"source {self.path('greenprof.fish')}; complete -C '{line}'"
        result = subprocess.run(["fish", "--no-config", "-c", script], capture_output=True, text=True, cwd=self.directory,
                                env={**os.environ, "HOME": self.directory, "XDG_CONFIG_HOME": self.directory, "XDG_DATA_HOME": self.directory})
        self.assertEqual(result.stderr, "")
        return [candidate.split("\t")[0].removesuffix("=") for candidate in result.stdout.splitlines()]

    def test_all(self):
        self.check_all()


class Zsh(Completion):
    """zsh's own completion runs in a terminal: here its text is read, and checked by zsh."""

    def test_syntax(self):
        if shutil.which("zsh") is None:
            self.skipTest("no zsh")
        result = subprocess.run(["zsh", "-n", self.path("_greenprof")], capture_output=True, text=True)
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_same_as_help(self):
        with open(self.path("_greenprof")) as file:
            text = file.read()
        for command in COMMANDS:
            self.assertRegex(text, rf"(?m)^    '{command}:")
            block = re.search(rf"(?ms)^  {command}(?:\|\w+)?\)\n(.*?)^    ;;", text)[1]
            # Every line is one option, or the last one the operands.
            found = {long: letter for letter, long in re.findall(r"(?m)^      (?:'[^']*'\{-(\w)\+?,|(?:'\*')?)(--[\w-]+)", block)}
            self.assertEqual(found, {long: letter or "" for long, (letter, _) in options_of(command).items()}, command)

    def test_in_zsh(self):
        if shutil.which("zsh") is None:
            self.skipTest("no zsh")
        # _arguments is replaced by one that tells how it was called; words are expanded by zsh itself.
        script = f"""
            _arguments() {{ print -rl -- "$@" }}; _describe() {{ print -rl -- ${{(P)2}} }}
            words=(greenprof report --) CURRENT=3
            source {self.path('_greenprof')}
        """
        result = subprocess.run(["zsh", "-f", "-c", script], capture_output=True, text=True)
        self.assertEqual(result.stderr, "")
        specs = result.stdout.splitlines()
        self.assertTrue(any(spec.startswith("(-s --sort)--sort=[") for spec in specs), specs)
        self.assertTrue(any(spec.startswith("*-r+[") for spec in specs))
        self.assertTrue(any("(function coroutine thread trace" in spec for spec in specs))


del Completion  # abstract

if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
