<?php
// SPDX-License-Identifier: MIT
// A Fiber that suspends itself as soon as it is resumed; speaks as worker.h says.
function cpu_ns(): int
{
    $usage = getrusage();
    return ($usage['ru_utime.tv_sec'] + $usage['ru_stime.tv_sec']) * 1000000000
        + ($usage['ru_utime.tv_usec'] + $usage['ru_stime.tv_usec']) * 1000;
}

$fiber = new Fiber(function () {
    while (true)
        Fiber::suspend();
});
$fiber->start();
while (($line = fgets(STDIN)) !== false) {
    $amount = (int)$line;
    [$wall, $cpu] = [hrtime(true), cpu_ns()];
    for ($i = 0; $i < $amount; $i++)
        $fiber->resume();
    $cpu = cpu_ns() - $cpu;
    $wall = hrtime(true) - $wall;
    echo "$wall $cpu ", cpu_ns(), " 0 0 0 0 0\n";
}
