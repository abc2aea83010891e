package Greenroom::Request;

use strict;
use warnings;

use Scalar::Util ();
use Time::HiRes ();

use Greenroom::Body ();
use Greenroom::Frame qw(encode_headers STREAM_WINDOW WHOLE_BODY_MAX WRITER_BUFFER_MAX);
use Greenroom::Writer ();

# began: the time when the application was called; undef once the front knows how long it ran.
sub new {
    my ($class, %of) = @_;
    my $self = bless {%of, waits => $of{link}{worker}{blocking}}, $class;
    Scalar::Util::weaken($of{link}{requests}{ $of{id} } = $self);
    return $self;
}

sub responder {
    my ($self) = @_;
    return sub { $self->respond($_[0]) };
}

sub respond {
    my ($self, $response) = @_;
    if ($self->{responded}++) {
        return $self->log('the responder was called twice; what it was given then is ignored');
    }
    my $wrong = _wrong($response);
    return $self->fail($wrong) if $wrong;
    my ($status, $headers, $body) = @$response;
    my $encoded = encode_headers($headers);
    return $self->fail('malformed headers: an even number of names and values is needed, without NUL and wide characters')
        if !defined $encoded;
    return $self->_writer($status, $encoded) if @$response == 2;
    return $self->whole($status, $encoded, Greenroom::Body::close_unread($body)) if $self->{head};
    return Greenroom::Body::send($self, $status, $encoded, $headers, $body);
}

sub _wrong {
    my ($response) = @_;
    return 'malformed response: not an array reference' if ref $response ne 'ARRAY';
    return 'malformed response: ' . @$response . ' elements, 2 or 3 are needed' if @$response < 2 || @$response > 3;
    my $status = $response->[0];
    return if defined $status && $status =~ /\A[1-9][0-9]{2}\z/;
    return 'malformed status: ' . (defined $status ? qq{"$status"} : 'undef') . ', a number of three digits is needed';
}

# Sends a response with its whole body.
sub whole {
    my ($self, $status, $headers, $body) = @_;
    return $self->fail('the body has a wide character; encode it') if !utf8::downgrade($body, 1);
    return Greenroom::Body::send_long($self, $status, $headers, $body) if length $body > WHOLE_BODY_MAX;
    return $self->end(pack 'NANNnN/a*a*', 15 + length($headers) + length($body), 'r', $self->{id},
        $self->_busy, $status, $headers, $body);
}

# The front opens a duplicate: the application may close its own handle at any time.
sub file {
    my ($self, $status, $headers, $handle, $offset, $length) = @_;
    open my $own, '<&', $handle or return $self->fail("the body's file: $!");
    Greenroom::Body::close_unread($handle);
    return $self->_end_stream if $self->{left};
    $self->{link}{files}{ $self->{id} } = [ $self, $own, $offset, $length ];
    return $self->end(pack 'NANNnN/a*NQ>Q>', 35 + length $headers, 's', $self->{id}, $self->_busy,
        $status, $headers, fileno $own, $offset, $length);
}

# Streams a file that the front could not open, and whose end it does not know yet.
sub stream_file {
    my ($self, @part) = @_;
    @$self{qw(ended waits room unsent)} = (0, 0, STREAM_WINDOW, '');
    Scalar::Util::weaken($self->{link}{requests}{ $self->{id} } = $self);
    return Greenroom::Body::pump($self, Greenroom::Body::Part->new(@part));
}

sub _writer {
    my ($self, $status, $headers) = @_;
    $self->{left} ? $self->_end_stream : $self->begin($status, $headers);
    return Greenroom::Writer->new($self);
}

sub begin {
    my ($self, $status, $headers) = @_;
    $self->{room} = STREAM_WINDOW;
    $self->{unsent} = '';
    $self->_send(pack 'NANnN/a*', 11 + length $headers, 'h', $self->{id}, $status, $headers);
    return;
}

