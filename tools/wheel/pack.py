# SPDX-License-Identifier: MIT
"""Archives that are the same for the same content: a wheel (PEP 427) and a source distribution (PEP 517).

All times in them are SOURCE_DATE_EPOCH, or the first that a zip file can have.
"""
import base64
import gzip
import hashlib
import io
import os
import tarfile
import time
import zipfile

FIRST_DATE = 315532800  # 1980-01-01


def epoch():
    return max(int(os.environ.get("SOURCE_DATE_EPOCH", FIRST_DATE)), FIRST_DATE)


class Wheel:
    """with Wheel(path, dist_info) as wheel: wheel.add(name, content); RECORD is its last file"""

    def __init__(self, path, dist_info):
        self.path, self.record, self.files = path, f"{dist_info}/RECORD", {}

    def __enter__(self):
        return self

    def add(self, name, content, is_program=False):
        assert name not in self.files, name
        self.files[name] = (content if isinstance(content, bytes) else content.encode(), is_program)

    def __exit__(self, kind, *_):
        if kind is not None:
            return
        lines = [f"{name},sha256={self._digest(content)},{len(content)}" for name, (content, _) in sorted(self.files.items())]
        self.add(self.record, "".join(line + "\n" for line in [*lines, self.record + ",,"]))
        last = self.files.pop(self.record)
        with zipfile.ZipFile(self.path + ".new", "w", zipfile.ZIP_DEFLATED) as archive:
            for name, (content, is_program) in [*sorted(self.files.items()), (self.record, last)]:
                info = zipfile.ZipInfo(name, time.gmtime(epoch())[:6])
                info.create_system, info.compress_type = 3, zipfile.ZIP_DEFLATED
                info.external_attr = (0o100755 if is_program else 0o100644) << 16
                archive.writestr(info, content)
        os.replace(self.path + ".new", self.path)

    @staticmethod
    def _digest(content):
        return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def write_sdist(path, top, root, names, metadata):
    """A .tar.gz of these files below root, and of PKG-INFO."""
    with open(path + ".new", "wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=epoch()) as packed, \
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        info = tarfile.TarInfo(f"{top}/PKG-INFO")
        info.size, info.mtime, info.mode = len(metadata.encode()), epoch(), 0o644
        archive.addfile(info, io.BytesIO(metadata.encode()))
        for name in sorted(names):
            archive.add(os.path.join(root, name), f"{top}/{name}", recursive=False, filter=_plain)
    os.replace(path + ".new", path)


def _plain(info):
    info.uid = info.gid = 0
    info.uname = info.gname = "root"
    info.mtime = epoch()
    if info.isfile():
        info.mode = 0o755 if info.mode & 0o100 else 0o644
    return info
