# SPDX-License-Identifier: MIT
"""Writes the seeds of the fuzz targets anew: small files from this machine's compilers. What the fuzzers found is kept
beside them by hand.

usage: make_corpus.py DIRECTORY
"""
import lzma, os, re, struct, subprocess, sys, tempfile, zlib

SECTIONS = [".debug_info", ".debug_abbrev", ".debug_line", ".debug_str", ".debug_line_str", ".debug_ranges",
            ".debug_rnglists", ".debug_addr", ".debug_str_offsets", ".debug_info.dwo", ".debug_abbrev.dwo",
            ".debug_str.dwo", ".debug_str_offsets.dwo", ".debug_rnglists.dwo", ".debug_cu_index"]
SOURCE = """
template <int N> struct box { int v; int get(int x) { return x * v + N; } };
static inline int twice(int x) { return x + x; }
extern int hot(int), cold(int) __attribute__((cold));
int work(int n) { box<3> b = {n}; if (n > 9) { cold(n); return twice(b.get(n)); } return hot(n) + b.get(twice(n)); }
int more(int n) { return work(n) + twice(n); }
"""


def run(*command):
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def write(directory, target, name, data):
    os.makedirs(os.path.join(directory, target), exist_ok=True)
    with open(os.path.join(directory, target, name), "wb") as file:
        file.write(data)


def sections(path):
    """name -> bytes"""
    with open(path, "rb") as file:
        data = file.read()
    out = subprocess.run(["readelf", "-SW", path], text=True, capture_output=True, check=True).stdout
    found = re.findall(r"\] (\.\S+)\s+(\S+)\s+[0-9a-f]{16} ([0-9a-f]+) ([0-9a-f]+)", out)
    return {name: data[int(offset, 16):int(offset, 16) + int(size, 16)] for name, kind, offset, size in found
            if kind != "NOBITS"}


def listed(found):
    return b"".join(bytes([number]) + struct.pack("<H", len(found[name])) + found[name]
                    for number, name in enumerate(SECTIONS) if name in found)


def split(directory, scratch):
    source, binary = os.path.join(scratch, "a.cc"), os.path.join(scratch, "split.so")
    for version in (4, 5):
        run("clang++", f"-gdwarf-{version}", "-gsplit-dwarf", "-O2", "-fPIC", "-c", "-o", scratch + "/split.o", source)
        run("clang++", "-shared", "-nostdlib", "-o", binary, scratch + "/split.o", "-Wl,--unresolved-symbols=ignore-all")
        run("llvm-dwp", "-e", binary, "-o", binary + ".dwp")
        for name, file in (("dwo", scratch + "/split.dwo"), ("dwp", binary + ".dwp")):
            write(directory, "debug_info", f"{name}_{version}", listed({**sections(binary), **sections(file)}))


def dwarf(directory, scratch):
    source, binary = os.path.join(scratch, "a.cc"), os.path.join(scratch, "a.so")
    with open(source, "w") as file:
        file.write(SOURCE)
    for compiler, version in (("g++", 3), ("g++", 4), ("g++", 5), ("clang++", 4), ("clang++", 5)):
        run(compiler, f"-gdwarf-{version}", "-gz=none", "-O2", "-shared", "-fPIC", "-nostdlib", "-o", binary, source,
            "-Wl,--unresolved-symbols=ignore-all")
        found = sections(binary)
        write(directory, "debug_info", f"{compiler.rstrip('+')}_{version}", listed(found))
        write(directory, "debug_line", f"{compiler.rstrip('+')}_{version}", found[".debug_line"])
    run("strip", "-g", binary)
    small = os.path.join(scratch, "debug")
    run("objcopy", "--only-keep-debug", binary, small)
    with open(os.path.join(scratch, "mini.xz"), "wb") as file, open(small, "rb") as debug:
        file.write(lzma.compress(debug.read()[:4096]))
    run("objcopy", "--add-gnu-debuglink=" + small, "--add-section", f".gnu_debugdata={scratch}/mini.xz",
        "--add-section", f".gnu_debugaltlink={source}", binary)
    run("strip", "-R", ".comment", "--keep-symbol=_Z4morei", binary)
    with open(binary, "rb") as file:
        write(directory, "elf", "shared_object", file.read())


def packed(directory):
    text = b"text " * 40
    write(directory, "packed", "zlib_old", b"\2ZLIB" + struct.pack(">Q", len(text)) + zlib.compress(text))
    for name, kind, data in (("zlib", 1, zlib.compress(text)), ("unknown", 9, text)):
        write(directory, "packed", name, b"\0" + struct.pack("<IIQQ", kind, 0, len(text), 1) + data)
    zstd = subprocess.run(["zstd", "-c"], input=text, capture_output=True, check=True).stdout
    write(directory, "packed", "zstd", b"\0" + struct.pack("<IIQQ", 2, 0, len(text), 1) + zstd)
    write(directory, "packed", "xz", b"\1" + lzma.compress(text))


def texts(directory):
    names = ["_ZN4shop6BasketIiE3addERKi.constprop.0.cold", "_ZNSt6vectorIiSaIiEE9push_backEOi@plt", "main.part.0",
             "_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "_RNvCs1234_7mycrate3foo",
             "_RINvNtC3std3mem8align_ofdE", "_RNvMs_NtCs1_1a1bINtB4_3FoopE3bar", "_ZZ4workiENKUliE_clEi",
             "_D8d_fibers4spinFdZv", "_D8demangle11__T4testTaZv", "camlStdlib__$2b_fun__map_3_8_code", "_Z3vecPfi.avx512f.0"]
    for number, name in enumerate(names):
        write(directory, "names", f"name{number}", name.encode())
    write(directory, "perf_map", "overlaps", b"1000 100 first\n1040 10 second one\n10f0 20 third\n0x900 0x800 last\n")
    write(directory, "perf_map", "bad", b"xyz 10 a\n1 0 b\nffffffffffffffff 2 c\n10 10\n20 20 no end")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        dwarf(sys.argv[1], scratch)
        split(sys.argv[1], scratch)
    packed(sys.argv[1])
    texts(sys.argv[1])
