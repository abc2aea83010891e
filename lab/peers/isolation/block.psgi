# The isolation experiment's application for Starman: each request keeps its worker, as the tutorial
# wrote it.

use strict;
use warnings;
use Time::HiRes qw(sleep);

use constant { N_MAX => 100_000, LIMB => 1_000_000_000_000_000, DIGITS => 15 };

# Big integers as lists of 15 digits each, the least first.
sub fibonacci {
    my ($n) = @_;
    my ($current, $next) = ([0], [1]);
    for (1 .. $n) {
        my $carry = 0;
        for my $i (0 .. $#$next) {
            my $sum = ($current->[$i] // 0) + $next->[$i] + $carry;
            $carry = $sum >= LIMB ? 1 : 0;
            $current->[$i] = $carry ? $sum - LIMB : $sum;
        }
        push @$current, 1 if $carry;
        ($current, $next) = ($next, $current);
    }
    my ($first, @rest) = reverse @$current;
    return join '', $first, map { sprintf '%0*d', DIGITS, $_ } @rest;
}

sub answer {
    my ($text) = @_;
    return [200, ['Content-Type' => 'text/plain', 'Content-Length' => length $text], [$text]];
}

sub {
    my ($env) = @_;
    my $path = $env->{PATH_INFO};
    if ($path =~ m{^/block/(\d{1,5})$}) {
        sleep($1 / 1000);
        return answer("done\n");
    }
    if ($path =~ m{^/(?:fib|page)/(\d{1,6})$} && $1 <= N_MAX) {
        return answer(fibonacci($1) . "\n");
    }
    return answer("Hello, world!\n");
};