sub write {
    my ($self, $bytes) = @_;
    $self->_look if $self->{waits};
    return $self->_left if $self->{left};
    die "write after close\n" if $self->{ended} || $self->{closing};
    $bytes = "$bytes" if ref $bytes;    # of an object, downgrade would not see the text
    utf8::downgrade($bytes, 1) or die "Wide character in write: encode what is written\n";
    return 1 if $self->{head};
    $self->{unsent} .= $bytes;
    $self->_send_unsent;
    $self->_wait while $self->{waits} && $self->{unsent} ne '' && !$self->{left};
    return $self->_left if $self->{left};
    return $self->_too_far if length $self->{unsent} > WRITER_BUFFER_MAX;
    return 1;
}

# A worker that blocks hears only here that the client has left; no loop would tell it.
sub _look {
    my ($self) = @_;
    return if $$ != $self->{link}{worker}{pid};    # what comes is for the parent
    $self->{link}->receive or $self->{left} = 1;
    return;
}

sub _left {
    my ($self) = @_;
    die "the client has left\n" if $self->{waits};
    return 0;
}

# The time spent waiting for the client is not the application's.
sub _wait {
    my ($self) = @_;
    my $before = Time::HiRes::time();
    $self->{link}->flush;
    $self->{link}->await or $self->{left} = 1;
    $self->{began} += Time::HiRes::time() - $before if $self->{began};
    return;
}

sub _too_far {
    my ($self) = @_;
    $self->log('broken off: more than ' . WRITER_BUFFER_MAX . ' bytes were written ahead of the client');
    $self->{left} = 1;
    $self->break_off;
    return 0;
}

sub _send_unsent {
    my ($self) = @_;
    my $bytes = substr $self->{unsent}, 0, $self->{room}, '';
    return if $bytes eq '';
    $self->{room} -= length $bytes;
    $self->_send(pack 'NANa*', 5 + length $bytes, 'd', $self->{id}, $bytes);
    return;
}

# A worker that blocks sends its stream at once: no loop would send it later.
sub _send {
    my ($self, $bytes) = @_;
    my $link = $self->{link};
    $link->{out} .= $bytes;
    return $self->{waits} ? $link->flush : $link->flush_soon;
}

sub acknowledged {
    my ($self, $bytes) = @_;
    return if !defined $self->{room} || $self->{ended};
    $self->{room} += $bytes;
    $self->_send_unsent;
    return if $self->{unsent} ne '';
    return $self->_end_stream if $self->{closing};
    return $self->_poll_soon;
}

# Returns true if a source's next piece can go out.
sub has_room {
    my ($self) = @_;
    return $self->{room} > 0 && $self->{unsent} eq '' && !$self->{left} && !$self->{ended};
}

sub poll_cb {
    my ($self, $callback) = @_;
    return delete $self->{poll} if !$callback || $self->{ended} || $self->{closing};
    $self->{poll} = $callback;
    return if $self->{waits};
    $self->{link}{held}{ $self->{id} } = $self;
    return $self->_poll_soon;
}

sub _poll_soon {
    my ($self) = @_;
    return if !$self->{poll} || $self->{waits} || $self->{polls}++;
    $self->{link}{worker}{loop}->later(sub {
        delete $self->{polls};
        $self->_poll;
    });
    return;
}

sub _poll {
    my ($self) = @_;
    my $callback = $self->{poll};
    return if !$callback || !$self->{room} || $self->{unsent} ne '';
    $self->attempt($callback);
    delete $self->{link}{held}{ $self->{id} } if !$self->{poll} && !$self->{closing};
    return $self->_poll_soon;
}

# For a worker that blocks: it has no loop that would call back.
sub poll_to_the_end {
    my ($self) = @_;
    while (my $callback = $self->{poll}) {
        $self->_wait while !$self->{room} && !$self->{left};
        $self->attempt($callback);
        last if $self->{left} || $self->{ended};
    }
    return;
}

sub close {
    my ($self) = @_;
    return if $self->{ended} || $self->{closing};
    delete $self->{poll};
    if (($self->{unsent} || '') ne '' && !$self->{left}) {
        $self->{closing} = 1;
        $self->{link}{held}{ $self->{id} } = $self;
        return;
    }
    return $self->_end_stream;
}

sub _end_stream {
    my ($self) = @_;
    return $self->end(pack 'NANN', 9, 'e', $self->{id}, $self->_busy);
}

sub break_off {
    my ($self) = @_;
    return $self->end(pack 'NANN', 9, 'x', $self->{id}, $self->_busy);
}

