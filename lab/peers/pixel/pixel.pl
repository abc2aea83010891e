#!/usr/bin/perl
# The pixel server of the text, as it describes it: one process, one connection at a time, blocking
# reads with a time-out of two seconds, the response always a transparent GIF, the connection closed.
use strict;
use warnings;

use IO::Socket::INET;
use Socket qw(SOL_SOCKET SO_RCVTIMEO SHUT_RDWR);

my $gif = pack 'H*',
    '47494638396101000100800000ffffff00000021f90401000000002c00000000010001000002024401003b';
my $head = join "\r\n",
    'HTTP/1.0 200 OK',
    'Connection: close',
    'Cache-Control: public, max-age=31536000',
    'Content-type: image/gif',
    'Content-length: ' . length $gif,
    '', '';

my $listener = IO::Socket::INET->new(
    LocalAddr => shift,
    Proto     => 'tcp',
    Listen    => 30,
    ReuseAddr => 1,
) or die "cannot listen: $@";
$SIG{PIPE} = 'IGNORE';

while (1) {
    my $client = $listener->accept or next;
    $client->setsockopt(SOL_SOCKET, SO_RCVTIMEO, pack 'l!l!', 2, 0);
    local $/ = "\r\n";
    while (defined(my $line = <$client>)) {
        last if $line eq "\r\n";
    }
    print {$client} $head, $gif;
    shutdown $client, SHUT_RDWR;
}
