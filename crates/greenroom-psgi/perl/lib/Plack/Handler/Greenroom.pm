package Plack::Handler::Greenroom;

use strict;
use warnings;

use File::Spec ();
use File::Temp ();
use POSIX ();
use Socket qw(AF_UNIX PF_UNSPEC SOCK_STREAM inet_aton inet_ntoa);

use Greenroom::Application ();
use Greenroom::Zygote ();
use Plack::Handler::Greenroom::Flags ();

# The arguments of the program's flags, by the flags' names.
my %VALUE = %Plack::Handler::Greenroom::Flags::VALUE;

# Options of this handler that are flags of the program: those of this name, and those that have
# another name in other servers.
my %FLAG = (
    (map { s/-/_/gr => $_ } keys %VALUE),
    queue_max          => 'worker-queue-max',
    queue_wait_max     => 'worker-queue-wait-max',
    max_workers        => 'workers',
    pre_fork           => 'workers',
    max_reqs_per_child => 'max-requests',
    keepalive_timeout  => 'keep-alive-timeout',
    read_timeout       => 'head-timeout',
    header_timeout     => 'head-timeout',
    pid_file           => 'pid',
    ssl_cert           => 'cert',
    ssl_cert_file      => 'cert',
    ssl_key            => 'key',
    ssl_key_file       => 'key',
);

# Options that nobody may believe to be in force. Names that begin so are meant too.
my $CONFINED = 'plackup has loaded the application already, with the rights that it has; `greenroom serve --user` '
    . 'changes them before, or have the service manager start plackup as that user';
my $TLS = 'TLS is set by --cert, --key and --client-ca';
my @REFUSED = (
    [ qr/\A(?:user|group|uid|gid|chroot|umask)\z/ => $CONFINED ],
    [ qr/\A(?:ssl|tls)_/ => $TLS ],
    [ qr/\A(?:daemonize|setsid|background)\z/     =>
            'run it under a service manager, such as systemd' ],
    [ qr/\Anet_server_/ => 'options of Net::Server are Starman\'s own' ],
);

# Options that hold in any case, or are plackup's own.
my %IS_GRANTED = map { $_ => 1 } qw(
    host port socket listen access_log preload_app server_ready server_software argv keepalive
    proctitle reuseport ssl enable_ssl
);

# What certificates come from.
my @CERTIFICATES = qw(cert ssl_cert ssl_cert_file tls_self_signed domain);

sub new {
    my ($class, %options) = @_;
    return bless {%options}, $class;
}

sub run {
    my ($self, $app) = @_;
    $self->check;
    Greenroom::Application::provide_anyevent($_) for grep { /\.psgi\z/ } keys %INC;
    my $program = _program();
    my $dir     = File::Temp->newdir('greenroom-XXXXXXXX', TMPDIR => 1);
    socketpair my $ours, my $theirs, AF_UNIX, SOCK_STREAM, PF_UNSPEC or die "a socket pair: $!\n";
    # Before the fork: the sockets that systemd passes on are for one process by its number.
    my ($passed, @arguments) = (passed_on(), $self->arguments);
    my $front = fork // die "fork: $!\n";
    _exec($theirs, $program, 'serve', '--attach', "$dir", @arguments) if !$front;
    close $theirs;
    _let_go($passed);
    my @passed_on = qw(TERM INT HUP USR1 USR2);
    local @SIG{@passed_on} = map { my $name = $_; sub { kill $name, $front } } @passed_on;
    my $parent = $$;
    my $zygote = Greenroom::Zygote->new(channel => $ours, dir => "$dir", application => $app,
        name => $0, multiprocess => _workers(@arguments) ne 1);
    my $status = $zygote->serve;
    exit $status if $$ != $parent;
    exit _status_of($front, $zygote);
}

# Returns the number of workers that flags or the environment say; without either the front decides.
sub _workers {
    my (@arguments) = @_;
    for my $index (grep { $arguments[$_] eq '--workers' } 0 .. $#arguments) {
        return $arguments[ $index + 1 ];
    }
    return $ENV{GREENROOM_WORKERS} || '';
}

# Dies for options that would be unsafe to ignore, and warns of those that have no effect.
sub check {
    my ($self) = @_;
    for my $name (sort grep { $self->{$_} && !$FLAG{$_} } keys %$self) {
        my ($refused) = grep { $name =~ $_->[0] } @REFUSED or next;
        die _flag($name) . " is not offered by plackup -s Greenroom: $refused->[1]\n";
    }
    for my $variable (grep { $ENV{$_} } qw(GREENROOM_USER GREENROOM_GROUP)) {
        die "$variable is not offered by plackup -s Greenroom: $CONFINED\n";
    }
    if (!grep { $self->{$_} } @CERTIFICATES) {
        my @wants_tls = map { "--listen $_" } grep { /:ssl\z/ } @{ $self->{listen} || [] };
        push @wants_tls, map { _flag($_) } grep { $self->{$_} } qw(enable_ssl ssl);
        die "$wants_tls[0] needs a certificate: $TLS\n" if @wants_tls;
    }
    for my $name (sort grep { defined $self->{$_} && !$FLAG{$_} && !$IS_GRANTED{$_} } keys %$self) {
        next if grep { $name =~ $_->[0] } @REFUSED;
        print {*STDERR} 'greenroom: ', _flag($name), " has no effect: plackup -s Greenroom does not know it\n";
    }
    for my $name (sort grep { exists $self->{$_} && !$self->{$_} } qw(keepalive preload_app proctitle)) {
        print {*STDERR} 'greenroom: ', _flag("disable_$name"), " has no effect: this cannot be turned off\n";
    }
    return;
}

