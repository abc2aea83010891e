#!/usr/bin/perl
# The two programs that AnyEvent's manual measures loops with, over each loop that Perl has.
#
#   loops.pl watchers LOOP PAIRS                  an I/O watcher and a timer for each of PAIRS
#   loops.pl servers LOOP PAIRS ACTIVE SECONDS    ACTIVE bytes wander among PAIRS socket pairs
#
# LOOP is a key of %loops, or AnyEvent/MODEL. Prints one line of JSON: microseconds and bytes each.
use strict;
use warnings;
use Socket;
use Time::HiRes 'time';

# Each loop in its own words. They become part of the programs below, so that nothing stands
# between those and the loop. $cb is for I/O and returns true, $once is for timers and does not.
my %anyevent = (
    use      => 'use AnyEvent; AnyEvent::detect; my $cv;',
    writable => 'AE::io $fh, 1, $cb',
    readable => 'AE::io $fh, 0, $cb',
    timer    => 'AE::timer $after, 0, $once',
    hour     => 'AE::timer 3600, 0, sub { die }',
    renew    => '$timeout = AE::timer 3600, 0, sub { die }',
    destroy  => '',
    run      => '($cv = AE::cv)->recv',
    stop     => '$cv->send',
);
my %loops = (
    EV => {
        use      => 'use EV;',
        writable => 'EV::io $fh, EV::WRITE, $cb',
        readable => 'EV::io $fh, EV::READ, $cb',
        timer    => 'EV::timer $after, 0, $once',
        hour     => 'EV::timer 3600, 3600, sub { die }',
        renew    => '$timeout->again',
        destroy  => '',
        run      => 'EV::run',
        stop     => 'EV::break',
    },
    Event => {
        use      => 'use Event;',
        writable => 'Event->io(fd => $fh, poll => "w", cb => $cb)',
        readable => 'Event->io(fd => $fh, poll => "r", cb => $cb)',
        timer    => 'Event->timer(after => $after, cb => $once)',
        hour     => 'Event->timer(interval => 3600, cb => sub { die })',
        renew    => '$timeout->again',
        destroy  => '$_->cancel for @io, @timers',
        run      => 'Event::loop()',
        stop     => 'Event::unloop()',
    },
    Glib => {
        use      => 'use Glib; my $main = Glib::MainLoop->new;',
        writable => 'Glib::IO->add_watch(fileno $fh, "out", $cb)',
        readable => 'Glib::IO->add_watch(fileno $fh, "in", $cb)',
        timer    => 'Glib::Timeout->add($after * 1000, $once)',
        hour     => 'Glib::Timeout->add(3_600_000, sub { die })',
        renew    => 'Glib::Source->remove($timeout);'
            . '$timeout = Glib::Timeout->add(3_600_000, sub { die })',
        destroy => 'Glib::Source->remove($_) for @io',    # timers that have fired are gone
        run     => '$main->run',
        stop    => '$main->quit',
    },
    POE => {
        # One session for all, and a handle for each watcher: POE keeps one a session and handle.
        use => 'use POE; my $running; my $session = POE::Session->create(inline_states => {'
            . '_start => sub { $_[KERNEL]->alias_set("here") }, within => sub { $_[ARG0]->() },'
            . 'io => sub { $_[ARG2]->() }, once => sub { $_[ARG0]->() }, late => sub { die } });'
            . 'sub within { $poe_kernel->call(here => within => $_[0]) }',
        handles  => 'map { open my $fh, ">&", $writable or die; $fh } 1 .. $pairs',
        writable => 'do { $poe_kernel->select_write($fh, io => $cb); $fh }',
        readable => '$poe_kernel->select_read($fh, io => $cb)',
        timer    => '$poe_kernel->delay_set(once => $after, $once)',
        hour     => '$poe_kernel->delay_set(late => 3600)',
        renew    => '$poe_kernel->delay_adjust($timeout, 3600)',
        destroy  => '$poe_kernel->select_write($_) for @io',
        run      => '$running = 1; $poe_kernel->run_one_timeslice while $running',
        stop     => '$running = 0',
    },
);

my $watchers = <<'PERL';
socketpair my $writable, my $other, AF_UNIX, SOCK_STREAM, PF_UNSPEC or die $!;
my @handles = <handles>;
my ($todo, $after, @io, @timers) = (2 * $pairs, 0);
my $cb = sub { <stop> unless --$todo; 1 };
my $once = sub { <stop> unless --$todo; 0 };

my ($rss, $time) = (rss(), time);
within(sub {
    for my $fh (@handles) {
        push @io, <writable>;
        push @timers, <timer>;
    }
});
my $create = time - $time;
my $bytes = rss() - $rss;

$time = time;
<run>;
my $invoke = time - $time;

$time = time;
within(sub {
    <destroy>;
    @io = @timers = ();
    $todo = 1;
    push @timers, <timer>;
});
<run>;
report(watchers => 2 * $pairs, bytes => $bytes / 2 / $pairs,
    map { $_->[0] => $_->[1] / 2 / $pairs * 1e6 }
        [create_us => $create], [invoke_us => $invoke], [destroy_us => time - $time]);
PERL

my $servers = <<'PERL';
my ($active, $after) = @ARGV;
my ($count, @servers) = 0;
my $once = sub { <stop>; 0 };

my $time = time;
within(sub {
    @servers = map {
        socketpair my $fh, my $w, AF_UNIX, SOCK_STREAM, PF_UNSPEC or die $!;
        my $timeout = <hour>;
        my $cb = sub {
            ++$count;
            sysread $fh, my $byte, 1;
            syswrite $servers[rand @servers]{w}, $byte, 1;
            <renew>;
            1;
        };
        { r => $fh, w => $w, watcher => <readable> }
    } 1 .. $pairs;
});
my $create = time - $time;

syswrite $servers[rand @servers]{w}, 'x', 1 for 1 .. $active;
my $end;
within(sub { $end = <timer> });
$time = time;
<run>;
report(sockets => 2 * $pairs, create_us => $create / $pairs * 1e6,
    request_us => (time - $time) / $count * 1e6);
PERL

# Resident memory, in bytes.
sub rss {
    open my $file, '<', '/proc/self/statm' or die $!;
    return (split ' ', <$file>)[1] * 4096;
}

sub report {
    my %figures = @_;
    print '{', join(', ', map { sprintf '"%s": %.3f', $_, $figures{$_} } sort keys %figures), "}\n";
    # Thousands of watchers need not be undone one by one.
    STDOUT->flush;
    require POSIX;
    POSIX::_exit(0);
}

my ($case, $name, $pairs) = splice @ARGV, 0, 3;
my $loop = $loops{$name};
if ($name =~ m{^AnyEvent/(.+)}) {
    $ENV{PERL_ANYEVENT_MODEL} = $1;
    $loop = \%anyevent;
}
my %words = (handles => '($writable) x $pairs', %$loop);
my $program = $case eq 'watchers' ? $watchers : $servers;
$program =~ s/<([a-z]+)>/$words{$1}/g;
$program = "sub within { \$_[0]->() }\n$program" unless $words{use} =~ /sub within/;
eval "$words{use}\n$program";
die $@;
