use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";
use Front;
use Greenroom::Frame qw(STREAM_WINDOW WRITER_BUFFER_MAX);
use Test::More;

# Every event loop drives a worker in the same way.

my %loops = (
    'EV'       => [ 'EV', q{use EV; sub timer { my ($after, $cb) = @_; my $t; $t = EV::timer($after, 0, sub { undef $t; $cb->() }) }} ],
    'AnyEvent' => [ 'EV', q{use AnyEvent; sub timer { my ($after, $cb) = @_; my $t; $t = AnyEvent->timer(after => $after, cb => sub { undef $t; $cb->() }) }} ],
    'AnyEvent, pure Perl' => [ 'AnyEvent', q{BEGIN { $ENV{PERL_ANYEVENT_MODEL} = 'Perl' } use AnyEvent; sub timer { my ($after, $cb) = @_; my $t; $t = AnyEvent->timer(after => $after, cb => sub { undef $t; $cb->() }) }} ],
    'IO::Async' => [ 'IO::Async', q{use IO::Async::Loop; sub timer { my ($after, $cb) = @_; IO::Async::Loop->new->watch_time(after => $after, code => $cb) }} ],
    'Mojo::IOLoop' => [ 'Mojo::IOLoop', q{BEGIN { $ENV{MOJO_REACTOR} = 'Mojo::Reactor::Poll' } use Mojo::IOLoop; sub timer { my ($after, $cb) = @_; Mojo::IOLoop->timer($after => sub { $cb->() }) }} ],
    'Mojo::IOLoop on EV' => [ 'EV', q{use EV; use Mojo::IOLoop; sub timer { my ($after, $cb) = @_; Mojo::IOLoop->timer($after => sub { $cb->() }) }} ],
);
my %module = ('AnyEvent, pure Perl' => 'AnyEvent', 'Mojo::IOLoop on EV' => 'Mojo::Reactor::EV', 'IO::Async' => 'IO::Async::Loop');

my $app = <<'APP';
use strict; use warnings; use POSIX ();
sub soon { my $cb = shift; $INC{'IO/Async/Loop.pm'} ? IO::Async::Loop->new->later($cb)
    : $INC{'Any' . 'Event.pm'} ? ('Any' . 'Event')->can('postpone')->(sub { $cb->() }) : timer(0, $cb) }