sub _flag {
    my ($name) = @_;
    return '--' . $name =~ tr/_/-/r;
}

# Returns the descriptors of listening sockets that start_server or systemd have passed on to this
# process, or nothing. The program reports faults in them.
sub passed_on {
    my @passed = ($ENV{SERVER_STARTER_PORT} || '') =~ /=([0-9]+)(?=;|\z)/g;
    my $is_started = defined $ENV{SERVER_STARTER_PORT};
    if (($ENV{LISTEN_PID} || '') eq $$ && defined $ENV{LISTEN_FDS}) {
        $is_started = 1;
        push @passed, 3 .. 2 + $ENV{LISTEN_FDS} if $ENV{LISTEN_FDS} =~ /\A[0-9]{1,4}\z/;
    }
    return $is_started ? \@passed : undef;
}

# They are the program's now: the workers must not keep them open when that has ended.
sub _let_go {
    my ($passed) = @_;
    delete @ENV{qw(LISTEN_FDS LISTEN_FDNAMES LISTEN_PID SERVER_STARTER_PORT)} if $passed;
    POSIX::close($_) for grep { $_ > 2 } @{ $passed || [] };
    return;
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

# In a process group of its own: a terminal's signal reaches it once, from its parent.
sub _exec {
    my ($channel, @command) = @_;
    setpgrp 0, 0;
    $ENV{LISTEN_PID} = $$ if ($ENV{LISTEN_PID} || '') eq getppid;
    open STDIN, '<&', $channel or die "standard input: $!\n";
    no warnings 'exec';
    exec { $command[0] } @command;
    print {*STDERR} "$command[0]: $!\n";
    POSIX::_exit(2);
}

# Returns the flags of the program for these options. Sockets that were passed on replace plackup's
# addresses, as with other servers: plackup always names some.
sub arguments {
    my ($self) = @_;
    my @listen = @{ $self->{listen} || [] };
    @listen = $self->{socket} || ($self->{host} || '') . ':' . ($self->{port} || 5000) if !@listen;
    my @arguments = passed_on() ? () : _listening(@listen);
    my %value;
    for my $name (sort grep { defined $self->{$_} } keys %FLAG) {
        my $flag = $FLAG{$name};
        # By its own name, if it is given by both.
        next if exists $value{$flag} && _flag($name) ne "--$flag";
        $value{$flag} = $self->{$name};
        # Seconds, where Perl's servers take a plain number.
        $value{$flag} .= 's' if $VALUE{$flag} eq 'TIME' && $value{$flag} =~ /\A[0-9.]+\z/;
    }
    for my $flag (sort keys %value) {
        my $is_switch = $VALUE{$flag} eq '';
        push @arguments, "--$flag" if !$is_switch || $value{$flag};
        push @arguments, $value{$flag} if !$is_switch;
    }
    push @arguments, '--no-access-log' if exists $self->{access_log} && ($self->{access_log} || 'off') eq 'off';
    return @arguments;
}

# Returns the flags for these addresses. As with Starman, those without ":ssl" are without TLS once
# one has it.
sub _listening {
    my (@listen) = @_;
    my $plain = (grep { /:ssl\z/ } @listen) ? '--listen-plain' : '--listen';
    return map { /\A(.*):ssl\z/ ? ('--listen', _address($1)) : ($plain, _address($_)) } @listen;
}

# The program takes addresses, and of names only localhost.
sub _address {
    my ($listen) = @_;
    my ($host, $port) = $listen =~ /\A([A-Za-z][\w.-]*):([0-9]+)\z/ or return $listen;
    return $listen if $host eq 'localhost';
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

SIGTERM, SIGINT, SIGHUP and SIGUSR1 are passed on to it. Its exit status becomes that of this process.

Under C<start_server> (L<Server::Starter>) and systemd's socket activation the sockets that they pass on
are served, in the place of C<host>, C<port>, C<socket> and C<listen>.

=head1 OPTIONS

C<host>, C<port>, C<socket> and C<listen> say where to listen: C<HOST:PORT>, C<:PORT>, or a socket's
path. All other options are flags of the program, which S<C<greenroom serve --help>> explains, such as
C<workers> or C<max_rss>; L<Plack::Handler::Greenroom::Flags> lists them. Those are missing that say how an
application is loaded, which plackup has done. A time without a unit is in seconds. A flag without a value
is set by C<enable>: C<--enable-proxy-protocol>. C<access_log> set to C<off> or 0 ends the program's own access
log.

Options of other servers are taken for what they are here: C<max_workers> and C<pre_fork> for C<workers>,
C<max_reqs_per_child> for C<max_requests>, C<keepalive_timeout> for C<keep_alive_timeout>, C<read_timeout>
and C<header_timeout> for C<head_timeout>, C<queue_max> and C<queue_wait_max> for C<worker_queue_max> and
C<worker_queue_wait_max>, C<pid_file> for C<pid>, C<ssl_cert> for C<cert>, C<ssl_key> for C<key>.
C<preload_app> is so in any case, and C<enable_ssl> wherever there is a certificate. Of addresses, those
with C<:ssl> have TLS, and the others do not: C<--listen :443:ssl --listen :80>.

C<user>, C<group> and C<daemonize> are refused. What is not known has no effect,
and a warning says so.

=cut
