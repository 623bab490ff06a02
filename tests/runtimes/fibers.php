<?php
// Four Fibers: 60, 30, 10 % of the work, and one that only suspends. SECONDS ROUNDS; see shares.h.
function cpu(): float
{
    $usage = getrusage();
    return $usage['ru_utime.tv_sec'] + $usage['ru_stime.tv_sec']
        + ($usage['ru_utime.tv_usec'] + $usage['ru_stime.tv_usec']) / 1e6;
}

$start = cpu();
$rounds = (int) $argv[2];
$slice = (float) $argv[1] / $rounds;
$booked = [];

function burn(string $name, float $seconds): void
{
    global $booked;
    $start = $now = cpu();
    while ($now < $start + $seconds) {
        for ($i = 0, $x = 0.0; $i < 300; $i++) {
            $x += $i * 0.5;
        }
        $now = cpu();
    }
    $booked[$name] = ($booked[$name] ?? 0) + $now - $start;
}

$fibers = [];
foreach (['alpha' => 0.6, 'beta' => 0.3, 'gamma' => 0.1, 'idle' => 0.0] as $name => $share) {
    $fibers[] = new Fiber(function () use ($name, $share, $slice, $rounds): void {
        for ($round = 0; $round < $rounds; $round++) {
            if ($share > 0) {
                burn($name, $slice * $share);
            }
            Fiber::suspend();
        }
    });
}
foreach ($fibers as $fiber) {
    $fiber->start();
}
while ($fibers = array_filter($fibers, fn ($fiber) => !$fiber->isTerminated())) {
    foreach ($fibers as $fiber) {
        $fiber->resume();
    }
}
foreach ($booked as $name => $seconds) {
    printf("EXPECT work_%s %.6f\n", $name, $seconds);
}
printf("TOTAL %.6f\n", cpu() - $start);
exit(7);
