# SPDX-License-Identifier: MIT
"""Names and inlined functions held against addr2line and llvm-symbolizer: used by test_symbols.py and tools/bench/symbols,
which also asks libdw and libdwarf.

Neither of the first two reads the names that dwz moved to a file that several binaries share, nor does libdwarf; libdw and
gdb do. All are asked about the same addresses. Names are compared as c++filt writes them, without the suffixes of copies
that a compiler made of a function (".constprop.0"), which some show and others do not.
"""
import bisect, collections, os, random, re, resource, shutil, subprocess, tempfile, time

CLONE = re.compile(r"\.(cold|constprop|isra|lto_priv|llvm)(\.\d+)?(?=[.@]|$)|@@?[A-Z]\w*_[\d.]+$")  # and symbols' versions
Time = collections.namedtuple("Time", "clock cpu")  # seconds, from a process's start to its end
Tool = collections.namedtuple("Tool", "chains time")  # chains: one tuple of names an address, innermost first


def run(command, addresses):
    """Standard output, and the time that the process took. It reads and writes files: nobody waits for this program."""
    with tempfile.TemporaryFile("w+") as questions, tempfile.TemporaryFile("w+", errors="replace") as answers:
        questions.writelines(f"{address:#x}\n" for address in addresses)
        questions.seek(0)
        before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        subprocess.run(command, check=True, stdin=questions, stdout=answers, stderr=subprocess.DEVNULL)
        end, after = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        answers.seek(0)
        cpu = (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)
        return answers.read(), Time(end - begin, cpu)


def greenprof(resolve, path, addresses, threads=0):
    out, taken = run([resolve, "--threads", str(threads), path], addresses)
    return Tool([tuple(line.split("\t")[0::4]) for line in out.splitlines()], taken)


def addr2line(path, addresses, program="addr2line"):
    """binutils' (libbfd); or elfutils' eu-addr2line (libdw), which prints the same."""
    if shutil.which(program) is None:
        return None
    out, taken = run([program, "-a", "-i", "-f", "-e", path], addresses)
    chains = []
    for line in out.splitlines():
        if re.fullmatch(r"0x[0-9a-f]{16}", line):
            chains.append([])
            name = True
        else:  # names and places take turns
            if name:
                chains[-1].append(line.split(" inlined at ")[0])  # which elfutils adds
            name = not name
    return Tool([tuple(chain) for chain in chains], taken)


def llvm_symbolizer(path, addresses):
    program = next((name for name in ("llvm-symbolizer", "llvm-symbolizer-14") if shutil.which(name)), None)
    if program is None:
        return None
    out, taken = run([program, "-e", path, "-f", "-i", "--no-demangle"], addresses)
    return Tool([tuple(block.split("\n")[0::2]) for block in out.rstrip("\n").split("\n\n")], taken)


def libdwarf(ask, path, addresses):
    """Functions of their own or inlined, as DWARF names them; symbols are not asked."""
    if not os.path.exists(ask) or is_shared_by_dwz(path):
        return None
    out, taken = run([ask, debug_file(path) or path], addresses)
    return Tool([tuple(line.split("\t")) for line in out.splitlines()], taken)


# The task for gdb: for each address, the function of each block around it.
GDB_SCRIPT = """
import gdb
with open({addresses!r}) as addresses, open({answers!r}, "w") as answers:
    for line in addresses:
        block, names = gdb.block_for_pc(int(line, 16)), []
        while block is not None and not block.is_global and not block.is_static:
            if block.function is not None:
                names.append(block.function.linkage_name or block.function.name)
            block = block.superblock
        print("\\t".join(names) or "??", file=answers)
"""


def gdb(path, addresses):
    if not shutil.which("gdb"):
        return None
    with tempfile.TemporaryDirectory() as directory:
        questions, answers, script = (os.path.join(directory, name) for name in ("questions", "answers", "script.py"))
        with open(questions, "w") as file:
            file.writelines(f"{address:#x}\n" for address in addresses)
        with open(script, "w") as file:
            file.write(GDB_SCRIPT.format(addresses=questions, answers=answers))
        _, taken = run(["gdb", "-nx", "-batch", "-x", script, path], [])
        with open(answers) as file:
            return Tool([tuple(line.rstrip("\n").split("\t")) for line in file], taken)


class Demangler:
    """c++filt, asked once a name."""

    def __init__(self):
        self.known = {}

    def learn(self, names):
        new = sorted({CLONE.sub("", name) for name in names} - self.known.keys())
        out = subprocess.run(["c++filt", "-i"], input="".join(name + "\n" for name in new), text=True, check=True,
                             capture_output=True, errors="replace").stdout.splitlines()
        self.known.update(zip(new, out))

    def __getitem__(self, name):
        return self.known[CLONE.sub("", name)]


