<?php
// Functions, methods, closures, generators, code of C, two Fibers, each with a known part of the CPU time. SECONDS
namespace App;

function cpu(): float
{
    $usage = getrusage();
    return $usage['ru_utime.tv_sec'] + $usage['ru_stime.tv_sec']
        + ($usage['ru_utime.tv_usec'] + $usage['ru_stime.tv_usec']) / 1e6;
}

function booked(string $name, float $seconds, callable $work): void
{
    global $all;
    $start = $now = cpu();
    while ($now < $start + $seconds) {
        $work();
        $now = cpu();
    }
    $all[$name] = ($all[$name] ?? 0) + $now - $start;
}

function spin(int $rounds): int
{
    for ($i = 0, $x = 0; $i < $rounds; $i++) {
        $x += $i % 7;
    }
    return $x;
}

function spinning(): int { return spin(1000); }
function plain(float $seconds): void { booked('App\plain', $seconds, 'App\spinning'); }
function first_fiber(float $seconds): void { booked('App\first_fiber', $seconds, 'App\spinning'); }
function second_fiber(float $seconds): void { booked('App\second_fiber', $seconds, 'App\spinning'); }

trait Shared
{
    public function shared(float $seconds): void { booked('App\Work::shared', $seconds, fn () => spin(1000)); }
}

class Work
{
    use Shared;

    public function method(float $seconds): void { booked('App\Work::method', $seconds, [$this, 'step']); }
    public function step(): int { return spin(1000); }

    public static function sorts(float $seconds): void
    {
        $numbers = array_map(fn ($i) => $i * 7919 % 2003, range(0, 2000));
        booked('App\Work::sorts', $seconds, function () use ($numbers) { sort($numbers); });
    }

    public function __call(string $name, array $arguments): void
    {
        booked('App\Work::__call', $arguments[0], 'App\spinning');
    }
}

function numbers(int $count): \Generator
{
    for ($i = 0; $i < $count; $i++) {
        yield spin(100);
    }
}

function delegates(): \Generator { yield from numbers(20); }

function generated(float $seconds): void
{
    booked('App\generated', $seconds, function () { foreach (delegates() as $number) { } });
}

function fiber(string $name, float $seconds): \Fiber
{
    $fiber = new \Fiber(function () use ($name, $seconds) {
        for ($i = 0; $i < 50; $i++) {
            $name($seconds / 50);
            \Fiber::suspend();
        }
    });
    $fiber->start();
    return $fiber;
}

$start = cpu();
$seconds = (float) $argv[1];
$work = new Work();
plain($seconds * 0.2);
$work->method($seconds * 0.15);
$work->shared($seconds * 0.1);
Work::sorts($seconds * 0.15);
$work->magic($seconds * 0.1);
generated($seconds * 0.1);
$fibers = [fiber('App\first_fiber', $seconds * 0.15), fiber('App\second_fiber', $seconds * 0.05)];
while ($fibers = array_filter($fibers, fn ($fiber) => !$fiber->isTerminated())) {
    array_walk($fibers, fn ($fiber) => $fiber->resume());
}
foreach ($all as $name => $used) {
    printf("EXPECT %s %.6f\n", $name, $used);
}
printf("TOTAL %.6f\n", cpu() - $start);
exit(7);
