package Plack::Handler::Greenroom;

use strict;
use warnings;

use File::Spec ();
use File::Temp ();
use Socket qw(AF_UNIX PF_UNSPEC SOCK_STREAM inet_aton inet_ntoa);

use Greenroom::Application ();
use Greenroom::Zygote ();

# Options of this handler that are flags of the program.
my %FLAG = (
    (map { $_ => s/_/-/gr } qw(
        workers worker_concurrency max_requests timeout max_rss loops worker_queue_max
        worker_queue_wait_max body_memory_max body_bytes_max drain_deadline
    )),
    queue_max      => 'worker-queue-max',
    queue_wait_max => 'worker-queue-wait-max',
);

# Seconds, where Perl's servers take a plain number.
my %IS_TIME = map { $_ => 1 } qw(timeout worker_queue_wait_max queue_wait_max drain_deadline);

sub new {
    my ($class, %options) = @_;
    return bless {%options}, $class;
}

sub run {
    my ($self, $app) = @_;
    die "-D (--daemonize) is not offered: run it under a service manager, such as systemd\n" if $self->{daemonize};
    Greenroom::Application::provide_anyevent($_) for grep { /\.psgi\z/ } keys %INC;
    my $program = _program();
    my $dir     = File::Temp->newdir('greenroom-XXXXXXXX', TMPDIR => 1);
    socketpair my $ours, my $theirs, AF_UNIX, SOCK_STREAM, PF_UNSPEC or die "a socket pair: $!\n";
    my $front = fork // die "fork: $!\n";
    _exec($theirs, $program, 'serve', '--attach', "$dir", $self->arguments) if !$front;
    close $theirs;
    local @SIG{qw(TERM INT HUP)} = map { my $name = $_; sub { kill $name, $front } } qw(TERM INT HUP);
    my $parent = $$;
    my $zygote = Greenroom::Zygote->new(channel => $ours, dir => "$dir", application => $app,
        name => $0, multiprocess => ($self->{workers} || 0) ne 1);
    my $status = $zygote->serve;
    exit $status if $$ != $parent;
    exit _status_of($front, $zygote);
}

sub _program {
    my $named = $ENV{GREENROOM};
    for my $path (defined $named ? $named : map { File::Spec->catfile($_, 'greenroom') } File::Spec->path) {
        return $path if -f $path && -x _;
    }
    die defined $named
        ? "GREENROOM=$named: no such program\n"
        : "the program greenroom is not in PATH; put it there, or say where it is in the environment variable GREENROOM\n";
}

# In a process group of its own: what a terminal signals reaches it once, from its parent.
sub _exec {
    my ($channel, @command) = @_;
    setpgrp 0, 0;
    open STDIN, '<&', $channel or die "standard input: $!\n";
    no warnings 'exec';
    exec { $command[0] } @command;
    print {*STDERR} "$command[0]: $!\n";
    require POSIX;
    POSIX::_exit(2);
}

# The flags of the program that these options are.
sub arguments {
    my ($self) = @_;
    my @listen = @{ $self->{listen} || [] };
    @listen = $self->{socket} || ($self->{host} || '') . ':' . ($self->{port} || 5000) if !@listen;
    my @arguments = map { ('--listen', _address($_)) } @listen;
    for my $name (sort grep { defined $self->{$_} } keys %FLAG) {
        my $value = $self->{$name};
        $value .= 's' if $IS_TIME{$name} && $value =~ /\A[0-9.]+\z/;
        push @arguments, "--$FLAG{$name}", $value;
    }
    push @arguments, '--no-access-log' if exists $self->{access_log} && ($self->{access_log} || 'off') eq 'off';
    return @arguments;
}

# The program takes addresses, not names.
sub _address {
    my ($listen) = @_;
    my ($host, $port) = $listen =~ /\A([A-Za-z][\w.-]*):([0-9]+)\z/ or return $listen;
    my $address = inet_aton($host) or die "$listen: the host is not known\n";
    return inet_ntoa($address) . ":$port";
}

sub _status_of {
    my ($front, $zygote) = @_;
    my $status = $zygote->{reaped}{$front};
    while (!defined $status) {
        my $pid = waitpid $front, 0;
        $status = $? if $pid == $front;
        return 1 if $pid < 0 && !$!{EINTR};
    }
    return $status & 127 ? 128 + ($status & 127) : $status >> 8;
}

1;

__END__

=head1 NAME

Plack::Handler::Greenroom - plackup -s Greenroom

=head1 SYNOPSIS

    plackup -s Greenroom --workers 4 app.psgi

=head1 DESCRIPTION

Starts the program C<greenroom>, which serves the clients, and forks the workers that it asks for
from this process, in which plackup has loaded the application. The program is the one that the
environment variable C<GREENROOM> names, or the first in C<PATH>.

SIGTERM, SIGINT and SIGHUP are passed on to it. Its exit status becomes that of this process.

=head1 OPTIONS

C<host>, C<port>, C<socket> and C<listen> say where to listen: C<HOST:PORT>, C<:PORT>, or a socket's
path. C<workers>, C<worker_concurrency>, C<max_requests>, C<timeout>, C<max_rss>, C<loops>,
C<worker_queue_max> (or C<queue_max>), C<worker_queue_wait_max> (or C<queue_wait_max>),
C<body_memory_max>, C<body_bytes_max> and C<drain_deadline> are the program's flags; S<C<greenroom
serve --help>> explains them. A time without a unit is in seconds. C<access_log> set to C<off> or 0
ends the program's own access log.

=cut
