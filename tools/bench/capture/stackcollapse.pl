#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# Folds what `perf script` prints, as the scripts that are around do: one line of text after the other. The measure for
# `greenprof export --format folded`.
#
#   comm pid/tid time: weight event:
#           address function+offset (module)       innermost first
#   (an empty line)
use strict;
use warnings;

my (%sums, @frames, $comm, $weight);
while (my $line = <STDIN>) {
    chomp $line;
    if ($line eq '') {
        $sums{join(';', $comm, reverse @frames)} += $weight if defined $comm;
        undef $comm;
    } elsif ($line =~ /^\s+[0-9a-f]+\s+(.+?)(?:\+0x[0-9a-f]+)?\s+\(.*\)$/) {
        (my $function = $1) =~ tr/;/:/;
        push @frames, $function;
    } elsif ($line =~ /^(\S.*?)\s+\d+\/\d+\s+[\d.]+:\s+(\d+)\s/) {
        ($comm, $weight, @frames) = ($1, $2);
    }
}
print "$_ ", int($sums{$_} / 1000), "\n" for sort keys %sums;
