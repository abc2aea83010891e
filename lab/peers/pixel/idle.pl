#!/usr/bin/perl
# `idle.pl HOST PORT CLIENTS`: so many clients connect and say nothing; then one more asks for the
# pixel. Prints how long that one waited.
use strict;
use warnings;

use IO::Socket::INET;
use Time::HiRes qw(time sleep);

my ($host, $port, $clients) = @ARGV;
my @idle = map { connected() } 1 .. $clients;
my $begin  = time;
my $client = connected();
print {$client} "GET /pixel.gif HTTP/1.0\r\nHost: $host\r\n\r\n";
my $response = do { local $/; <$client> };
my $ms = (time - $begin) * 1000;
die "no pixel\n" if $response !~ /GIF89a/;
printf qq({"waited_ms": %.1f}\n), $ms;

sub connected {
    return IO::Socket::INET->new(PeerAddr => $host, PeerPort => $port, Proto => 'tcp')
        || die "cannot connect: $@";
}
