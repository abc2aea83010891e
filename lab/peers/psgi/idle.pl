#!/usr/bin/perl
# `idle.pl HOST PORT`: ab's 500 requests, 10 at once, without and with two idle connections: one that
# has said nothing, and one that asked to be kept, got its response, and says nothing more.
use strict;
use warnings;

use IO::Socket::INET;
use Time::HiRes qw(time);

my ($host, $port) = @ARGV;
my ($without) = ab();
my $kept = connected();
print {$kept} "GET / HTTP/1.1\r\nHost: $host\r\nConnection: keep-alive\r\n\r\n";
sysread($kept, my $response, 4096) or die "the kept connection got no response\n";
my $silent = connected();
my ($with, $longest, $failed) = ab();
printf qq({"without_ms": %.1f, "with_ms": %.1f, "longest_ms": %d, "failed": %d}\n),
    $without, $with, $longest, $failed;

sub ab {
    my $begin     = time;
    my $report    = `ab -q -s 10 -n 500 -c 10 http://$host:$port/`;
    my $elapsed   = (time - $begin) * 1000;
    my ($seconds) = $report =~ /Time taken for tests: +([\d.]+)/;
    # It gives up when one request has waited for 10 s.
    return ($elapsed, $elapsed, 500) if !defined $seconds;
    my ($most)   = $report =~ /100% +(\d+)/;
    my ($broken) = $report =~ /Failed requests: +(\d+)/;
    return ($seconds * 1000, $most, $broken);
}

sub connected {
    return IO::Socket::INET->new(PeerAddr => $host, PeerPort => $port, Timeout => 10)
        || die "cannot connect: $@";
}
