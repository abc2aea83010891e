package Greenroom::Link;

use strict;
use warnings;

use Errno ();
use IO::Handle ();
use Scalar::Util ();

use Greenroom::Frame qw(encode_headers frame frames write_all READ_BYTES_MAX);

sub new {
    my ($class, $worker, $handle) = @_;
    $handle->blocking(0);
    my $self = {
        worker   => $worker,
        handle   => $handle,
        in       => '',
        out      => '',
        queue    => [],    # frames of requests that have not begun
        requests => {},    # by id, weak: streams and responses to come
        held     => {},    # by id: those of them that only the link holds
        files    => {},    # by id: [request, handle, offset, length] of bodies that the front is to open
    };
    Scalar::Util::weaken($self->{worker});
    Scalar::Util::weaken(my $link = $self);
    $self->{inform_current} = sub { $link->inform($link->{current}, @_) };
    return bless $self, $class;
}

# Reads all available bytes; false when the front has closed the link.
sub receive {
    my ($self) = @_;
    my $got = sysread $self->{handle}, $self->{in}, READ_BYTES_MAX, length $self->{in};
    if (!$got) {
        return 1 if !defined $got && ($!{EAGAIN} || $!{EINTR});
        $self->_lost;
        return;
    }
    for my $frame (frames(\$self->{in})) {
        my $type = ord $frame;
        if    ($type == 82) { push @{ $self->{queue} }, $frame }                    # R
        elsif ($type == 65) { $self->_acknowledged(unpack 'xNN', $frame) }          # A
        elsif ($type == 71) { $self->_given_up(unpack 'xN', $frame) }               # G
        elsif ($type == 79) { delete $self->{files}{ unpack 'xN', $frame } }        # O
        elsif ($type == 78) { $self->_not_opened(unpack 'xN', $frame) }             # N
    }
    return 1;
}

# In a worker that blocks, a request may have to wait for a frame of the front. A child that the
# application has forked gets none.
sub await {
    my ($self) = @_;
    return if $$ != $self->{worker}{pid};
    vec(my $ready = '', fileno $self->{handle}, 1) = 1;
    select $ready, undef, undef, undef;
    return $self->receive;
}

# A child that the application has forked must not send its copy of its parent's output.
sub flush {
    my ($self) = @_;
    return if $$ != $self->{worker}{pid};
    return if $self->{out} eq '' || $self->{waits_for_room} || $self->{lost};
    return $self->_flush_all if $self->{worker}{blocking};
    my $count = syswrite $self->{handle}, $self->{out};
    return $self->_lost if !defined $count && !$!{EAGAIN} && !$!{EINTR};
    substr($self->{out}, 0, $count || 0) = '';
    $self->_await_room if $self->{out} ne '';
    return;
}

# Bytes are removed as they are written: an application's signal handler may die in between.
sub _flush_all {
    my ($self) = @_;
    while ($self->{out} ne '') {
        my $count = syswrite $self->{handle}, $self->{out};
        if (defined $count)                { substr($self->{out}, 0, $count) = '' }
        elsif ($!{EAGAIN})                 { $self->_await_writable }
        elsif (!$!{EINTR})                 { return $self->_lost }
    }
    return;
}

sub _await_writable {
    my ($self) = @_;
    vec(my $ready = '', fileno $self->{handle}, 1) = 1;
    select undef, $ready, undef, undef;
    return;
}

# psgix.informational of a request. One closure for all requests of a link is an eighth of a small
# response cheaper, and right where a request is over when the next begins: in a worker that blocks.
sub informer {
    my ($self, $id) = @_;
    return sub { $self->inform($id, @_) };
}

# Sends an informational response, such as 103; does nothing for a request whose call has returned.
sub inform {
    my ($self, $id, $status, $headers) = @_;
    return if !defined $id;
    my $encoded = encode_headers($headers);
    die "malformed informational response\n" if !defined $encoded || $status !~ /\A1[0-9]{2}\z/;
    $self->{out} .= frame('i', pack 'NnN/a*', $id, $status, $encoded);
    return $self->flush;
}

sub _await_room {
    my ($self) = @_;
    $self->{waits_for_room} = 1;
    my $loop = $self->{worker}{loop};
    $loop->writable($self->{handle}, sub {
        delete $self->{waits_for_room};
        $loop->forget_writable($self->{handle});
        $self->flush;
    });
    return;
}

sub flush_soon {
    my ($self) = @_;
    return if $self->{flushes}++;
    $self->{worker}{loop}->later(sub {
        delete $self->{flushes};
        $self->flush;
    });
    return;
}

sub _acknowledged {
    my ($self, $id, $bytes) = @_;
    my $request = $self->{requests}{$id} or return;
    $request->acknowledged($bytes);
    return;
}

# A request that has not begun is only removed from the queue.
sub _given_up {
    my ($self, $id) = @_;
    delete $self->{files}{$id};
    my $queue = $self->{queue};
    my @others = grep { unpack('xN', $_) != $id } @$queue;
    if (@others < @$queue) {
        $self->_give_up_io($_) for grep { unpack('xN', $_) == $id } @$queue;
        @$queue = @others;
        $self->{out} .= pack 'NANN', 9, 'e', $id, 0;
        return $self->flush_soon;
    }
    my $request = $self->{requests}{$id} or return;
    return $request->given_up;
}

# Its io connection is there already, or on its way; nothing else would close it.
sub _give_up_io {
    my ($self, $frame) = @_;
    my ($kind, undef, $rest) = unpack 'x5CN/aa*', $frame;
    $self->{worker}->io(unpack 'N', $rest) if $kind == 2;
    return;
}

sub _not_opened {
    my ($self, $id) = @_;
    my $file = delete $self->{files}{$id} or return;
    my ($request, @part) = @$file;
    return $request->stream_file(@part);
}

sub _lost {
    my ($self) = @_;
    return if $self->{lost}++;
    $self->{worker}->unlinked($self);
    @{ $self->{queue} } = ();
    $self->{out}        = '';
    $self->{files}      = {};
    $_->given_up for grep { $_ } values %{ $self->{requests} };
    $self->{held} = {};
    return;
}

1;

__END__

=head1 NAME

Greenroom::Link - a worker's connection to one loop of the front

=head1 DESCRIPTION

Takes apart what the loop sends, keeps the requests that have not begun (C<queue>) and what is to be
sent (C<out>). C<receive> reads what is there, C<await> waits for something before it does. C<flush>
writes C<out>: in a worker that blocks all of it, else what the socket takes. C<flush_soon> does so
when the event loop comes round, so that responses of the same round go out together.

=cut
