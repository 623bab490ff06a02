#!/bin/bash
# SPDX-License-Identifier: MIT
# Walk every sample of real programs with greenprof and with libunwind, and ask that they agree.
#
# A sample counts as agreement when both walks are equal or where libunwind is wrong for one of three reasons
# (src/core/unwind/UNWIND.md tells how they were found out): it goes on behind a stack bottom without a call before it,
# its next frame is no code at all, or the interrupted code has no row and ours found the call that led there.
# Everything else is a difference; at most 0.1 % of the samples may be.
set -u
library=$1 work=$2 service=$3 length=${4:-short}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
n=1
[ "$length" = long ] && n=10
export ORACLE_OUT=$tmp/report ORACLE_HZ=2000
run() { # NAME PROGRAM ARG...: skipped, and said so, where it is not installed
    local name=$1 program=$2
    shift 2
    if [ ! -x "$program" ]; then
        echo "SKIP $name: $program is not installed"
        return
    fi
    local tries=0
    until LD_PRELOAD=$library ORACLE_ONLY=${program##*/} "$program" "$@" >/dev/null 2>"$tmp/err" </dev/null; do
        local status=$?
        # qemu-img's own complaint on a busy machine, with and without us.
        grep -q "Unable to get accurate CPU usage" "$tmp/err" && [ $((tries += 1)) -lt 5 ] && continue
        echo "FAIL $name: exit status $status"; tail -3 "$tmp/err"; touch "$tmp/failed"
        return
    done
}
run python3 /usr/bin/python3 -c "
import json,re,zlib,sqlite3,hashlib
for i in range(150*$n):
    d=json.dumps({'a':[list(range(50))]*20}); json.loads(d); re.findall('[0-9]+',d); zlib.compress(d.encode()*10)
f=lambda n: n if n<2 else f(n-1)+f(n-2)
f(20)
c=sqlite3.connect(':memory:'); c.execute('create table t(a,b)')
c.executemany('insert into t values(?,?)',((i,str(i)) for i in range(20000)))
c.execute('select count(*) from t x join t y on x.a=y.b where x.a<1000').fetchall()"
run sqlite3 /usr/bin/sqlite3 :memory: "create table t(a,b); insert into t select value, hex(randomblob(20)) from generate_series(1,$((40000 * n))); select count(*) from t where b like '%ab%'; create index i on t(b); select count(*) from t x join t y on x.b=y.b;"
head -c $((8 * n))M /dev/urandom >"$tmp/src.raw" 2>/dev/null
run qemu-img /usr/bin/qemu-img convert --object secret,id=s0,data=abc123 -f raw -O qcow2 \
    -o encrypt.format=luks,encrypt.key-secret=s0,encrypt.iter-time=100 "$tmp/src.raw" "$tmp/out.qcow2"
run ruby /usr/bin/ruby -e "f=Fiber.new{ loop{ (1..2000).map{|i| (i*7919)%1009}.sort.map(&:to_s).join(',').scan(/\d+/).size; Fiber.yield } }; $((60 * n)).times{ f.resume; h={}; 2000.times{|i| h[i.to_s]=i}; h.sort_by{|k,v| -v} }"
run php /usr/bin/php -d pcre.jit=0 -r "\$f=new Fiber(function(){ for(;;){ \$x=range(1,3000); shuffle(\$x); sort(\$x); Fiber::suspend(); } }); \$f->start(); for(\$j=0;\$j<60*$n;\$j++){ \$a=[]; for(\$i=0;\$i<3000;\$i++) \$a[\"k\$i\"]=md5(\"x\$i\"); ksort(\$a); json_decode(json_encode(\$a)); preg_match_all('/[0-9]+/',json_encode(\$a),\$m); \$f->resume(); }"
run exceptions "$work" $((20 * n))
run_service() { # the demo service under requests: SQLite, zlib and jansson on ucontext coroutines
    if [ ! -x "$service" ] || ! command -v curl >/dev/null; then
        echo "SKIP service: it is not built, or curl is not installed"
        return
    fi
    LD_PRELOAD=$library ORACLE_ONLY=${service##*/} "$service" --port 0 --port-file "$tmp/port" >/dev/null 2>"$tmp/err" &
    local pid=$! tries=0 path
    while [ ! -s "$tmp/port" ] && [ $((tries += 1)) -lt 100 ]; do sleep 0.1; done
    for path in $(for ((i = 0; i < 15 * n; i++)); do echo report?by=customer report search?q=a mixed; done); do
        curl -s -m 10 -o /dev/null "http://127.0.0.1:$(cat "$tmp/port")/$path" || touch "$tmp/failed"
    done
    kill "$pid"
    wait "$pid" || { echo "FAIL service: exit status $?"; tail -3 "$tmp/err"; touch "$tmp/failed"; }
}
run_service
[ -s "$tmp/report" ] || { echo "SKIP: none of the programs is installed"; exit 77; }
awk '/^SUMMARY/ { name = $2; samples[name] += $6; agree[name] += $8 }
     /^DIFF/ { count = substr($3, 2) + 0
               if ($2 ~ /^(forged-bottom|libunwind-garbage|no-row)$/) theirs[name] += count
               else { print name ": " $0; other[name] += count } }
     END { for (name in samples) {
               printf "%-12s %7d samples, %7d equal, %6d libunwind wrong, %4d different\n",
                      name, samples[name], agree[name], theirs[name], other[name]
               all += samples[name]; bad += samples[name] - agree[name] - theirs[name] }
           printf "agreement %.3f %% of %d samples\n", 100 * (all - bad) / all, all
           exit all < 500 || bad > all / 1000 }' "$tmp/report"
status=$?
[ $status -eq 0 ] || cat "$tmp/report" | head -60
[ ! -e "$tmp/failed" ] && exit $status
exit 1