package Lines { sub new { bless [@_[1..$#_]], $_[0] } sub getline { shift @{$_[0]} } sub close { push @main::log, 'closed' } }
package main;
our @log;
my ($writer, $life, $ready);
my %kept;
my %response = (
    now   => sub { [ 200, [], [ $_[0]{'psgi.nonblocking'} ] ] },
    later => sub { my $q = $_[0]{QUERY_STRING}; sub { my $r = shift; timer(0.05, sub { $r->([ 200, [], [ $q ] ]) }) } },
    hold  => sub { my $q = $_[0]{QUERY_STRING}; sub { $kept{$q} = shift } },
    release => sub { my $r = delete $kept{ $_[0]{QUERY_STRING} }; $r->([ 200, [], [ 'released' ] ]); [ 200, [], [ 'done' ] ] },
    drop  => sub { delete $kept{ $_[0]{QUERY_STRING} }; [ 200, [], [ 'dropped' ] ] },
    dies_later => sub { sub { my $r = shift; timer(0.01, sub { my $kept = $r; die "died in a callback\n" }) } },
    dies_first => sub { sub { my $r = shift; timer(0.01, sub { soon(sub { die "died before others\n" }); $r->([ 200, [], [ 'after' ] ]) }) } },
    child => sub { my $module = 'Any' . 'Event'; eval "require $module" or die; sub { my $r = shift; pipe my $in, $life or die; my $pid = fork // die;
        if (!$pid) { close $life; sysread $in, my $none, 1; POSIX::_exit(3) }
        my $w; $w = $module->child(pid => $pid, cb => sub { undef $w; $r->([ 200, [], [ $_[1] >> 8 ] ]) }) } },
    end_child => sub { close $life; [ 200, [], [ 'told' ] ] },
    clock => sub { sub { my $w = $_[0]->([ 200, [] ]); my $n = 0; my $tick; $tick = sub { $w->write('tick '); ++$n < 3 ? timer(0.01, $tick) : ($w->close, undef $tick) }; timer(0.01, $tick) } },
    open  => sub { sub { $writer = $_[0]->([ 200, [] ]); return } },
    write => sub { my $n = $_[0]{QUERY_STRING}; my $ok = $writer->write('w' x $n); [ 200, [], [ $ok ? 'true' : 'false' ] ] },
    close => sub { $writer->close; undef $writer; [ 200, [], [ 'closed' ] ] },
    forget => sub { undef $writer; [ 200, [], [ 'forgotten' ] ] },
    polled => sub { sub { my $w = $_[0]->([ 200, [] ]); my $n = 0;
        $w->poll_cb(sub { my $w = shift; $w->write('p' x 100_000) or push @log, 'left'; $w->close if ++$n == 10 }) } },
    unready => sub { sub { $_[0]->([ 200, [] ])->poll_cb(sub { return if !$ready; $_[0]->write('ready'); $_[0]->close }) } },
    ready => sub { $ready = 1; [ 200, [], [ 'told' ] ] },
    unpolled => sub { sub { my $w = $_[0]->([ 200, [] ]); $w->poll_cb(sub { my $w = shift; $w->write('once'); $w->poll_cb(undef); timer(0.05, sub { $w->close }) }) } },
    lines => sub { [ 200, [], Lines->new(map { $_ x 50_000 } 'a' .. 'j') ] },
    log   => sub { my $log = join ' ', splice @log; [ 200, [], [ $log ] ] },
    cleanup => sub { push @{ $_[0]{'psgix.cleanup.handlers'} }, sub { push @log, 'cleaned' }; sub { my $r = shift; timer(0.01, sub { push @log, 'responds'; $r->([ 200, [], [ 'clean' ] ]) }) } },
    long  => sub { [ 200, [], [ 'l' x 200_000 ] ] },
    io    => sub { my $io = $_[0]{'psgix.io'}; sub { my $r = shift; timer(0.01, sub { my $kept = $r; syswrite $io, "raw\n" }) } },
    harakiri => sub { $_[0]{'psgix.harakiri.commit'} = 1; [ 200, [], [ '' ] ] },
);
END { warn "END was run\n" }
sub { my $env = shift; my ($name) = $env->{PATH_INFO} =~ m{/(.*)}; $response{$name}->($env) };
APP

my ($front, $worker);

sub log_is {
    my ($expected, $name) = @_;
    is $worker->get('/log')->{body}, $expected, $name;
    return;
}

sub frames_are {
    my ($types, $name) = @_;
    my @replies = map { $worker->reply } 1 .. length $types;
    is join('', map { $_->{type} } @replies), $types, $name;
    return @replies;
}

sub take {
    my ($bytes) = @_;
    my $taken = 0;
    $taken += length $worker->reply->{body} while $taken < $bytes;
    is $taken, $bytes, "$bytes bytes came";
    return;
}

sub responses_come_later {
    is $worker->get('/now')->{body}, 1, 'psgi.nonblocking';
    $worker->ask("/later?$_") for 1 .. 50;
    my (%waits, %responses);
    for (1 .. 100) {
        my $reply = $worker->reply;
        $reply->{type} eq 'w' ? $waits{ $reply->{id} }++ : ($responses{ $reply->{id} } = $reply->{body});
    }
    is keys %waits, 50;
    is_deeply [ map { $responses{$_} } sort { $a <=> $b } keys %responses ], [ 1 .. 50 ], 'fifty wait at once';

    my $held = $worker->ask('/hold?a');
    is $worker->reply->{type}, 'w';
    $worker->ask('/release?a');
    my ($released, $done) = sort { $a->{id} <=> $b->{id} } frames_are('rr');
    is_deeply [ @$released{qw(id body busy)}, $done->{body} ], [ $held, 'released', 0, 'done' ];
    return;
}

sub lost_responses_are_500 {
    my $id = $worker->ask('/hold?b');
    is $worker->reply->{type}, 'w';
    $worker->ask('/drop?b');
    my ($lost) = grep { $_->{id} == $id } frames_are('rr');
    is $lost->{status}, 500, 'a responder that is let go of';
    ok $front->logged(qr{GET /hold: the application let go of its responder without a response}), 'it is logged';

    $worker->ask('/dies_later');
    my (undef, $died) = frames_are('wr');
    is $died->{status}, 500, 'a callback that dies';
    ok $front->logged(qr/died in a callback/), 'it is logged';
    is $worker->get('/now')->{status}, 200, 'and the worker lives';
    for (1, 2) {
        $worker->ask('/dies_first');
        my (undef, $after) = frames_are('wr');
        is $after->{body}, 'after', 'what comes behind a callback that dies';
    }
    return;
}

sub streams_flow {
    is $worker->stream('/clock')->{body}, 'tick tick tick ';
    is $worker->stream('/polled')->{body}, 'p' x 1_000_000, 'poll_cb';
    is $worker->stream('/unpolled')->{body}, 'once', 'poll_cb until undef';
    is $worker->stream('/lines')->{body}, join('', map { $_ x 50_000 } 'a' .. 'j'), 'getline';
    $worker->ask('/unready');
    frames_are('hw');
    $worker->ask('/ready');
    is join(' ', sort map { $worker->reply->{body} // '' } 1 .. 3), ' ready told', 'poll_cb that has nothing to write holds up no others';
    log_is('closed');

    my $id = $worker->ask('/open');
    frames_are('hw');
    $worker->ask('/write?' . 1_000_000);
    take(STREAM_WINDOW);
    is $worker->reply->{body}, 'true', 'what the client does not take is kept';
    $worker->acknowledge($id, 1000);
    take(1000);
    is $worker->get('/close')->{body}, 'closed';
    ok $worker->link->silent(0.05), 'closing waits for what is kept';
    $worker->acknowledge($id, 1_000_000);
    take(1_000_000 - 1000 - STREAM_WINDOW);
    is_deeply [ @{ $worker->reply }{qw(type id)} ], [ 'e', $id ];
    return;
}

sub streams_break_off {
    my $id = $worker->ask('/open');
    frames_are('hw');
    $worker->ask('/write?' . (WRITER_BUFFER_MAX + STREAM_WINDOW + 1));
    take(STREAM_WINDOW);
    my ($broken, $false) = frames_are('xr', 'more than may be kept');
    is_deeply [ $broken->{id}, $false->{body} ], [ $id, 'false' ];
    ok $front->logged(qr{GET /open: broken off: more than 8388608 bytes}), 'it is logged';

    $id = $worker->ask('/open');
    frames_are('hw');
    $worker->ask('/forget');
    is_deeply [ sort map { $_->{type} . $_->{id} } frames_are('xr') ], [ sort "x$id", 'r' . ($id + 1) ], 'a writer that is let go of';

    $id = $worker->ask('/open');
    frames_are('hw');
    $worker->give_up($id);
    is_deeply [ @{ $worker->reply }{qw(type id)} ], [ 'e', $id ], 'a stream ends whose client has left';
    is $worker->get('/write?10')->{body}, 'false', 'write to a client that has left';
    is $worker->get('/close')->{type}, 'r', 'and it may be closed';
    for my $case ([ polled => 'left' ], [ lines => 'closed' ]) {
        $id = $worker->ask("/$case->[0]");
        my $taken = 0;
        while ($taken < STREAM_WINDOW) { $taken += length($worker->reply->{body} // '') }
        $worker->give_up($id);
        is_deeply [ @{ $worker->reply }{qw(type id)} ], [ 'e', $id ], "$case->[0] is given up";
        is((split ' ', $worker->get('/log')->{body})[0], $case->[1]);
    }
    return;
}

sub the_rest_works {
    my $s = $worker->get('/long');
    is $s->{type}, 's';
    $worker->link->send('N', pack 'N', $s->{id});
    take(200_000);
    is $worker->reply->{type}, 'e', 'a file as a stream';

    $worker->ask('/cleanup');
    is((frames_are('wr'))[1]{body}, 'clean');
    log_is('responds cleaned', 'cleanup comes after the response');

    my $io = $worker->connect('I', pack 'N', 9);
    $worker->ask('/io', kind => 2, rest => pack 'N', 9);
    frames_are('we', 'psgix.io');
    $io->fill(5);
    is $io->{in}, "raw\n";

    my $bytes = join '', map { ($worker->request_frame('/long'))[1] } 1 .. 300;
    $worker->link->send_raw($bytes);
    $worker->link->send('O', pack 'N', $worker->reply->{id}) for 1 .. 300;
    is $worker->get('/now')->{body}, 1, 'after a crowd';

    $worker->get('/harakiri');
    is(($worker->{control}->next)[0], 'H');
    $worker->{control}->send('Q');
    is_deeply [ $front->{zygote}->next ], [ 'e', pack 'NN', 1, 0 ], 'Q ends it';
    ok $front->logged(qr/^END was run$/m), 'it is logged';
    return;
}

sub preloaded_workers_have_loops_of_their_own {
    my $preloading = Front->start(@_, arguments => ['--preload']);
    my @workers = map { $preloading->worker } 1 .. 3;
    $_->ask('/later?preloaded') for @workers;
    is_deeply [ map { my $each = $_; map { $each->reply->{type} } 1, 2 } @workers ], [ ('w', 'r') x 3 ], '--preload';
    return if $worker->{mode} !~ /EV|AnyEvent/ || !eval { require AnyEvent };
    my $id = $workers[0]->ask('/child');
    is $workers[0]->reply->{type}, 'w';
    # All of them wait in their loops by now; only one is to wake up.
    $workers[0]->ask('/end_child');
    my ($child) = grep { $_->{id} == $id } map { $workers[0]->reply } 1, 2;
    is $child->{body}, 3, 'and see their children end';
    return;
}

for my $name (@ARGV ? @ARGV : sort keys %loops) {
    my $module = $module{$name} || $name;
    SKIP: {
        eval "require $module; 1" or skip "$module is not installed", 1;
        subtest $name => sub {
            my ($mode, $timer) = @{ $loops{$name} };
            $front  = Front->start(source => "package main; $timer\n$app");
            $worker = $front->worker;
            is $worker->{mode}, $mode;
            responses_come_later();
            lost_responses_are_500();
            streams_flow();
            streams_break_off();
            the_rest_works();
            my $other = $front->worker;
            close $other->{control}{handle};
            is_deeply [ $front->{zygote}->next ], [ 'e', pack 'NN', 2, 0 ], 'the end of control is its end';
            preloaded_workers_have_loops_of_their_own(source => "package main; $timer\n$app");
        };
    }
}

# A loop that the application loads only in a call is found then.
SKIP: {
    eval { require AnyEvent } or skip 'AnyEvent is not installed', 1;
    $front = Front->start(source => <<'APP');
my $module = 'Any' . 'Event';
sub { my $env = shift; return [ 200, [], [ $env->{'psgi.nonblocking'} ? 'event' : 'blocking' ] ] if $env->{PATH_INFO} eq '/mode';
    eval "require $module" or die; sub { my $r = shift; my $t; $t = $module->timer(after => 0.01, cb => sub { undef $t; $r->([ 200, [], [ 'late' ] ]) }) } }
APP
    $worker = $front->worker;
    is $worker->{mode}, 'blocking';
    is $worker->get('/mode')->{body}, 'blocking';
    $worker->ask('/');
    my (undef, $late) = frames_are('wr', 'the response comes');
    is $late->{body}, 'late';
    is $worker->get('/mode')->{body}, 'event', 'and psgi.nonblocking is true from then on';
}
done_testing;