# The call has returned, the response has not ended.
sub outlive_call {
    my ($self) = @_;
    $self->{waits} = 0;
    $self->_send(pack 'NANN', 9, 'w', $self->{id}, $self->_busy);
    return $self->_poll_soon;
}

# Without an event loop, nothing could end it later.
sub end_with_call {
    my ($self) = @_;
    $self->poll_to_the_end if $self->{poll};
    return if $self->{ended};
    return $self->_end_stream if $self->{left} || ($self->{io} && !$self->{responded});
    return $self->fail($self->{responded}
        ? 'broken off: the application returned without closing its writer, and no event loop was found that could'
        : 'the application returned without a response, and no event loop was found that could give it later');
}

sub given_up {
    my ($self) = @_;
    return if $self->{left}++ || $self->{ended};
    my $poll = delete $self->{poll};
    if ($poll && !$self->{waits}) {
        $self->attempt($poll);
        delete $self->{poll};
    }
    # An application that goes on to write is told by what `write` returns; not all look.
    return $self->_end_stream if !$self->{ended} && defined $self->{room} && !$self->{waits};
    delete $self->{link}{held}{ $self->{id} };
    return;
}

# Runs the application's code; an exception ends its request and nothing else.
sub attempt {
    my ($self, $code, @arguments) = @_;
    my $returned = eval { $code->(@arguments); 1 };
    my $error    = $@;
    $self->{link}{worker}->end_child($returned ? undef : $error);
    return 1 if $returned;
    return $self->_end_stream if $self->{left} && !$self->{ended};
    $self->fail($error);
    return;
}

# Responds with 500, or aborts a response that has begun.
sub fail {
    my ($self, $message) = @_;
    $self->log($message);
    return if $self->{ended};
    $self->{responded} = 1;
    return $self->break_off if defined $self->{room};
    return $self->whole(500, encode_headers([ 'Content-Type' => 'text/plain' ]), $self->{head} ? '' : 'Internal Server Error');
}

sub log {
    my ($self, $message) = @_;
    $self->{link}{worker}->log_error($self->{name}, $message);
    return;
}

# Returns the microseconds for which the application's code ran since the last frame with `busy`.
sub _busy {
    my ($self) = @_;
    my $began = delete $self->{began};
    return 0 if !$began;
    my $busy = (Time::HiRes::time() - $began) * 1e6;
    return $busy < 0 ? 0 : $busy > 0xffff_ffff ? 0xffff_ffff : int $busy;
}

# Ends a response that the client does not want any more, without sending it.
sub end {
    my ($self, $frame) = @_;
    return if $self->{ended}++;
    $frame = pack 'NANa4', 9, 'e', $self->{id}, substr $frame, 9, 4 if $self->{left} && $frame =~ /\A....[rs]/s;
    my $link = $self->{link};
    $link->{out} .= $frame;
    delete $self->{poll};
    delete $link->{requests}{ $self->{id} };
    delete $link->{held}{ $self->{id} };
    $self->{waits} ? $link->flush : $link->flush_soon;
    $self->_close_source;
    my $env = delete $self->{env};
    $link->{worker}->finish($link, $env) if $env;
    return;
}

sub _close_source {
    my ($self) = @_;
    my $source = delete $self->{source} or return;
    eval { $source->close; 1 } or $self->log("the body's close died: $@");
    return;
}

# The last reference that could have responded is gone.
sub DESTROY {
    my ($self) = @_;
    return if $self->{ended} || !$self->{link} || ${^GLOBAL_PHASE} eq 'DESTRUCT';
    return if $$ != $self->{link}{worker}{pid};    # a child that the application has forked ends
    local $@;
    return $self->_end_stream if $self->{left} || ($self->{io} && !$self->{responded});
    return $self->fail('the application let go of its responder without a response') if !$self->{responded};
    return $self->fail('broken off: the application let go of its writer without closing it');
}

1;

__END__

=head1 NAME

Greenroom::Request - a request whose response is not simply there when the application returns

=head1 DESCRIPTION

Responses with a short list of strings never come here: L<Greenroom::Worker> has a quicker way. An
object of this class keeps what is needed for all others: delayed and streamed ones, files, objects
with C<getline>, and what went wrong. The application's responder and writer hold it; when they are
gone without a response, it responds itself.

=cut
