package Greenroom::Writer;

use strict;
use warnings;

sub new {
    my ($class, $request) = @_;
    return bless { request => $request }, $class;
}

sub write {
    my ($self, $bytes) = @_;
    return $self->{request}->write($bytes);
}

sub close {
    my ($self) = @_;
    return $self->{request}->close;
}

sub poll_cb {
    my ($self, $callback) = @_;
    return $self->{request}->poll_cb($callback && sub { $callback->($self) });
}

1;

__END__

=head1 NAME

Greenroom::Writer - what a PSGI application writes a streamed body to

=head1 METHODS

=over

=item write($bytes)

Sends a piece. Returns true, or false once the client has left. Where nothing but this worker runs, it
waits while the client is behind, and dies with C<the client has left> if that is so. In an
event-driven application it never waits: what the client does not take yet is kept, up to 8 MiB; the
response that goes beyond is broken off. Dies if a character is no byte.

=item poll_cb($callback)

Calls back with the writer whenever the client is ready for more, until it is called with undef or the
writer is closed; when the client leaves, a last time.

=item close

Ends the body. A writer that is destroyed without C<close> breaks its response off.

=back

=cut
