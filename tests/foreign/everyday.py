# SPDX-License-Identifier: MIT
"""Programs of every day, by the engine and the way in: what they print, and their status, are those of the program alone.

A test is a script of bash, whose programs are all profiled; its output follows from the script alone.
"""
import os
import re
import subprocess
import zlib

from harness import Missing, Unit, need

ENGINES = ("perf", "cpu", "monotonic")
ROUNDS = 50  # by each rate, engine and way
SHOWN = 300

COREUTILS = {
    "dd zeros": "dd if=/dev/zero bs=16M count=2 status=none | sha256sum",
    "dd random": "dd if=/dev/urandom of=f bs=8M count=2 2>&1 | head -2; stat -c %s f",
    "dd blocks": "seq 900000 | dd bs=64K iflag=fullblock conv=sync 2>&1 >f | head -2; sha256sum f",
    "dd to a pipe": "dd if=/dev/zero bs=8M count=2 status=none | (sleep 0.05; dd bs=8M count=2 iflag=fullblock of=f 2>&1 | head -2); sha256sum f",
    "cat": "head -c 9000000 /dev/zero | cat - /etc/passwd | cat /etc/passwd - | sha256sum",
    "sort": "seq 90000 | tac | sort --parallel=2 -S 1M | sha256sum; seq 20000 | sort -R --random-source=<(seq 9999) | sha256sum",
    "sort merges": "seq 40000 | split -l 7000 - p; for f in p*; do sort -o $f $f; done; sort -m p* | sha256sum; sort -c paa; sort -nrc pab; echo $?",
    "split by filter": "seq 200000 | split -b 300K --filter 'sha256sum'",
    "split in turns": "seq 200000 | split -n r/5 - part; sha256sum part*; seq 100000 | split -C 90K - line; sha256sum line*",
    "tee": "mkfifo p; sha256sum <p >c & seq 200000 | tee a b p | sha256sum; wait; sha256sum a b c",
    "tac, shuf": "seq 300000 | tac | sha256sum; seq 100000 >r; seq 50000 | shuf --random-source=r | sha256sum",
    "comm, join": "seq 1 2 90000 | sort >a; seq 1 3 90000 | sort >b; comm a b | sha256sum; comm -12 a b | wc; join a b | sha256sum; join -v1 a b | wc",
    "sums": "seq 300000 >f; for s in sha256sum sha512sum md5sum b2sum cksum sum; do $s <f; done; sha256sum f | sha256sum -c",
    "big sums": "mkfifo p; md5sum <p >m & head -c 20000000 /dev/zero | tee p | sha256sum; wait; cat m",
    "text": "seq 90000 | nl | expand | fold -w 7 | tr 1-5 a-e | paste - - | cut -f 1 | fmt | uniq -c | pr -t -2 | od -c | base64 | sha256sum",
    "ends of pipes": "seq 5000000 | head -n 2; echo ${PIPESTATUS[@]}; yes | head -n 99999 | sha256sum; echo ${PIPESTATUS[@]}; seq 700000 | tail -n 2",
    "status": "timeout 0.1 sleep 5; echo $?; timeout -s KILL 0.1 yes >/dev/null; echo $?; false; echo $?; cat /none; echo $?; nice -n 5 nice; factor 0 6 x; echo $?",
    "signals": "sleep 9 & kill $!; wait $!; echo $?; yes >/dev/null & kill -HUP $!; wait $! 2>/dev/null; echo $?; nohup seq 3; stdbuf -o0 seq 3",
    "trees": "mkdir -p d/e; seq 99999 >d/e/f; cp -a d g; ln -s e d/l; mv g/e g/h; truncate -s 5 g/h/f; ls -R d g; du -ab --time-style=+ d g; install -m 600 d/e/f i; stat -c %a i; rm -r d g; ls",
    "numbers": "factor $(seq 1000000000000 1000000000040) | sha256sum; seq 90000 | numfmt --to=iec | sha256sum; expr 3 \\* 5; printf %05.2f 2.5; date -u -d @86400 +%F",
    "fifo": "mkfifo p; sha256sum p & seq 400000 >p; wait; head -c 9000000 /dev/zero >p & wc -c p; wait",
}
MAN = {
    "page": "man -P cat ls | sha256sum; echo ${PIPESTATUS[@]}",
    "page in a file": "man -P cat ls >f; echo $?; sha256sum f",
    "pager": "MANPAGER=cat man ls | sha256sum; PAGER='head -n 3' man sort; echo $?",
    "formats": "man -Tutf8 bash | sha256sum; man -Tascii --warnings dd 2>&1 | sha256sum; man -f ls nowhere-at-all; echo $?",
    "compressed": "p=$(man -w ls); echo $p; gzip -cdf $p | gzip -n >x.1.gz; man -l -P cat x.1.gz 2>&1 | sha256sum; sha256sum x.1.gz; man -P cat 1 nopage; echo $?",
    "names": "lexgrog $(man -w ls); manpath -q | tr : '\\n' | head -2; apropos -e ls; whatis dd; man -P false ls; echo $?",
}
DUMP = "setpriv --dump; id"
DROPPERS = {
    "reuid": f"setpriv --reuid 65534 --regid 65534 --clear-groups bash -c '{DUMP}; seq 99999 | sha256sum'",
    "ruid": f"setpriv --ruid 65534 --rgid 65534 --keep-groups bash -pc '{DUMP}'; setpriv --euid 65534 id; setpriv --egid 65534 id",
    "init-groups": "setpriv --reuid games --regid games --init-groups id; setpriv --groups 5,6 --regid 7 id",
    "bounding-set": f"setpriv --bounding-set -all --inh-caps -all bash -c '{DUMP}'; setpriv --bounding-set=-sys_admin,-chown id",
    "ambient-caps": f"setpriv --reuid 65534 --inh-caps +chown,+kill --ambient-caps +chown,+kill bash -c '{DUMP}; grep Cap /proc/self/status'",
    "no-new-privs": f"setpriv --no-new-privs --reuid 65534 --clear-groups bash -c '{DUMP}'; setpriv --securebits +noroot,+noroot_locked setpriv --dump",
    "refused": "setpriv --reuid 65534 --clear-groups bash -c 'setpriv --reuid 0 --clear-groups id; echo $?; setpriv --groups 0 id; echo $?'",
    "runuser": "runuser -u nobody -- id; runuser -s /bin/sh nobody -c 'id; seq 99999 | sha256sum; exit 7'; echo $?; runuser -s /bin/bash - nobody -c 'kill -TERM $$'; echo $?",
    "su": "su -s /bin/sh nobody -c 'id; exit 3'; echo $?; su -s /bin/bash -P nobody -c 'id -un; tty' </dev/null; echo $?; su -s /bin/false nobody; echo $?",
    "unshare user": "unshare --user --map-root-user bash -c 'id; cat /proc/self/uid_map; seq 99999 | sha256sum'; echo $?",
    "unshare pid": "unshare --mount --pid --fork --mount-proc bash -c 'echo $$; seq 9999 | sha256sum; ls -d /proc/1; exit 4'; echo $?",
    "unshare all": "unshare --mount --uts --ipc --net --cgroup bash -c 'hostname inside; hostname; cat /proc/net/dev | wc -l; ipcs -q | wc -l'; unshare -U -p --kill-child id -u",
    "unshare time": "unshare --time --fork --boottime 900000000 bash -c 'cut -c 1-5 /proc/uptime; seq 99999 | sha256sum'; echo $?",
    "as another": "setpriv --reuid 65534 --clear-groups unshare --user --map-root-user --mount --pid --fork bash -c 'id -u; mount -t tmpfs none /mnt && seq 9 >/mnt/x; wc -l /mnt/x'",
    "classes": "chrt -b 0 chrt -p 0 | tail -2; ionice -c 3 ionice; taskset 1 nproc; prlimit --nofile=99 bash -c 'ulimit -n'; prlimit --as=900000000 seq 2; setsid -w bash -c 'exit 6'; echo $?",
    "chroot": "chroot --userspec 65534:65534 --groups= / bash -c 'id; seq 99999 | sha256sum'; echo $?; nsenter -t $$ -m -u -- id -u; flock f bash -c 'exit 8'; echo $?",
}
# A session by key over a pair of pipes: no port. Root's sshd, whose child before the login is in a jail of seccomp, chroot and another user.
SSHD_PLACE = """
ssh-keygen -q -t ed25519 -N '' -f host; ssh-keygen -q -t ed25519 -N '' -f key; mkdir run; cp key.pub run/keys
{ grep -v -e ^sshd: -e ^tester: /etc/passwd; echo sshd:x:64999:65534::/run/sshd:/usr/sbin/nologin; echo tester:x:64998:65534::/:/bin/bash; } >passwd
printf '%s\\n' "HostKey $PWD/host" 'AuthorizedKeysFile /run/keys' 'StrictModes no' 'UsePAM no' 'PasswordAuthentication no' 'PermitRootLogin yes' 'PrintLastLog no' \\
    'Subsystem sftp internal-sftp' "PidFile none" >conf
mount --bind passwd /etc/passwd; mount --bind run /run; mkdir -p /run/sshd; chmod 755 . ..
ask() { ssh -F none -i key -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR \\
    -o "ProxyCommand=/usr/sbin/sshd -i -e -f $PWD/conf 2>>log" "$@"; }
"""
SSHD = {
    "configuration": "/usr/sbin/sshd -t -f conf; echo $?; /usr/sbin/sshd -T -f conf | grep -v hostkey | sha256sum; echo Nothing >>conf; /usr/sbin/sshd -t -f conf 2>/dev/null; echo $?",
    "user": "ask tester@none 'id; seq 300000 | sha256sum; exit 5'; echo $?; grep -c Accepted log",
    "root": "ask root@none 'id -u; kill -TERM $$'; echo $?; ask root@none nowhere; echo $?; grep -c Accepted log",
    "data": """mkfifo p; sha256sum <p >c & head -c 3000000 /dev/zero | ask -C tester@none "cat | tee >(sha256sum >&2)" 2>p | sha256sum; wait; cat c""",
    "refused": "rm run/keys; ask tester@none id; echo $?; grep -c -e 'Connection closed' -e Disconnect log",
}


