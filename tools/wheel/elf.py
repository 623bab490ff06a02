# SPDX-License-Identifier: MIT
"""Needs of an ELF file of the machine it runs on, and the platform tag that a wheel of such files may have.

Source: elf(5); the symbol versions of gABI's Linux extension; PEP 600, and the lists by which auditwheel judges.
"""
import struct

MACHINES = {62: "x86_64", 183: "aarch64"}
# Libraries of every glibc machine of these tags; of zlib, only versions that all of them have.
SYSTEM = {"libc.so.6", "libm.so.6", "libdl.so.2", "librt.so.1", "libpthread.so.0", "libutil.so.1", "libresolv.so.2",
          "libz.so.1", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
ZLIB_NEWEST = (1, 2, 5, 2)
OLDEST_GLIBC = (2, 17)  # manylinux2014: the first with an aarch64
DYNAMIC, LOAD = 2, 1
NEEDED, STRTAB, SONAME, RPATH, RUNPATH, VERNEED, VERNEEDNUM = 1, 5, 14, 15, 29, 0x6FFFFFFE, 0x6FFFFFFF


class Bad(Exception):
    """A file that is no whole ELF file of this kind."""


class Elf:
    """machine; needed: names of libraries; soname; runpath; versions: {(library, version)}"""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.bytes = file.read()
        self.path = path
        try:
            self._read()
        except (struct.error, IndexError, UnicodeDecodeError):
            raise Bad(f"{path}: not a whole ELF file") from None

    def _at(self, form, offset):
        if offset < 0:
            raise IndexError
        return struct.unpack_from("<" + form, self.bytes, offset)

    def _read(self):
        if self.bytes[:6] != b"\x7fELF\x02\x01":
            raise Bad(f"{self.path}: not an ELF file of 64 bits, least byte first")
        kind, machine = self._at("HH", 16)
        headers, sections = self._at("QQ", 32)
        size, count, section_size, section_count = self._at("HHHH", 54)
        self.machine = MACHINES.get(machine, f"machine{machine}")
        if kind not in (2, 3) or sections + section_size * section_count > len(self.bytes):
            raise Bad(f"{self.path}: not a whole program or shared library")
        segments = [self._at("IIQQQQ", headers + size * i) for i in range(count)]
        self.loads = [(offset, address, bytes_) for kind, _, offset, address, _, bytes_ in segments if kind == LOAD]
        if any(offset + bytes_ > len(self.bytes) for offset, _, bytes_ in self.loads):
            raise Bad(f"{self.path}: its end is missing")
        dynamic = [(offset, bytes_) for kind, _, offset, _, _, bytes_ in segments if kind == DYNAMIC]
        self._read_dynamic([self._at("QQ", offset + i) for offset, bytes_ in dynamic for i in range(0, bytes_, 16)])

    def _offset(self, address):
        for offset, start, bytes_ in self.loads:
            if start <= address < start + bytes_:
                return address - start + offset
        raise IndexError

    def _text(self, index):
        start = self._offset(self.strings + index)
        return self.bytes[start:self.bytes.index(b"\0", start)].decode()

    def _read_dynamic(self, entries):
        values = dict(reversed(entries))
        self.strings = values.get(STRTAB, 0)
        self.needed = [self._text(value) for tag, value in entries if tag == NEEDED]
        self.soname = self._text(values[SONAME]) if SONAME in values else None
        self.runpath = [part for tag in (RPATH, RUNPATH) if tag in values for part in self._text(values[tag]).split(":") if part]
        self.versions = set()
        at = self._offset(values[VERNEED]) if VERNEED in values else 0
        for _ in range(values.get(VERNEEDNUM, 0)):
            _, count, file, first, following = self._at("HHIII", at)
            self._read_versions(self._text(file), at + first, count)
            at += following

    def _read_versions(self, library, at, count):
        for _ in range(count):
            _, _, _, name, following = self._at("IHHII", at)
            self.versions.add((library, self._text(name)))
            at += following


def _numbers(version):
    parts = version.split("_")[-1].split(".")
    return tuple(map(int, parts)) if all(part.isdecimal() for part in parts) else None


def _objection(library, version):
    """Why no manylinux tag may be claimed with such a need, or None."""
    numbers = _numbers(version)
    if version.startswith("GLIBC_") and numbers is None and version != "GLIBC_ABI_DT_RELR":
        return f"{version} of {library}"
    if version.startswith("ZLIB_") and (numbers is None or numbers > ZLIB_NEWEST):
        return f"{version} of {library}"
    return None


def platform_tag(elves, bundled):
    """The tag for a wheel of these files, of which `bundled` are found beside each other; and a list of objections to a tag for
    other distributions: where there is any, the tag is this machine's."""
    machines = {elf.machine for elf in elves}
    if len(machines) != 1:
        raise Bad(f"files for different machines: {', '.join(sorted(machines))}")
    against, newest = set(), OLDEST_GLIBC
    for elf in elves:
        against |= {f"{elf.path}: needs {name}" for name in elf.needed if name not in SYSTEM and name not in bundled}
        for library, version in elf.versions:
            if library in bundled or library not in SYSTEM:
                continue
            objection = _objection(library, version)
            if objection:
                against.add(f"{elf.path}: needs {objection}")
            elif version == "GLIBC_ABI_DT_RELR":
                newest = max(newest, (2, 36))
            elif version.startswith("GLIBC_"):
                newest = max(newest, _numbers(version)[:2])
    machine = machines.pop()
    tag = f"linux_{machine}" if against else f"manylinux_{newest[0]}_{newest[1]}_{machine}"
    return tag, sorted(against)
