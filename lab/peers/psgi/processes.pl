#!/usr/bin/perl
# `processes.pl PID WORKERS`: the memory of a server's processes in MiB, once the workers, the deepest
# of the family, have loaded everything; and the CPU seconds of the first process.
use strict;
use warnings;

use List::Util qw(max sum0);
use Time::HiRes qw(sleep time);

my ($first, $workers) = @ARGV;
my ($before, $deadline) = (0, time + 60);
my @family;
while (1) {
    @family = family($first, 0);
    my $now = sum0 map { memory($_->[0], 'Pss') } @family;
    last if deepest() >= $workers && abs($now - $before) < 0.1;
    die scalar(@family) . " processes, or they grow\n" if time > $deadline;
    $before = $now;
    sleep 0.3;
}
my @deepest = deepest();
my @between = grep { $_->[1] == 1 } @family;
my %figures = (
    first_rss   => memory($first, 'Rss'),
    worker_rss  => sum0(map { memory($_->[0], 'Rss') } @deepest) / @deepest,
    worker_pss  => sum0(map { memory($_->[0], 'Pss') } @deepest) / @deepest,
    all_pss     => sum0(map { memory($_->[0], 'Pss') } @family),
    cpu_seconds => cpu_seconds($first),
);
$figures{zygote_rss} = sum0 map { memory($_->[0], 'Rss') } @between if $deepest[0][1] == 2;
print '{', join(', ', map { qq("$_": $figures{$_}) } sort keys %figures), "}\n";

sub family {
    my ($pid, $depth) = @_;
    my @children = map { split ' ', text($_) } glob "/proc/$pid/task/*/children";
    return ([$pid, $depth], map { family($_, $depth + 1) } @children);
}

sub deepest {
    my $depth = max map { $_->[1] } @family;
    return grep { $_->[1] == $depth } @family;
}

sub memory {
    my ($pid, $name) = @_;
    return text("/proc/$pid/smaps_rollup") =~ /^$name: +(\d+) kB/m ? $1 / 1024 : 0;
}

# Of all its threads, to 10 ms.
sub cpu_seconds {
    my @fields = split ' ', text("/proc/$_[0]/stat") =~ s/.*\)//r;
    return ($fields[11] + $fields[12]) / 100;
}

sub text {
    open my $file, '<', $_[0] or return '';
    local $/ = undef;
    return scalar readline($file) // '';
}