# Which process it was; and what `run` says where a program takes the rights from itself, whose first image had made the file.
LEFT_OUT = re.compile(r"(?<=line \d: )\s*\d+|(?<=pid )\d+|^greenprof: SCRATCH/captures/\d+\.greenprof: nothing is recorded: Permission denied\n", re.M)


def parse_output(output, scratch):
    text = LEFT_OUT.sub("", output.replace(scratch, "SCRATCH"))
    return {"output": text if len(text) < SHOWN else f"{text[:SHOWN]}... ({len(text)} characters, {zlib.crc32(text.encode()):x})"}


def units(scripts, quick, before=""):
    return [Unit(name, [*(["unshare", "--mount"] if before else []), "/bin/bash", "-c", before + script], parse_output, engines=ENGINES,
                 rounds=1 if quick else ROUNDS, may_be_short=True) for name, script in scripts.items()], len(scripts)


def need_root(what):
    if os.geteuid() != 0:
        raise Missing(f"{what} is root's")


def coreutils(quick):
    need("bash", "stdbuf", "dd")
    return units(COREUTILS, quick)


def man_db(quick):
    need("bash", "man", "lexgrog")
    if subprocess.run(["man", "-w", "ls", "sort", "bash"], capture_output=True).returncode != 0:
        raise Missing("there are no pages, or man-db is not installed")
    return units(MAN, quick)


def droppers(quick):
    need("bash", "setpriv", "runuser", "su", "unshare", "chrt")
    need_root("to give up rights")
    return units(DROPPERS, quick)


def sshd(quick):
    need("bash", "ssh", "/usr/sbin/sshd")
    need_root("sshd")
    return units(SSHD, quick, SSHD_PLACE)


SUITES = {"coreutils": coreutils, "man_db": man_db, "droppers": droppers, "sshd": sshd}
