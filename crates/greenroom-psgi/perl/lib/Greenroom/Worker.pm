package Greenroom::Worker;

use strict;
use warnings;

use IO::Handle ();
use Time::HiRes ();

use Greenroom::Frame qw(frame frames read_exactly write_all WHOLE_BODY_MAX);
use Greenroom::Input ();
use Greenroom::Link ();
use Greenroom::Loop ();
use Greenroom::Request ();

use constant {
    SLICE_SECONDS       => 0.001,
    FLUSH_RESPONSES     => 24,
    SLOW_REMEMBERED     => 1_000,
    FIRST_FRAME_SECONDS => 5,
    ERROR_BYTES_MAX     => 8_192,
    LEFT_BY_NEXT        => 'the application was left by a `next` or `last` outside of its loops',
};

my %STATUS = map { $_ => 1 } 100 .. 999;

# application: a Greenroom::Application, or code where it is loaded already. listener: bound.
# lifeline: a pipe that ends with the zygote.
sub new {
    my ($class, %of) = @_;
    return bless {%of, blocking => 1, links => {}, ios => {}, slow => 0}, $class;
}

sub run {
    my ($self) = @_;
    $self->{pid} = $$;
    my $app = $self->{application};
    if (ref $app ne 'CODE') {
        $app = eval { $app->load } or return $self->_say_why_not($@);
    }
    $self->{app} = $app;
    $self->_take_loop(Greenroom::Loop::found());
    while (1) {
        eval { $self->{loop}->run; 1 } or $self->log_error(undef, $@);
    }
}

# The front gets it on the control connection, which it may still be about to make.
sub _say_why_not {
    my ($self, $message) = @_;
    $self->_await_control;
    write_all($self->{control}, frame('X', $message)) if $self->{control};
    return 2;
}

sub _await_control {
    my ($self) = @_;
    my @numbers = map { fileno $_ } grep { $_ } @$self{qw(listener lifeline)};
    until ($self->{control}) {
        my $ready = '';
        vec($ready, $_, 1) = 1 for @numbers;
        next if select($ready, undef, undef, undef) <= 0;
        return if !vec $ready, $numbers[0], 1;
        $self->_accept;
    }
    return;
}

# Looks for the loop again when an application has turned out to respond later.
sub _take_loop {
    my ($self, $name) = @_;
    my $before = $self->{loop};
    $self->{mode}     = $name || 'blocking';
    $self->{blocking} = !$name;
    $self->{loop}     = Greenroom::Loop::adaptor($name);
    $self->_set_constants;
    $before->stop if $before;
    my $loop = $self->{loop};
    $self->{listener}->blocking(0);    # a ready connection may have been accepted by io meanwhile
    $loop->readable($self->{listener}, sub { $self->_accept });
    $loop->readable($self->{lifeline}, sub { $self->_zygote_ended }) if $self->{lifeline};
    $self->_watch_control if $self->{control};
    $self->_watch_link($_) for values %{ $self->{links} };
    return;
}

sub _set_constants {
    my ($self) = @_;
    $self->{constants} = [
        'psgi.version'           => [ 1, 1 ],
        'psgi.errors'            => *STDERR,    # the glob: `local *STDERR = \*STDERR` would close it
        'psgi.multithread'       => '',
        'psgi.multiprocess'      => $self->{multiprocess} ? 1 : '',
        'psgi.run_once'          => '',
        'psgi.streaming'         => 1,
        'psgi.nonblocking'       => $self->{blocking} ? '' : 1,
        'psgix.input.buffered'   => 1,
        'psgix.harakiri'         => 1,
        'psgix.cleanup'          => 1,
    ];
    return;
}

sub _zygote_ended {
    my ($self) = @_;
    exit 0 if !$self->{control};
    $self->{loop}->forget(delete $self->{lifeline});
    return;
}

sub _accept {
    my ($self) = @_;
    accept my $handle, $self->{listener} or return;
    my $first = read_exactly($handle, 5, FIRST_FRAME_SECONDS);
    my $type = defined $first ? substr $first, 4 : '';
    return $self->_take_control($handle) if $type eq 'C';
    return $self->_take_link($handle)    if $type eq 'L';
    return $self->_take_io($handle)      if $type eq 'I';
    return;
}

sub _take_control {
    my ($self, $handle) = @_;
    $self->{control} = $handle;
    return if !$self->{loop};
    write_all($handle, frame('R', $self->{mode}));
    return $self->_watch_control;
}

sub _watch_control {
    my ($self) = @_;
    my $in = '';
    $self->{loop}->readable($self->{control}, sub { $self->_controlled(\$in) });
    return;
}

sub _controlled {
    my ($self, $in) = @_;
    my $got = sysread $self->{control}, $$in, 4096, length $$in;
    return if !defined $got && $!{EINTR};
    exit 0 if !$got || grep { $_ eq 'Q' } frames($in);
    return;
}

