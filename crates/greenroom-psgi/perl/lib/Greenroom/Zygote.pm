package Greenroom::Zygote;

use strict;
use warnings;

use Getopt::Long ();
use POSIX ();
use Socket qw(PF_UNIX SOCK_STREAM SOMAXCONN pack_sockaddr_un);

use Greenroom::Application ();
use Greenroom::Frame qw(frame frames write_all);
use Greenroom::Loop ();
use Greenroom::Worker ();

# The seconds after which a SIGCHLD is noticed that comes just before select begins.
use constant REAP_SECONDS => 1;

sub main {
    my ($class) = @_;
    my %options = (include => [], modules => []);
    my $parser = Getopt::Long::Parser->new(config => [qw(no_ignore_case no_auto_abbrev)]);
    $parser->getoptions(\%options, 'dir=s', 'app=s', 'preload', 'env=s', 'multiprocess',
        'I=s@' => $options{include}, 'M=s@' => $options{modules})
        or exit 2;
    local $SIG{INT} = 'IGNORE';
    my $channel = _channel_from_stdin();
    my $application = Greenroom::Application->new(file => $options{app},
        map { $_ => $options{$_} } qw(env include modules));
    my $loaded = eval {
        $application->prepare;
        $options{preload} ? $application->load : $application;
    };
    if (!$loaded) {
        write_all($channel, frame('X', $@));
        exit 2;
    }
    exit $class->new(channel => $channel, application => $loaded, name => $options{app},
        map { $_ => $options{$_} } qw(dir multiprocess))->serve;
}

# So that the application's standard input is not the front's.
sub _channel_from_stdin {
    open my $channel, '+<&', \*STDIN or die "greenroom: standard input: $!\n";
    open STDIN, '<', '/dev/null' or die "greenroom: /dev/null: $!\n";
    return $channel;
}

# channel: to the front. dir: the directory of the workers' sockets. name: of the application, for
# ps.
sub new {
    my ($class, %of) = @_;
    return bless {%of, in => '', keys => {}}, $class;
}

# Forks until the front closes the channel; in a worker, until that ends. Returns the exit status.
sub serve {
    my ($self) = @_;
    $0 = "greenroom zygote: $self->{name}";
    $| = 1;
    local $SIG{PIPE} = 'IGNORE';
    local $SIG{TERM} = $SIG{TERM} || _heedless($$);
    # libev has a handler of its own, which it installs only once, when EV is loaded; Perl does not
    # see that one.
    local $SIG{CHLD} = sub { } if !$INC{'EV.pm'} || $SIG{CHLD};
    pipe $self->{lifeline}, $self->{life} or die "greenroom: a pipe: $!\n";
    write_all($self->{channel}, frame('U', ''));
    while (1) {
        vec(my $ready = '', fileno $self->{channel}, 1) = 1;
        my $found = select $ready, undef, undef, REAP_SECONDS;
        $self->_reap;
        next if $found <= 0;
        my $got = sysread $self->{channel}, $self->{in}, 4096, length $self->{in};
        return 0 if !$got && !(!defined $got && $!{EINTR});
        for my $frame (frames(\$self->{in})) {
            my $worker = $self->_fork(unpack 'xN', $frame) or next;
            return $worker->run;
        }
    }
}

# Of children that are no workers, such as plackup's front, the status is kept.
sub _reap {
    my ($self) = @_;
    while ((my $pid = waitpid -1, POSIX::WNOHANG()) > 0) {
        my $key = delete $self->{keys}{$pid};
        if (!defined $key) {
            $self->{reaped}{$pid} = $?;
            next;
        }
        unlink $self->_path($key);
        write_all($self->{channel}, frame('e', pack 'NN', $key, $?));
    }
    return;
}

sub _path {
    my ($self, $key) = @_;
    return "$self->{dir}/worker-$key.sock";
}

# Returns a worker in the child, nothing in the zygote. A worker that cannot be forked has ended
# with status 1.
sub _fork {
    my ($self, $key) = @_;
    my $listener = $self->_listener($key);
    my $pid = $listener ? fork : undef;
    if (!defined $pid) {
        print {*STDERR} "greenroom: worker $key cannot be started: $!\n";
        write_all($self->{channel}, frame('e', pack 'NN', $key, 1 << 8));
        return;
    }
    return $self->_worker($key, $listener) if !$pid;
    $self->{keys}{$pid} = $key;
    write_all($self->{channel}, frame('f', pack 'NN', $key, $pid));
    return;
}

sub _listener {
    my ($self, $key) = @_;
    my $path = $self->_path($key);
    unlink $path;
    my $listener;
    socket($listener, PF_UNIX, SOCK_STREAM, 0)
        && bind($listener, pack_sockaddr_un($path))
        && listen($listener, SOMAXCONN)
        or return;
    return $listener;
}

# A service manager may send SIGTERM to all processes: the front then lets its workers finish, so
# none of them ends by itself. Programs that the application forks or starts do.
sub _heedless {
    my ($pid) = @_;
    return sub {
        return if $$ == $pid;
        $SIG{TERM} = 'DEFAULT';
        kill 'TERM', $$;
    };
}

# A terminal's SIGINT is for the front alone, which lets its workers finish.
sub _worker {
    my ($self, $key, $listener) = @_;
    close delete $self->{$_} for qw(channel life);
    @SIG{qw(INT PIPE)} = qw(IGNORE IGNORE);
    # Not 'DEFAULT', which AnyEvent takes for a handler that is there already.
    undef $SIG{$_} for 'HUP', $INC{'EV.pm'} ? () : 'CHLD';
    # libev's descriptors are still those of all, who would take each other's events.
    EV::default_loop()->loop_fork if $INC{'EV.pm'};
    $SIG{TERM} = _heedless($$);
    $0 = "greenroom worker $key: $self->{name}";
    srand;
    return Greenroom::Worker->new(
        listener => $listener, map { $_ => $self->{$_} } qw(application lifeline multiprocess),
    );
}

1;

__END__

=head1 NAME

Greenroom::Zygote - the process of which Greenroom's workers are forked

=head1 SYNOPSIS

    perl -MGreenroom::Zygote -e 'Greenroom::Zygote->main' -- --dir DIR --app FILE [--preload]
        [--env NAME] [-I DIRECTORY]... [-M MODULE]... [--multiprocess]

=head1 DESCRIPTION

C<main> loads the modules (and with C<--preload> the application), and serves the front on standard
input, a socket: it forks a worker for each C<F> and tells the front of each that ended. It ends when
the front closes the channel; with status 2 when something could not be loaded.

C<new> and C<serve> do the same for an application that is loaded already; C<serve> returns the
status to exit with, in the zygote as in its workers.

=cut
