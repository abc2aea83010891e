use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";
use Front;
use Greenroom::Frame qw(STREAM_WINDOW);
use Test::More;

# Order, requests that are given up, and clients that are slower than a blocking worker.

my $front = Front->start(source => <<'APP');
use strict; use warnings;
my @log;
package Endless { sub new { bless [] } sub getline { 'x' x 10_000 } sub close { push @log, 'closed' } }
package main;
my %response = (
    name  => sub { push @log, $_[0]{QUERY_STRING}; [ 200, [], [ $_[0]{QUERY_STRING} ] ] },
    slow  => sub { push @log, 'slow'; select undef, undef, undef, 0.05; [ 200, [], [ 'slow' ] ] },
    wait_for => sub { my $file = $_[0]{QUERY_STRING}; do { select undef, undef, undef, 0.01 } until -e $file; [ 200, [], [ 'waited' ] ] },
    log   => sub { my $log = join ' ', splice @log; [ 200, [], [ $log ] ] },
    write => sub { sub { my $w = $_[0]->([ 200, [] ]); $w->write('w' x 100_000), push @log, $_ for 1 .. 10; $w->close } },
    guarded => sub { sub { my $w = $_[0]->([ 200, [] ]); eval { $w->write('w' x 100_000) for 1 .. 10; 1 } or push @log, "died: $@"; } },
    endless => sub { [ 200, [], Endless->new ] },
    ticks   => sub {
        sub {
            my $w = $_[0]->([ 200, [] ]);
            my $ticks = 0;
            eval { $w->write('t'), select undef, undef, undef, 0.01 while $ticks++ < 3_000; 1 };
            push @log, $ticks < 3_000 ? 'told' : 'not told';
        };
    },
    next    => sub { no warnings 'exiting'; next },
    last    => sub { no warnings 'exiting'; last },
    dying_child => sub { my $pid = fork // die; die "no such program\n" if !$pid; waitpid $pid, 0; [ 200, [], [ $? >> 8 ] ] },
    delayed_child => sub { sub { my $pid = fork // die; die "no such program\n" if !$pid; waitpid $pid, 0; $_[0]->([ 200, [], [ $? >> 8 ] ]) } },
    child   => sub { my $pid = fork // die; waitpid $pid, 0 if $pid; push @log, 'went on'; [ 200, [], [ $? >> 8 ] ] },
    writing_child => sub {
        sub {
            my $w = $_[0]->([ 200, [] ]);
            my $pid = fork // die;
            if (!$pid) { $w->write('child') for 1 .. 20; exit }
            waitpid $pid, 0;
            $w->write('parent');
            $w->close;
        };
    },
    proc    => sub { open my $file, '<', '/proc/self/status' or die; [ 200, [], $file ] },
    hints   => sub { my $env = shift; sub { $env->{'psgix.informational'}->(103, []); $_[0]->([ 200, [], [ 'hinted' ] ]) } },
    polled  => sub { sub { my $w = $_[0]->([ 200, [] ]); $w->poll_cb(sub { $_[0]->write('p' x 100_000) }) } },
);
sub { my $env = shift; my ($name) = $env->{PATH_INFO} =~ m{/(.*)}; $response{$name}->($env) };
APP
my $worker = $front->worker;

sub log_is {
    my ($expected, $name) = @_;
    is $worker->get('/log')->{body}, $expected, $name;
    return;
}

# Many at once, split at odd places, get their responses in order.
{
    my $bytes = join '', map { ($worker->request_frame("/name?n$_"))[1] } 1 .. 200;
    while ($bytes ne '') { $worker->link->send_raw(substr $bytes, 0, 1 + int rand 3000, '') }
    is_deeply [ map { $worker->reply->{body} } 1 .. 200 ], [ map { "n$_" } 1 .. 200 ], 'in order';
    $worker->get('/log');
}

# A request that is given up before it began is not begun.
{
    my $go = "$front->{dir}/go";
    my $holding = $worker->ask("/wait_for?$go");
    my $second  = $worker->ask('/name?second');
    my $third   = $worker->ask('/name?third');
    $worker->give_up($second);
    Front::write_file($go, '');
    my %replies = map { my $reply = $worker->reply; $reply->{id} => $reply } 1 .. 3;
    is_deeply [ map { $replies{$_}{type} } $holding, $second, $third ], [qw(r e r)];
    is $replies{$second}{busy}, 0;
    ok $replies{$holding}{busy} > 0;
    log_is('third', 'the second was never begun');
}

# Links take turns: a long queue on one does not keep another waiting to its end.
{
    my $other = $worker->connect('L');
    my $slow  = join '', map { ($worker->request_frame('/slow'))[1] } 1 .. 5;
    $worker->link->send_raw($slow);
    my (undef, $frame) = $worker->request_frame('/name?other');
    $other->send_raw($frame);
    is $worker->reply($other)->{body}, 'other';
    $worker->reply for 1 .. 5;
    my $log = $worker->get('/log')->{body};
    unlike $log, qr/other\z/, "not the last: $log";
}

sub take {
    my ($bytes, $link) = @_;
    my $taken = 0;
    $taken += length $worker->reply($link)->{body} while $taken < $bytes;
    return $taken;
}

# A writer waits while the client is behind.
{
    my $id = $worker->ask('/write');
    is $worker->reply->{type}, 'h';
    is take(STREAM_WINDOW), STREAM_WINDOW, 'no more than the window';
    ok $worker->link->silent(0.1), 'then it waits';
    $worker->acknowledge($id, 1000);
    is take(1000), 1000, 'and sends what there is room for';
    $worker->acknowledge($id, 1_000_000);
    is take(1_000_000 - 1000 - STREAM_WINDOW), 1_000_000 - 1000 - STREAM_WINDOW;
    is $worker->reply->{type}, 'e';
    log_is('1 2 3 4 5 6 7 8 9 10');
}

# A client that has left.
for my $case ([ write => '1 2', undef ], [ guarded => "died: the client has left\n" ], [ endless => 'closed' ], [ polled => '' ]) {
    my ($name, $log) = @$case;
    my $id = $worker->ask("/$name");
    is $worker->reply->{type}, 'h';
    take(STREAM_WINDOW);
    $worker->give_up($id);
    is_deeply [ @{ $worker->reply }{qw(type id)} ], [ 'e', $id ], "$name: ends when the client has left";
    log_is($log, "$name: sees it");
}
unlike $front->log_text, qr/\S/, 'and nothing of it is logged';

# One that has left a stream which is not behind.
for my $method (qw(GET HEAD)) {
    my $id = $worker->ask('/ticks', REQUEST_METHOD => $method);
    is $worker->reply->{type}, 'h';
    $worker->give_up($id);
    my $reply;
    do { $reply = $worker->reply } while $reply->{type} eq 'd';
    is_deeply [ @$reply{qw(type id)} ], [ 'e', $id ], "$method: ends when the client has left";
    log_is('told', "$method: the next write says it");
}

# Files whose sizes are not true are read.
like $worker->stream('/proc')->{body}, qr/^State:/m, 'a file of /proc';

# A delayed response has hints, too.
{
    $worker->ask('/hints');
    is_deeply [ map { $worker->reply->{type} } 1 .. 2 ], [qw(i r)], 'a hint before a delayed response';
}

# What leaves the application by the wrong door.
for my $name (qw(next last)) {
    is $worker->get("/$name")->{status}, 500, "$name outside of a loop";
    ok $front->logged(qr{GET /$name: the application was left by a `next` or `last`}), 'it is logged';
}
for my $name (qw(dying_child delayed_child)) {
    my $go = join '', map { ($worker->request_frame($_))[1] } "/$name", '/name?behind';
    $worker->link->send_raw($go);
    is_deeply [ map { $worker->reply->{body} } 1 .. 2 ], [ 255, 'behind' ], "$name ends";
    log_is('behind', 'and does not do what waits behind its request');
}
{
    my $both = join '', map { ($worker->request_frame($_))[1] } '/writing_child', '/name?behind';
    $worker->link->send_raw($both);
    my @replies = map { $worker->reply } 1 .. 4;
    is join('', map { $_->{type} } @replies), 'hder', 'a child that writes takes nothing of its parent';
    is_deeply [ map { $_->{body} } @replies[ 1, 3 ] ], [qw(parent behind)];
    log_is('behind');
}
is $worker->get('/child')->{body}, 0, 'a child that returns has ended';
log_is('went on');

# A link that ends takes its requests along.
{
    my $doomed = $worker->connect('L');
    my (undef, $frame) = $worker->request_frame('/write');
    $doomed->send_raw($frame);
    is $worker->reply($doomed)->{type}, 'h';
    take(STREAM_WINDOW, $doomed);
    close $doomed->{handle};
    log_is('1 2', 'its request ended');
}
is $front->stop, 0;
done_testing;