sub _take_link {
    my ($self, $handle) = @_;
    my $link = Greenroom::Link->new($self, $handle);
    $self->{links}{$link} = $link;
    return $self->_watch_link($link);
}

sub _watch_link {
    my ($self, $link) = @_;
    $self->{loop}->readable($link->{handle}, sub { $self->_work($link) }) if $self->{loop};
    return;
}

sub unlinked {
    my ($self, $link) = @_;
    $self->{loop}->forget($link->{handle});
    delete $self->{links}{$link};
    return;
}

sub _take_io {
    my ($self, $handle) = @_;
    my $token = read_exactly($handle, 4, FIRST_FRAME_SECONDS);
    $self->{ios}{ unpack 'N', $token } = $handle if defined $token;
    return;
}

# The front has opened it before it sent the request.
sub io {
    my ($self, $token) = @_;
    until ($self->{ios}{$token}) {
        vec(my $ready = '', fileno $self->{listener}, 1) = 1;
        my $found = select $ready, undef, undef, FIRST_FRAME_SECONDS;
        next   if $found < 0 && $!{EINTR};
        return if $found <= 0;
        $self->_accept;
    }
    require IO::Socket::UNIX;
    my $io = bless delete $self->{ios}{$token}, 'IO::Socket::UNIX';
    $io->blocking($self->{blocking});
    return $io;
}

# Each link's turn is at most a millisecond or one call; its other requests wait for the other
# links.
sub _work {
    my ($self, $link) = @_;
    $link->receive or return;
    my $queue = $link->{queue};
    return if !@$queue;
    eval { $self->_serve($link); 1 } or $self->log_error(undef, $@);
    return if !@$queue || $link->{turn}++;
    $self->{loop}->later(sub {
        delete $link->{turn};
        $self->_work($link);
    });
    return;
}

