# SPDX-License-Identifier: MIT
"""callgrind files, read by callgrind_annotate; what it does not understand it says on standard error."""
import re, shutil, subprocess

import support

ANNOTATE = shutil.which("callgrind_annotate")


def annotate(path, *options):
    result = subprocess.run([ANNOTATE, "--auto=no", "--threshold=100", *options, path], capture_output=True)
    if result.returncode != 0 or result.stderr:
        raise AssertionError(f"{path}: {result.returncode} {result.stderr.decode(errors='replace')}")
    return result.stdout.decode("utf8")


def number(text):
    return 0 if text == "." else int(text.replace(",", ""))


class Callgrind(support.Files):
    form = "callgrind"

    def totals(self, path):
        """(total, {function: own}, {function: inclusive}) in ns."""
        line = r"(?m)^ *([\d,.]+) (?:\([ \d.]+%\))? +[\d,.]+ (?:\([ \d.]+%\))? +(.*?)(?: \[[^][]*\]?\])?$"
        tables = []
        for inclusive in ("no", "yes"):
            rows = re.findall(line, annotate(path, "--inclusive=" + inclusive))
            total = [number(weight) for weight, name in rows if name.startswith("PROGRAM TOTALS")]
            tables.append({name.split(":", 1)[1]: number(weight) for weight, name in rows if ":" in name})
        return total[0], *tables

    def test_labelled_golden(self):
        with open(self.report("labelled"), encoding="utf8") as file:
            self.check_golden("labelled.callgrind", file.read())

    def test_recursion(self):
        total, own, inclusive = self.totals(self.report("labelled"))
        self.assertEqual(total, 899000001)
        self.assertEqual(inclusive["[root]"], total)
        self.assertEqual(inclusive["main"], 890000001)  # a root with callees, and with time of its own
        self.assertEqual(own["main"], 1)
        self.assertEqual((inclusive["a"], inclusive["b"], own["b"]), (600000000,) * 3)  # a b a b
        self.assertEqual(sum(own.values()), total)

    def test_example(self):
        total, own, inclusive = self.totals(self.report("example"))
        self.assertEqual(total, 1000000300)
        self.assertEqual((own["fib"], inclusive["fib"]), (800000400, 800000400))
        self.assertEqual(inclusive["main"], 995002300)
        self.assertIn("parse<std::map<int, char const*> >(a; b)", own)
        self.assertIn("broken \ufffd\ufffd(  [31m newline", inclusive)

    def test_callers(self):
        tree = annotate(self.report("labelled"), "--inclusive=yes", "--tree=both")
        self.assertRegex(tree, r"600,000,000 .* < /src/main.c:main \(600x\)")
        self.assertRegex(tree, r" 0 +0 +< /src/a.c:b \(400x\)")

    def test_capture(self):
        total, own, inclusive = self.totals(self.export())
        self.assertEqual(total, 4600000)
        self.assertEqual(round(total / 1000), self.folded_total_us())
        self.assertEqual(inclusive["server+0x1020"], total)
        _, _, inclusive = self.totals(self.export("--by", "coroutine"))
        self.assertIn('[coroutine 3 wor"k;er]', inclusive)

    def test_functions_of_unknown_source(self):
        # A module is no source file, though it is there to be read; two functions of one name are two.
        script = support.SCRIPT.replace("/opt/app/server 0102", "/bin/sh -").replace("stack 1 0 1:1010 1:1020",
                                                                                    "stack 1 0 1:1010 1:1020 function:1:0 function:2:0")
        script = "function 1 0 same /lib/one.so\nfunction 2 0 same /lib/two.so\n" + script
        path = self.export(script=script)
        annotate(path, "--auto=yes")
        self.assertNotIn("/bin/sh", re.sub(r"(?m)^c?ob=.*", "", open(path, encoding="utf8").read()))

    def test_empty(self):
        for path in (self.report("empty"), self.export(script=support.NO_SAMPLES)):
            self.assertEqual(sum(self.totals(path)[1].values()), 0)

    def test_huge(self):
        self.assertEqual(self.totals(self.report("huge"))[0], 9100000000000000007)

    def test_in_process(self):
        total_ns, path = self.dumps()
        total, own, inclusive = self.totals(path)
        self.assertEqual(total, total_ns)
        self.assertGreater(inclusive["main"], 0.9 * total)
        annotated = subprocess.run([ANNOTATE, "--auto=yes", path], capture_output=True, text=True).stdout
        self.assertRegex(annotated, r"[\d,]+ .*sink \+= ")  # costs are at their lines

    def test_full_disk(self):
        self.expect_no_partial_output()


if ANNOTATE is None:
    support.skip("there is no callgrind_annotate")
support.main()
