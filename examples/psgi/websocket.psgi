# A WebSocket that says what it is told, by psgix.io and without a library for it (RFC 6455). An
# application that does more takes one, for fragments and compression.
use strict;
use warnings;

use AnyEvent;
use Digest::SHA qw(sha1_base64);

use constant {
    GUID              => '258EAFA5-E914-47DA-95CA-C5AB0DC85B11',
    MESSAGE_BYTES_MAX => 65_536,
    TEXT              => 1,
    BINARY            => 2,
    CLOSE             => 8,
    PING              => 9,
    PONG              => 10,
};

my $app = sub {
    my ($env) = @_;
    my $key = $env->{HTTP_SEC_WEBSOCKET_KEY};
    if (!defined $key || lc($env->{HTTP_UPGRADE} || '') ne 'websocket' || !$env->{'psgix.io'}) {
        return [ 426, [ 'Content-Type' => 'text/plain', Upgrade => 'websocket', Connection => 'Upgrade' ], ["A WebSocket is needed\n"] ];
    }
    my $io = $env->{'psgix.io'};
    return sub { converse($io, $key) };
};

sub converse {
    my ($io, $key) = @_;
    my $connection = { io => $io, in => '', out => '' };
    hear($connection);
    return put($connection, join "\r\n", 'HTTP/1.1 101 Switching Protocols', 'Upgrade: websocket',
        'Connection: Upgrade', 'Sec-WebSocket-Accept: ' . sha1_base64($key . GUID) . '=', '', '');
}

sub hear {
    my ($connection) = @_;
    $connection->{reader} = AnyEvent->io(fh => $connection->{io}, poll => 'r', cb => sub { take($connection) });
    return;
}

sub take {
    my ($connection) = @_;
    my $got = sysread $connection->{io}, $connection->{in}, MESSAGE_BYTES_MAX, length $connection->{in};
    return if !defined $got && ($!{EAGAIN} || $!{EINTR});
    return $got ? respond($connection) : forget($connection);
}

sub forget {
    my ($connection) = @_;
    %$connection = ();
    return;
}

sub respond {
    my ($connection) = @_;
    while ($connection->{reader} && (my ($opcode, $message) = next_message($connection))) {
        return finish($connection, pack 'n', 1009)        if $opcode < 0;
        return finish($connection, substr $message, 0, 2) if $opcode == CLOSE;
        put($connection, message(PONG, $message)) if $opcode == PING;
        put($connection, message($opcode, $message)) if $opcode == TEXT || $opcode == BINARY;
    }
    return;
}

# The first whole message of what came; opcode -1 for one that is too long, and for one without the
# mask that a client's has to have.
sub next_message {
    my ($connection) = @_;
    my ($first, $length) = unpack 'CC', $connection->{in};
    return if !defined $length;
    my ($masked, $head) = ($length & 128, 2);
    $length &= 127;
    return -1 if !$masked || $length == 127;
    if ($length == 126) {
        return if length $connection->{in} < 4;
        ($length, $head) = (unpack('x2n', $connection->{in}), 4);
    }
    return if length $connection->{in} < $head + 4 + $length;
    my $mask    = substr $connection->{in}, $head, 4;
    my $message = substr($connection->{in}, $head + 4, $length) ^ substr $mask x ($length / 4 + 1), 0, $length;
    substr($connection->{in}, 0, $head + 4 + $length) = '';
    return ($first & 15, $message);
}

sub message {
    my ($opcode, $message) = @_;
    my $length = length $message;
    return pack($length < 126 ? 'CCa*' : 'CCna*', 128 | $opcode, $length < 126 ? $length : (126, $length), $message);
}

sub finish {
    my ($connection, $reason) = @_;
    $connection->{finishes} = 1;
    return put($connection, message(CLOSE, $reason));
}

# A client that does not read what it is told is not heard until it does.
sub put {
    my ($connection, $bytes) = @_;
    $connection->{out} .= $bytes;
    my $count = syswrite $connection->{io}, $connection->{out};
    return forget($connection) if !defined $count && !$!{EAGAIN} && !$!{EINTR};
    substr($connection->{out}, 0, $count || 0) = '';
    return $connection->{finishes} ? forget($connection) : () if $connection->{out} eq '';
    delete $connection->{reader};
    $connection->{writer} ||= AnyEvent->io(fh => $connection->{io}, poll => 'w', cb => sub { go_on($connection) });
    return;
}

sub go_on {
    my ($connection) = @_;
    put($connection, '');
    return if !exists $connection->{out} || $connection->{out} ne '';
    delete $connection->{writer};
    hear($connection);
    return respond($connection);
}

$app;
