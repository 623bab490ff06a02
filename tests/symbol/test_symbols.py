# SPDX-License-Identifier: MIT
"""Symbols: against addr2line on real binaries, and against what is known of our own.

usage: test_symbols.py RESOLVE SPECIMEN
"""
import bisect, collections, lzma, os, random, re, shutil, subprocess, sys, tempfile, unittest

import agreement
from agreement import CLONE, build_id, debug_file, has_debug_information

RESOLVE, SPECIMEN = sys.argv[1], sys.argv[2]
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "specimen.cc")
Answer = collections.namedtuple("Answer", "function file line first_line")
ADDRESSES = 4000


def resolve_chains(path, addresses, *build_id):
    """What each address is in: the innermost inlined function first."""
    out = subprocess.run([RESOLVE, path, *build_id], text=True, check=True, capture_output=True,
                         input="".join(f"{address:x}\n" for address in addresses)).stdout
    return [[Answer(*words[i:i + 2], int(words[i + 2]), int(words[i + 3])) for i in range(0, len(words), 4)]
            for words in (line.split("\t") for line in out.splitlines())]


def resolve(path, addresses, *build_id):
    """The function that has the code, without what is inlined into it."""
    return [chain[-1] for chain in resolve_chains(path, addresses, *build_id)]


def symbols(path, *options):
    """(start, size, name) of every function symbol, demangled, without versions."""
    out = subprocess.run(["readelf", "-sW", "-C", *options, path], text=True, capture_output=True).stdout
    for line in out.splitlines():
        words = line.split(None, 7)
        if len(words) == 8 and words[3] in ("FUNC", "IFUNC") and words[6] != "UND":
            yield int(words[1], 16), int(words[2], 0), words[7].split("@")[0].split(" [clone")[0]


def unwind_ranges(path):
    """Functions as .eh_frame has them."""
    out = subprocess.run(["readelf", "--debug-dump=frames", path], text=True, capture_output=True).stdout
    return [(int(low, 16), int(high, 16)) for low, high in re.findall(r" pc=([0-9a-f]+)\.\.([0-9a-f]+)", out)]


def section_of(path, name):
    for line in subprocess.run(["readelf", "-SW", path], text=True, capture_output=True).stdout.splitlines():
        words = line.replace("[ ", "[").split()
        if len(words) > 5 and words[1] == name:
            return int(words[3], 16), int(words[5], 16)
    raise KeyError(name)


def llvm_files(path, addresses):
    """Base name of the source file of each address, as llvm-symbolizer has it."""
    if not shutil.which("llvm-symbolizer"):
        return None
    out = subprocess.run(["llvm-symbolizer", "-e", path, "-f=none", "--no-inlines"], text=True, check=True,
                         capture_output=True, input=addresses).stdout
    return [os.path.basename(line.rsplit(":", 2)[0]) for line in out.splitlines() if line]


class Spans:
    """(start, size, name) by address; they may nest."""

    def __init__(self, spans):
        self.spans = sorted(spans, key=lambda span: span[:2])
        self.starts = [span[0] for span in self.spans]
        self.longest = max((span[1] for span in self.spans), default=0)

    def at(self, address):
        number = bisect.bisect_right(self.starts, address)
        while number > 0 and self.starts[number - 1] > address - self.longest:
            number -= 1
            if address < self.starts[number] + self.spans[number][1]:
                yield self.spans[number]


