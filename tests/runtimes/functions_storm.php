<?php
// Functions that are made, called and dropped at a high rate. The name of each says which lines it has. SECONDS
$used = fn () => ($usage = getrusage())['ru_utime.tv_sec'] + $usage['ru_utime.tv_usec'] / 1e6;
$until = $used() + (float) $argv[1];
$n = 0;
while ($used() < $until) {
    $n++;
    $more = str_repeat("\$x += 1;\n", $n % 5);
    $body = "{\n" . $more . "for (\$i = 0; \$i < 300; \$i++)\n\$x += \$i;\nreturn \$x;\n}";
    $empty = str_repeat("\n", $n % 7);
    if ($n % 3 == 0) { // a function stays, so these are few
        eval($empty . "function storm_$n(\$x) $body");
        "storm_$n"(1);
    } elseif ($n % 3 == 1) {
        $made = eval($empty . "return function (\$x) $body;");
        $made(1);
    } else {
        $made = eval($empty . "return new class { function storm_$n(\$x) $body };");
        [$made, "storm_$n"](1);
    }
    $made = null;
}
echo $n, "\n";
