package Greenroom::Frame;

use strict;
use warnings;

use Exporter 'import';

our @EXPORT_OK = qw(frames frame encode_headers read_exactly write_all
    READ_BYTES_MAX STREAM_WINDOW WHOLE_BODY_MAX WRITER_BUFFER_MAX);

use constant {
    READ_BYTES_MAX    => 262_144,
    STREAM_WINDOW     => 262_144,
    WHOLE_BODY_MAX    => 131_072,
    WRITER_BUFFER_MAX => 8_388_608,
};

# Takes the complete frames out of a buffer. One unpack for all of them is three times as fast as
# one for each; it cannot handle one to three bytes of a further length, so those take the slow
# path.
sub frames {
    my ($buffer) = @_;    # a reference
    my @frames = eval { unpack '(N/a)*', $$buffer };
    return _frames_before_rest($buffer) if !@frames;
    my $last = length($$buffer) - length $frames[-1];
    if (unpack('N', substr $$buffer, $last - 4, 4) > length $frames[-1]) {
        $$buffer = substr $$buffer, $last - 4;
        pop @frames;
    }
    else {
        $$buffer = '';
    }
    return @frames;
}

sub _frames_before_rest {
    my ($buffer) = @_;
    my @frames;
    my $end = 0;
    while (length($$buffer) - $end >= 4) {
        my $length = unpack 'N', substr $$buffer, $end, 4;
        last if length($$buffer) - $end - 4 < $length;
        push @frames, substr $$buffer, $end + 4, $length;
        $end += 4 + $length;
    }
    $$buffer = substr $$buffer, $end;
    return @frames;
}

sub frame {
    my ($type, $payload) = @_;
    return pack 'NAa*', 1 + length $payload, $type, $payload;
}

# Encodes the headers for the wire; undef where they are no headers: an odd number, a NUL or a
# character that is no byte. A NUL would shift names and values.
sub encode_headers {
    my ($headers) = @_;
    return if ref $headers ne 'ARRAY' || @$headers % 2;
    no warnings 'uninitialized';
    my $encoded = join "\0", @$headers;
    return if @$headers && ($encoded =~ tr/\0//) != $#$headers;
    return if !utf8::downgrade($encoded, 1);
    return $encoded;
}

# Reads a number of bytes from a channel within a number of seconds; undef if they do not come.
sub read_exactly {
    my ($handle, $wanted, $seconds) = @_;
    my $bytes = '';
    while (length $bytes < $wanted) {
        vec(my $ready = '', fileno $handle, 1) = 1;
        my $found = select $ready, undef, undef, $seconds;
        next   if $found < 0 && $!{EINTR};
        return if $found <= 0;
        my $got = sysread $handle, $bytes, $wanted - length $bytes, length $bytes;
        next   if !defined $got && ($!{EINTR} || $!{EAGAIN});
        return if !$got;
    }
    return $bytes;
}

# Writes to a channel and waits where it must; false when the other side is gone.
sub write_all {
    my ($handle, $bytes) = @_;
    my $written = 0;
    while ($written < length $bytes) {
        my $count = syswrite $handle, $bytes, length($bytes) - $written, $written;
        if (defined $count) {
            $written += $count;
            next;
        }
        next   if $!{EINTR};
        return if !$!{EAGAIN};
        vec(my $ready = '', fileno $handle, 1) = 1;
        select undef, $ready, undef, undef;
    }
    return 1;
}

1;

__END__

=head1 NAME

Greenroom::Frame - the frames between Greenroom's front and its Perl processes

=head1 DESCRIPTION

A frame is a length of four bytes, a type of one and a payload; F<PROTOCOL.md> of the crate
C<greenroom-psgi> says which there are. C<frames> takes whole ones out of a buffer, C<frame> makes
one, C<encode_headers> makes PSGI's header list one string. C<read_exactly> and C<write_all> are for
the channels where waiting is right.

The limits, in bytes: C<READ_BYTES_MAX> for one read of a link, C<STREAM_WINDOW> that may be under
way to a client, C<WHOLE_BODY_MAX> for a body within one frame, C<WRITER_BUFFER_MAX> that a writer of
an event-driven application may be ahead of its client.

=cut