class RealBinaries(unittest.TestCase):
    """Every name must be one of the symbols that cover the address, and every address that one covers must have a name."""

    def check_names(self, path, table):
        spans = sorted(symbols(*table))
        self.assertGreater(len(spans), 100, f"{table} has no symbols")
        start, size = section_of(path, ".text")
        random.seed(7)
        addresses = [random.randrange(start, start + size) for _ in range(ADDRESSES // 2)]
        addresses += [low + random.randrange(length) for low, length, _ in random.choices([s for s in spans if s[1]], k=ADDRESSES // 2)]
        named, functions = 0, Spans((low, high - low, None) for low, high in unwind_ranges(path))
        covering = Spans(spans)
        for address, answer in zip(addresses, resolve(path, addresses)):
            names = {name for _, _, name in covering.at(address)}
            unnamed = re.fullmatch(re.escape(os.path.basename(path)) + r"\+0x([0-9a-f]+)", answer.function)
            if unnamed:
                self.assertEqual(names, set(), f"{address:x} has a symbol")
                start = next((low for low, _, _ in functions.at(address)), address)
                self.assertEqual(int(unnamed[1], 16), start, f"at {address:x}")
                continue
            named += 1
            if names:
                self.assertIn(answer.function, {CLONE.sub("", name) for name in names}, f"at {address:x}")
            else:  # only a symbol without a size may cover it
                self.assertIn(answer.function, {name for _, length, name in spans if length == 0} | {"_start"},
                              f"{address:x} is in no symbol")
        return named

    def test_libc(self):
        path = "/usr/lib/x86_64-linux-gnu/libc.so.6"
        debug = debug_file(path)
        named = self.check_names(path, (debug,) if debug else (path, "--dyn-syms"))
        self.assertGreater(named, ADDRESSES * 0.45)

    def test_ifunc_stubs(self):
        path = "/usr/lib/x86_64-linux-gnu/libc.so.6"
        out = subprocess.run(["objdump", "-d", "-j", ".plt", path], text=True, capture_output=True).stdout
        stubs = [(int(stub, 16), int(target, 16))
                 for stub, target in re.findall(r"^([0-9a-f]+) <\*ABS\*\+0x([0-9a-f]+)@plt>:", out, re.M)]
        if not stubs:
            self.skipTest("this libc has no such stubs")
        names = collections.defaultdict(set)
        for low, size, name in symbols(debug_file(path) or path, *([] if debug_file(path) else ["--dyn-syms"])):
            names[low].add(name + "@plt")
        for (stub, target), answer in zip(stubs, resolve(path, [stub for stub, _ in stubs])):
            if names[target]:
                self.assertIn(answer.function, names[target])

    def test_bash(self):
        self.assertGreater(self.check_names("/bin/bash", ("/bin/bash", "--dyn-syms")), ADDRESSES * 0.45)

    def test_python(self):
        path = os.path.realpath("/usr/bin/python3")
        debug = debug_file(path)
        self.assertGreater(self.check_names(path, (debug,) if debug else (path, "--dyn-syms")), ADDRESSES * 0.45)

    def test_libstdcxx(self):
        path = "/usr/lib/x86_64-linux-gnu/libstdc++.so.6"
        self.assertGreater(self.check_names(path, (path, "--dyn-syms")), ADDRESSES * 0.45)

    def test_lines_agree_with_addr2line(self):
        path = "/usr/lib/x86_64-linux-gnu/libc.so.6"
        debug = debug_file(path)
        if debug is None:
            self.skipTest("libc6-dbg is not installed")
        random.seed(11)
        spans = [span for span in symbols(debug) if span[1] > 0]
        addresses = [low + random.randrange(size) for low, size, _ in random.choices(spans, k=ADDRESSES)]
        self.check_lines(path, debug, addresses, 0.6)

    def check_lines(self, path, debug, addresses, share):
        # binutils 2.40 takes file 1 of DWARF 5 for file 0 (lines of included templates come out under the including
        # file's name): the line counts, and the file where llvm-symbolizer is there.
        text = "".join(f"{address:#x}\n" for address in addresses)
        out = subprocess.run(["addr2line", "-e", debug], text=True, check=True, capture_output=True, input=text).stdout
        theirs = [line.split(" (")[0].rsplit(":", 1)[1] for line in out.splitlines()]
        files = llvm_files(debug, text)
        lines = wrong = 0
        for number, (answer, *_) in enumerate(resolve_chains(path, addresses)):
            if answer.line == 0:  # unknown, or of another file than the function
                continue
            lines += 1
            wrong += str(answer.line) != theirs[number]
            wrong += files is not None and os.path.basename(answer.file) != files[number]
        self.assertGreater(lines, len(addresses) * share)
        self.assertLessEqual(wrong, lines * 0.001, f"{wrong} of {lines} lines differ")

    def test_specimen_lines_agree_with_addr2line(self):
        start, size = section_of(SPECIMEN, ".text")
        addresses = [low + offset for low, length, name in symbols(SPECIMEN) for offset in range(length)
                     if "shop::" in name or name in ("helper(long)", "caller_of_inline(long)", "main")]
        self.assertGreater(len(addresses), 500)
        self.check_lines(SPECIMEN, SPECIMEN, addresses, 0.2)  # most of it is inlined from headers


class Agreement(unittest.TestCase):
    """Whole chains of names, with inlined functions, against addr2line and llvm-symbolizer: tools/bench/symbols in small."""

    def check(self, path, count=3000):
        if not has_debug_information(path):
            self.skipTest(f"{path} has no debug information here")
        demangled = agreement.Demangler()
        known = agreement.Symbols(path, demangled)
        addresses = known.pick(count, 3)
        ours = agreement.greenprof(RESOLVE, path, addresses)
        self.assertGreater(sum(len(chain) > 1 for chain in ours.chains), count * 0.02, "hardly anything is inlined")
        others = [agreement.addr2line(path, addresses), agreement.llvm_symbolizer(path, addresses)]
        compared = [agreement.Comparison(known, demangled, addresses, ours.chains, other.chains) for other in others if other]
        agreed = sum(any(votes) for votes in zip(*(comparison.agree for comparison in compared)))
        self.assertGreaterEqual(agreed, count * 0.999, [
            (kind, example) for comparison in compared for kind, examples in comparison.examples.items()
            if kind not in agreement.SAME for example in examples[:3]])

    def test_libc(self):
        self.check("/usr/lib/x86_64-linux-gnu/libc.so.6")

    def test_python(self):
        self.check("/usr/bin/python3.11")

    def test_specimen(self):
        self.check(SPECIMEN)


class Specimen(unittest.TestCase):
    def setUp(self):
        self.names = {name: (low, size) for low, size, name in symbols(SPECIMEN)}
        with open(SOURCE) as file:
            self.lines = {line.split("// LINE ")[1].strip(): number
                          for number, line in enumerate(file, 1) if "// LINE " in line}

    def at(self, name, offset=0):
        return resolve(SPECIMEN, [self.names[name][0] + offset])[0]

    def test_first_lines(self):
        for symbol, line in (("main", "main"), ("helper(long)", "helper"), ("caller_of_inline(long)", "caller_of_inline"),
                             ("shop::Basket<int>::add(int const&)", "Basket::add"),
                             ("shop::Basket<int>::total(long) const", "Basket::total")):
            with self.subTest(symbol):
                answer = self.at(symbol)
                self.assertEqual(answer.function, symbol)
                self.assertEqual(answer.first_line, self.lines[line])
                self.assertEqual(os.path.basename(answer.file), "specimen.cc")

    def test_function_keeps_its_file_where_code_is_inlined(self):
        low, size = next(span for name, span in self.names.items() if name.startswith("shop::stock"))
        answers = resolve(SPECIMEN, range(low, low + size))
        self.assertEqual({os.path.basename(answer.file) for answer in answers}, {"specimen.cc"})
        self.assertEqual({answer.first_line for answer in answers}, {self.lines["stock"]})
        inner = [chain[0] for chain in resolve_chains(SPECIMEN, range(low, low + size)) if len(chain) > 1]
        self.assertTrue(any("map" in answer.file or "tree" in answer.file for answer in inner), inner[:5])

    def test_inlined_function(self):
        low, size = self.names["caller_of_inline(long)"]
        chains = [chain for chain in resolve_chains(SPECIMEN, range(low, low + size)) if len(chain) > 1]
        self.assertTrue(chains)
        for inner, outer in chains:
            # A static function that is inlined everywhere has no linkage name, so no arguments are known.
            self.assertEqual((inner.function, inner.first_line), ("squared", self.lines["squared"]))
            self.assertEqual((outer.function, outer.first_line), ("caller_of_inline(long)", self.lines["caller_of_inline"]))
            self.assertEqual(outer.line, self.lines["call of squared"])  # where it was called
            self.assertIn(inner.line, (self.lines["squared"], self.lines["squared"] + 2))

    def test_sized_assembly(self):
        self.assertEqual(self.at("sized_asm").function, "sized_asm")
        self.assertEqual(self.at("sized_asm", 2).function, "sized_asm")  # not its inner label
        self.assertEqual(self.at("sized_asm", 4).function, "gap_behind_sized")  # a label outside any sized symbol

    def test_unsized_assembly_ends_at_the_next(self):
        self.assertEqual(self.at("unsized_asm", 2).function, "unsized_asm")
        low = self.names["unsized_asm"][0]
        self.assertEqual(self.names["outer_asm"][0], low + 16)
        self.assertEqual(resolve(SPECIMEN, [low + 15, low + 16])[1].function, "outer_asm")

    def test_labels_of_assembly(self):
        """A local label is no function, unless no other has its code."""
        start = self.names["labelled_function"][0]
        functions = [answer.function for answer in resolve(SPECIMEN, range(start, start + 12))]
        self.assertEqual(functions, ["labelled_function"] * 4 + ["labelled_code"] * 2 + ["labelled_frame"] * 3 +
                         ["behind_frame"] * 2 + ["another_label"])

    def test_nested(self):
        self.assertEqual([self.at("outer_asm", offset).function for offset in range(4)],
                         ["outer_asm", "nested_asm", "nested_asm", "outer_asm"])

    def test_best_alias(self):
        self.assertEqual(self.at("alias_weak").function, "alias_strong")

    def test_nobodys_code(self):
        low, _ = self.names["in_other_section"]
        answers = resolve(SPECIMEN, [low, low + 1, 0, 0xffffffffffff])
        self.assertEqual(answers[0].function, "in_other_section")
        for answer, address in zip(answers[1:], (low + 1, 0, 0xffffffffffff)):
            file = SPECIMEN if address != low + 1 else SOURCE.replace(".cc", ".S")  # its line is known all the same
            self.assertEqual(answer._replace(line=0), Answer(f"specimen+0x{address:x}", file, 0, 0))

    def test_plt(self):
        out = subprocess.run(["objdump", "-d", "--no-show-raw-insn", "-j", ".plt", "-j", ".plt.sec", "-j", ".plt.got", SPECIMEN],
                             text=True, capture_output=True).stdout
        stubs = [(int(a, 16), name) for a, name in re.findall(r"^([0-9a-f]+) <(.+)@plt>:", out, re.M)]
        self.assertGreater(len(stubs), 3)
        for (address, name), answer in zip(stubs, resolve(SPECIMEN, [address for address, _ in stubs])):
            if name == "*ABS*+0x0":
                continue
            plain = subprocess.run(["c++filt", name], text=True, capture_output=True).stdout.strip()
            self.assertEqual(answer.function, plain + "@plt")

    def test_start(self):
        self.assertEqual(self.at("_start").function, "_start")

    def test_wrong_build_id(self):
        low, _ = self.names["main"]
        self.assertEqual(resolve(SPECIMEN, [low], "00112233")[0].function, f"specimen+0x{low:x}")


class SeparateDebugFile(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.stripped = os.path.join(self.directory.name, "specimen")
        self.debug = os.path.join(self.directory.name, ".debug", "specimen.debug")
        os.mkdir(os.path.dirname(self.debug))
        subprocess.run(["objcopy", "--only-keep-debug", SPECIMEN, self.debug], check=True)
        subprocess.run(["strip", "-o", self.stripped, SPECIMEN], check=True)
        subprocess.run(["objcopy", "--add-gnu-debuglink=" + self.debug, self.stripped], check=True)
        self.names = {name: low for low, size, name in symbols(SPECIMEN)}

    def test_debuglink(self):
        addresses = [self.names["helper(long)"], self.names["main"], self.names["nested_asm"], self.names["_start"]]
        self.assertEqual([answer._replace(file="") for answer in resolve(self.stripped, addresses)],
                         [answer._replace(file="") for answer in resolve(SPECIMEN, addresses)])

    def test_stripped(self):
        os.unlink(self.debug)
        address = self.names["helper(long)"]
        self.assertEqual({answer.function for answer in resolve(self.stripped, [address, address + 1, address + 4])},
                         {f"specimen+0x{address:x}"})  # one function, by its start

    def test_debug_file_of_another_build(self):
        ident = bytes.fromhex(build_id(SPECIMEN))
        with open(self.debug, "rb") as file:
            data = file.read()
        self.assertIn(ident, data)
        address = self.names["helper(long)"]
        for other in (data.replace(ident, ident[:-1] + bytes([ident[-1] ^ 1])), data.replace(b"GNU\0" + ident, b"GNX\0" + ident)):
            with open(self.debug, "wb") as file:
                file.write(other)
            self.assertEqual(resolve(self.stripped, [address])[0].function, f"specimen+0x{address:x}")


class OtherPlaces(unittest.TestCase):
    """Debug information that is packed, shared, or somewhere else."""

    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.names = {name: low for low, size, name in symbols(SPECIMEN)}
        self.addresses = [self.names["caller_of_inline(long)"] + offset for offset in range(12)] + [self.names["main"]]

    def path(self, name):
        return os.path.join(self.directory.name, name)

    def check(self, path):
        self.assertEqual([[answer[:1] + answer[2:] for answer in chain] for chain in resolve_chains(path, self.addresses)],
                         [[answer[:1] + answer[2:] for answer in chain] for chain in resolve_chains(SPECIMEN, self.addresses)])

    def test_packed_sections(self):
        for kind in ("zlib", "zstd"):
            with self.subTest(kind):
                done = subprocess.run(["objcopy", f"--compress-debug-sections={kind}", SPECIMEN, self.path(kind)],
                                      capture_output=True)
                if done.returncode != 0:
                    self.skipTest(f"this objcopy does not know {kind}")
                self.assertRegex(subprocess.run(["readelf", "-SW", self.path(kind)], text=True, capture_output=True).stdout,
                                 r"\.debug_info .* C ")
                self.check(self.path(kind))

    def test_mini_debug_information(self):
        stripped, inner = self.path("specimen"), self.path("mini")
        subprocess.run(["objcopy", "--only-keep-debug", SPECIMEN, inner], check=True)
        subprocess.run(["strip", "-g", inner], check=True)  # symbols only
        subprocess.run(["strip", "-o", stripped, SPECIMEN], check=True)
        address = self.names["helper(long)"]
        self.assertEqual(resolve(stripped, [address])[0].function, f"specimen+0x{address:x}")
        with open(inner, "rb") as file:
            packed = lzma.compress(file.read())
        for data, name in ((packed, "helper(long)"), (packed[:-40], f"specimen+0x{address:x}")):
            with open(self.path("mini.xz"), "wb") as file:
                file.write(data)
            subprocess.run(["objcopy", "--remove-section", ".gnu_debugdata", "--add-section",
                            f".gnu_debugdata={self.path('mini.xz')}", stripped], check=True)
            self.assertEqual(resolve(stripped, [address, self.names["main"]])[0].function, name)

    def test_dwz(self):
        if not shutil.which("dwz"):
            self.skipTest("dwz is not installed")
        for name in ("one", "two"):
            shutil.copy(SPECIMEN, self.path(name))
        subprocess.run(["dwz", "-m", self.path("shared"), "-M", "shared", self.path("one"), self.path("two")], check=True,
                       capture_output=True)
        self.assertIn(".gnu_debugaltlink", subprocess.run(["readelf", "-SW", self.path("one")], text=True,
                                                          capture_output=True).stdout)
        self.check(self.path("one"))

    def test_link_with_a_checksum(self):
        """A file without a build-id: the link's CRC decides."""
        plain, debug = self.path("specimen"), self.path("specimen.debug")
        subprocess.run(["objcopy", "--remove-section", ".note.gnu.build-id", SPECIMEN, self.path("whole")], check=True)
        subprocess.run(["objcopy", "--only-keep-debug", self.path("whole"), debug], check=True)
        subprocess.run(["strip", "-o", plain, self.path("whole")], check=True)
        subprocess.run(["objcopy", "--add-gnu-debuglink=" + debug, plain], check=True)
        address = self.names["helper(long)"]
        self.assertEqual(resolve(plain, [address])[0].function, "helper(long)")
        with open(debug, "ab") as file:
            file.write(b"x")
        self.assertEqual(resolve(plain, [address])[0].function, f"specimen+0x{address:x}")

    def test_own_file_is_gone(self):
        path = "/usr/lib/x86_64-linux-gnu/libc.so.6"
        if debug_file(path) is None:
            self.skipTest("libc6-dbg is not installed")
        address = next(low for low, size, name in symbols(debug_file(path)) if name == "qsort_r")
        for elsewhere in ("/nonexistent/libc.so.6", SPECIMEN):  # gone, or of another build
            self.assertEqual(resolve(elsewhere, [address], build_id(path))[0].function, "qsort_r")

    def test_function_within_another(self):
        """GNU C's nested functions, which lie below another function's DIE, with what is inlined into them."""
        if not shutil.which("gcc"):
            self.skipTest("gcc is not installed")
        source, binary = self.path("a.c"), self.path("a")
        with open(source, "w") as file:
            file.write("static inline __attribute__((always_inline)) int twice(int n) { return n * 7 + n / 3; }\n"
                       "__attribute__((noinline)) int outer(int n)\n{\n"
                       "    __attribute__((noinline)) int within(int k) { return twice(k) + n; }\n"
                       "    return within(n) + within(n + 1) * 5;\n}\n"
                       "int main(int c, char **v) { return outer(c); }\n")
        subprocess.run(["gcc", "-O2", "-g", "-o", binary, source], check=True)
        low, size, name = next(item for item in symbols(binary) if item[2].startswith("within"))
        chains = resolve_chains(binary, range(low, low + size))
        self.assertEqual({chain[-1].function for chain in chains}, {name})
        self.assertEqual({chain[-1].first_line for chain in chains}, {4})
        self.assertIn("twice", {chain[0].function for chain in chains})

    def test_rust(self):
        if not shutil.which("rustc"):
            self.skipTest("rustc is not installed")
        source, binary = self.path("a.rs"), self.path("a")
        with open(source, "w") as file:
            file.write("pub struct Pair<T>(T, T);\n"
                       "impl<T: std::ops::Add<Output = T> + Copy> Pair<T> {\n"
                       "    #[inline(never)] pub fn sum(&self) -> T { self.0 + self.1 }\n}\n"
                       "fn main() { println!(\"{}\", Pair(1u32, std::env::args().count() as u32).sum()); }\n")
        for mangling, name in (("legacy", "a::Pair<T>::sum"), ("v0", "<a::Pair<u32>>::sum")):
            command = ["rustc", "-g", "-O", "-Csymbol-mangling-version=" + mangling, "-o", binary, source]
            if subprocess.run(command, capture_output=True).returncode != 0:
                command.insert(1, "-Zunstable-options")  # older ones
                if subprocess.run(command, capture_output=True, env={**os.environ, "RUSTC_BOOTSTRAP": "1"}).returncode != 0:
                    continue
            low = next(low for low, size, mangled in symbols(binary, "--no-demangle") if "Pair" in mangled and "sum" in mangled)
            self.assertEqual(resolve(binary, [low])[0].function, name)


class BadFiles(unittest.TestCase):
    """Whatever the file is, the answer is a name without a crash."""

    def damaged(self, data):
        with tempfile.NamedTemporaryFile() as file:
            file.write(data)
            file.flush()
            answers = resolve(file.name, [0x1000, 0x2345])
            self.assertEqual(len(answers), 2)

    def test_no_elf(self):
        for data in (b"", b"\x7fELF", b"\x7fELF\x02\x01\x01" + bytes(57), b"#!/bin/sh\n", os.urandom(4096)):
            self.damaged(data)
        for path in ("/", "/dev/null", "/nonexistent", "relative"):
            self.assertRegex(resolve(path, [0x10])[0].function, r"\+0x10$")

    def test_flipped_headers(self):
        with open(SPECIMEN, "rb") as file:
            data = bytearray(file.read())
        sections = int.from_bytes(data[40:48], "little")
        random.seed(3)
        for _ in range(120):
            copy = bytearray(data)
            for _ in range(random.randrange(1, 6)):
                at = random.choice((random.randrange(64), sections + random.randrange(len(copy) - sections)))
                copy[at] ^= 1 << random.randrange(8)
            self.damaged(bytes(copy))

    def test_cut(self):
        with open(SPECIMEN, "rb") as file:
            data = file.read()
        for cut in range(0, len(data), len(data) // 60):
            self.damaged(data[:cut])


if __name__ == "__main__":
    if not shutil.which("addr2line"):
        print("SKIP: binutils are not installed")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=1)