# The hot path, hence its length: a call of a sub costs a fiftieth of a small response, a second
# copy of the body or the headers as much. Stringifying an application's objects may run its code,
# hence it is within the eval. The clock is read once a request; the end of one is the beginning of
# the next.
sub _serve {
    my ($self, $link) = @_;
    no warnings 'uninitialized';
    my ($app, $queue) = ($self->{app}, $link->{queue});
    my $before  = Time::HiRes::time();
    my $until   = $before + SLICE_SECONDS;
    my $responses = 0;
    while (defined(my $frame = shift @$queue)) {
        my ($id, $kind, $environment, $rest) = unpack 'xNCN/aa*', $frame;
        my %env = (
            split(/\0/, $environment, -1), @{ $self->{constants} },
            'psgix.cleanup.handlers' => [],
            'psgi.input'             => $rest eq '' ? Greenroom::Input::none() : undef,
        );
        my $plain = $env{REQUEST_METHOD} ne 'HEAD' && $kind != 2;
        if ($env{SERVER_PROTOCOL} eq 'HTTP/1.1') {
            $link->{current} = $self->{blocking} ? $id : undef;
            $env{'psgix.informational'} = $self->{blocking} ? $link->{inform_current} : $link->informer($id);
        }
        my ($response, $headers, $body);
        my $returned;
        {    # a loop, which a stray `next` or `last` of the application leaves instead of this one
            $returned = eval {
                Greenroom::Input::add($self, \%env, $kind, $rest) if $rest ne '';
                $response = $app->(\%env);
                if ($plain && ref $response eq 'ARRAY' && @$response == 3 && $STATUS{ $response->[0] }
                    && ref($headers = $response->[1]) eq 'ARRAY' && @$headers % 2 == 0
                    && ref($body = $response->[2]) eq 'ARRAY')
                {
                    my $separators = @$headers && $#$headers;
                    $headers = join "\0", @$headers;
                    $body = $headers . (@$body == 1 ? $body->[0] : join '', @$body);
                    undef $body if length $body > WHOLE_BODY_MAX || !utf8::downgrade($body, 1)
                        || ($headers =~ tr/\0//) != $separators;
                }
                else {
                    undef $body;
                }
                1;
            };
        }
        my $error = $returned ? undef : ref $@ || length $@ ? $@ : LEFT_BY_NEXT;
        $self->end_child($error) if $$ != $self->{pid};
        undef $link->{current};
        my $now = Time::HiRes::time();
        if ($returned && defined $body) {
            my $busy = ($now - $before) * 1e6;
            $link->{out} .= pack('NCNNnN', 15 + length $body, 114, $id, $busy > 0 ? $busy : 0,
                $response->[0], length $headers) . $body;
            if ($env{'psgix.harakiri.commit'}
                || ref $env{'psgix.cleanup.handlers'} eq 'ARRAY' && @{ $env{'psgix.cleanup.handlers'} })
            {
                $self->finish($link, \%env);
                $now = Time::HiRes::time();
            }
        }
        else {
            $self->_settle($link, $id, \%env, $before, $plain, $kind, $returned ? $response : undef, $error);
            $now = Time::HiRes::time();
        }
        $self->{slow} = SLOW_REMEMBERED if $now - $before > SLICE_SECONDS;
        last if $now > $until;
        $link->flush if $self->{slow} > 0 && $self->{slow}-- || ++$responses % FLUSH_RESPONSES == 0;
        $before = $now;
    }
    $link->flush;
    return;
}

# Handles every response that is not complete at once.
sub _settle {
    my ($self, $link, $id, $env, $began, $plain, $kind, $response, $error) = @_;
    my $request = Greenroom::Request->new(
        link => $link, id => $id, env => $env, began => $began, io => $kind == 2,
        head => !$plain && $kind != 2,
        name => _name($env),
    );
    if    (defined $error)        { $request->fail($error) }
    elsif (ref $response eq 'CODE') {
        local $link->{current} = $self->{blocking} ? $id : undef;
        $request->attempt($response, $request->responder, _socket($env));
    }
    else                          { $request->attempt($request->responder, $response) }
    return if $request->{ended};
    if ($self->{blocking}) {
        my $name = Greenroom::Loop::found();
        $self->_take_loop($name) if $name;
    }
    return $self->{blocking} ? $request->end_with_call : $request->outlive_call;
}

# Names a request for the log: without the query, which may hold secrets.
sub _name {
    my ($env) = @_;
    return join ' ', grep { defined } $env->{REQUEST_METHOD}, ($env->{REQUEST_URI} || '') =~ /\A([^?]*)/;
}

# The second argument that Twiggy passes to a delayed response. Without a socket there is no
# argument either: a sub with a signature, as other servers take it, would die of it.
sub _socket {
    my ($env) = @_;
    return grep { defined } $env->{'psgix.io'};
}

# Runs the application's cleanup handlers once the response is on its way.
sub finish {
    my ($self, $link, $env) = @_;
    my $handlers = $env->{'psgix.cleanup.handlers'};
    if (ref $handlers eq 'ARRAY' && @$handlers) {
        $link->flush;
        for my $handler (@$handlers) {
            my $ended = eval { $handler->($env); 1 };
            $self->end_child($ended ? undef : $@);
            $self->log_error(_name($env), $@, 'a cleanup handler: ') if !$ended;
        }
    }
    return if !$env->{'psgix.harakiri.commit'} || $self->{harakiri}++;
    $link->flush;
    write_all($self->{control}, frame('H', '')) if $self->{control};
    return;
}

# Ends a child that the application has forked and that has left the application's code: it must not
# go on as a second worker on its parent's connections.
sub end_child {
    my ($self, $error) = @_;
    return if $$ == $self->{pid};
    $self->log_error(undef, $error, "a child of worker $self->{pid}: ") if defined $error;
    require POSIX;
    POSIX::_exit(defined $error ? 255 : 0);
}

# Sends an error of the application, for the front's log. A child that the application has forked
# has no part in its parent's connection.
sub log_error {
    my ($self, $name, $message, $before) = @_;
    ($name, $message) = ($name // '', _text($message, $before // ''));
    utf8::encode($name) if utf8::is_utf8($name);
    return if $self->{control} && $$ == $self->{pid}
        && write_all($self->{control}, frame('E', pack 'N/a*a*', $name, $message));
    print {*STDERR} 'greenroom: ', $name eq '' ? '' : "$name: ", $message, "\n";
    return;
}

# Returns an exception as bytes of bounded length without an end of line.
sub _text {
    my ($message, $before) = @_;
    $message = 'died without a message' if !defined $message;
    $message = eval { "$message" } // 'an exception that is no text';
    utf8::encode($message) if utf8::is_utf8($message);
    $message = $before . $message;
    $message =~ s/\n+\z//;
    my $dropped = length($message) - ERROR_BYTES_MAX;
    substr($message, ERROR_BYTES_MAX) = " [and $dropped bytes more]" if $dropped > 0;
    return $message;
}

1;

__END__

=head1 NAME

Greenroom::Worker - serves the requests that Greenroom's front hands over

=head1 SYNOPSIS

    exit Greenroom::Worker->new(
        application => $application, listener => $listener, lifeline => $pipe, multiprocess => 1,
    )->run;

=head1 DESCRIPTION

A worker accepts the front's connections on its listener: one for control, one for each of the
front's loops, and one for each request that leaves HTTP. F<PROTOCOL.md> of the crate
C<greenroom-psgi> says what goes over them. It calls the application as PSGI 1.1 says, one call at a
time; an application that uses an event loop may have many requests under way, and that loop drives
the worker.

C<run> returns the status to exit with when the application cannot be loaded; else it does not return.

=cut