class Symbols:
    """The function symbols of a file as readelf shows them; its debug file's where it has one."""

    def __init__(self, path, demangled):
        self.spans, self.aliases = [], collections.defaultdict(set)
        names = []
        for file in filter(None, (path, debug_file(path))):
            out = subprocess.run(["readelf", "-sW", file], text=True, capture_output=True, errors="replace").stdout
            for line in out.splitlines():
                words = line.split(None, 7)
                if len(words) == 8 and words[3] in ("FUNC", "IFUNC", "NOTYPE") and words[6].isdigit():
                    names.append((int(words[1], 16), int(words[2], 0), words[7].split(" [")[0].split("@")[0]))
        demangled.learn(name for _, _, name in names)
        for start, size, name in names:
            self.aliases[demangled[name]].add(start)
            if size:
                self.spans.append((start, size, demangled[name]))
        self.spans = sorted(set(self.spans))
        self.starts = [start for start, _, _ in self.spans]
        self.longest = max((size for _, size, _ in self.spans), default=0)

    def at(self, address):
        number = bisect.bisect_right(self.starts, address)
        while number > 0 and self.starts[number - 1] > address - self.longest:
            number -= 1
            if address < self.spans[number][0] + self.spans[number][1]:
                yield self.spans[number]

    def same(self, one, other):
        """Are both names of the same code?"""
        return bool(self.aliases.get(one, set()) & self.aliases.get(other, set()))

    def pick(self, count, seed):
        """Addresses in functions, by their sizes: where a program counter may be."""
        low, high = text_section_bounds(self.spans)
        spans = [span for span in self.spans if low <= span[0] < high]
        chosen = random.Random(seed).choices(spans, weights=[size for _, size, _ in spans], k=count)
        return [start + random.Random(f"{seed} {number}").randrange(size) for number, (start, size, _) in enumerate(chosen)]


def text_section_bounds(spans):
    return spans[0][0], spans[-1][0] + spans[-1][1]


def build_id(path):
    found = re.search(r"Build ID: (\w+)", subprocess.run(["readelf", "-n", path], text=True, capture_output=True).stdout)
    return found and found[1]


def debug_file(path):
    ident = build_id(path)
    found = ident and f"/usr/lib/debug/.build-id/{ident[:2]}/{ident[2:]}.debug"
    return found if found and os.path.exists(found) else None


def has_section(path, name):
    """Has the file such a section, or its debug file?"""
    return any(name in subprocess.run(["readelf", "-SW", file], text=True, capture_output=True).stdout
               for file in filter(None, (path, debug_file(path))))


def has_debug_information(path):
    return has_section(path, ".debug_info")


def is_shared_by_dwz(path):
    return has_section(path, ".gnu_debugaltlink")


PART = "the same function, without its suffix .part"  # which says: called from the rest of the function, no recursion
PLAIN = "the symbol's name with its arguments, they have the plain one"  # of functions without a linkage name in DWARF
SAME = ("same", "another name of the same code", PART, PLAIN)


def plain_name(name):
    """The identifier alone: no scope, no template's and no function's arguments."""
    return re.split(r"[<(]", name.replace("(anonymous namespace)::", ""))[0].split("::")[-1] or name


def classify(symbols, address, ours, theirs):
    """In which way two chains of names differ."""
    covered = {name for _, _, name in symbols.at(address)}
    if ours == theirs:
        return "same"
    inner_same = ours[:-1] == theirs[:-1]
    if inner_same and symbols.same(ours[-1], theirs[-1]):
        return "another name of the same code"
    if inner_same and re.sub(r"( \[clone \.part[.\d]*\]|\.part\.\d+)$", "", ours[-1]) == theirs[-1]:
        return PART
    if theirs[-1] == "??":
        return "they know nothing, a symbol covers it" if ours[-1] in covered else "they know nothing"
    if re.search(r"\+0x[0-9a-f]+$", ours[-1]):
        return "no name here, and no symbol covers it" if theirs[-1] not in covered else "WE HAVE NO NAME"
    if inner_same and ours[-1] in covered and plain_name(theirs[-1]) in ours[-1] and theirs[-1] not in covered:
        return PLAIN
    if inner_same and ours[-1] in covered and theirs[-1] not in covered:
        return "their function's symbol does not cover it, ours does"
    if inner_same or (len(ours) == 1 and len(theirs) == 1):
        return "another function"
    if ours[-1] == theirs[-1] or symbols.same(ours[-1], theirs[-1]):
        return "other inlined functions in the same function"
    return "other"


class Comparison:
    """What one tool says, address by address, against what greenprof says."""

    def __init__(self, symbols, demangled, addresses, ours, theirs):
        demangled.learn(name for chain in theirs for name in chain)
        demangled.learn(name for chain in ours for name in chain)
        if not len(addresses) == len(ours) == len(theirs):
            raise ValueError(f"{len(addresses)} addresses, {len(ours)} and {len(theirs)} answers")
        self.classes, self.examples, self.agree = collections.Counter(), collections.defaultdict(list), []
        for address, our_chain, their_chain in zip(addresses, ours, theirs):
            our_chain, their_chain = (tuple(demangled[name] for name in chain) for chain in (our_chain, their_chain))
            kind = classify(symbols, address, our_chain, their_chain)
            self.classes[kind] += 1
            self.agree.append(kind in SAME)
            self.examples[kind].append((address, our_chain, their_chain))

    def share(self):
        return sum(self.agree) / len(self.agree)
