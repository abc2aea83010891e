use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";
use File::Temp qw(tempdir);
use Front;
use Test::More;

my $dir   = tempdir(CLEANUP => 1);
my $hello = "sub { [ 200, [], [ 'hello' ] ] }";

# The errors of an application that cannot be loaded, from a worker and from a zygote that preloads.
for my $case (
    [ 'no file',      undef,                          qr/\A\S+app.psgi: no such file\n\z/ ],
    [ 'syntax error', "use strict;\n\$x = 1;\n",      qr/Global symbol "\$x" requires .* at \S+app\.psgi line 2/ ],
    [ 'dies',         "die qq(no database\\n)",       qr/\Ano database\n\z/ ],
    [ 'no module',    'use No::Such::Module;',        qr{Can't locate No/Such/Module\.pm in \@INC} ],
    [ 'a string',     "'text'",                       qr/\A\S+app\.psgi returned "text", not a code reference; its last statement must be the application\n\z/ ],
    [ 'undef',        'undef',                        qr/app\.psgi returned undef, not a code reference/ ],
    [ 'a hash',       '+{}',                          qr/app\.psgi returned a reference to HASH, not a code reference/ ],
) {
    my ($name, $source, $message) = @$case;
    my $front  = Front->start(source => $source);
    my $worker = $front->worker;
    is $worker->{response_type}, 'X', "$name: the worker says so";
    like $worker->{mode}, $message;
    is_deeply [ $front->{zygote}->next ], [ 'e', pack 'NN', 1, 2 << 8 ], 'and ends with status 2';

    my $preloading = Front->start(source => $source, arguments => ['--preload']);
    my ($type, $text) = $preloading->{zygote}->next;
    is $type, 'X', "$name: the zygote says so";
    like $text, $message;
    is $preloading->stop, 2;
}

sub body_of {
    my (%of) = @_;
    my $front  = Front->start(%of);
    my $worker = $front->worker;
    is $worker->{response_type}, 'R' or diag $worker->{mode};
    return $worker->get('/')->{body};
}

is body_of(source => "package Some; sub new { bless {} } sub to_app { $hello } package main; Some->new"), 'hello', 'to_app';
is body_of(source => "package Over; use overload '&{}' => sub { $hello }; package main; bless {}, 'Over'"), 'hello', '&{}';
is body_of(source => "bless $hello, 'Blessed'"), 'hello', 'blessed code';

mkdir "$dir/lib";
Front::write_file("$dir/lib/Named.pm", 'package Named; sub import { $Named::Got = "@_" } sub app { my $g = $Named::Got; sub { [ 200, [], [ $g ] ] } } 1;');
is body_of(source => 'Named->app', arguments => [ '-I', "$dir/lib", '-M', 'Named=a,b' ]), 'Named a b', '-I and -M';
is body_of(source => 'Named::app()', arguments => [ '-I', "$dir/lib", '-M', 'Named', '--preload' ]), 'Named', '-M and --preload';
for my $module ('No::Such', 'Named; die') {
    my ($type, $text) = Front->start(source => $hello, arguments => [ '-M', $module ])->{zygote}->next;
    is $type, 'X';
    like $text, qr/\A-M \Q$module\E: /;
}

is body_of(source => "my \$pid = \$\$; sub { [ 200, [], [ \$pid == getppid() ? 'parent' : 'self' ] ] }", arguments => ['--preload']), 'parent', '--preload loads before the fork';
is body_of(source => "my \$pid = \$\$; sub { [ 200, [], [ \$pid == \$\$ ? 'self' : 'parent' ] ] }"), 'self', 'else each worker loads';

# Twiggy's applications use AnyEvent without loading it.
SKIP: {
    eval { require AnyEvent } or skip 'AnyEvent is not installed', 1;
    my $front = Front->start(source => 'my $used = sub { AnyEvent->timer }; sub { [ 200, [], [ 1 ] ] }');
    isnt $front->worker->{mode}, 'blocking', 'a mention of AnyEvent loads it';
    is(Front->start(source => $hello)->worker->{mode}, 'blocking');
}

SKIP: {
    eval { require Plack::Middleware::Lint } or skip 'Plack is not installed', 3;
    my $odd = Front->start(source => 'sub { [ 99, [], [] ] }', arguments => [ '--env', 'development' ]);
    my $reply = $odd->worker->get('/', HTTP_ACCEPT => 'text/html');
    is $reply->{status}, 500;
    like $reply->{body}, qr/status code/i, 'development shows what Lint says';
    my $worker = Front->start(source => 'sub { sub { my $w = $_[0]->([ 200, [ "Content-Type" => "text/plain" ] ]); $w->write("fine"); $w->close } }',
        arguments => [ '--env', 'development' ])->worker;
    is $worker->stream('/', rest => 'body')->{body}, 'fine', 'and has nothing to say of a right one';
}

# A worker whose front has gone before it was ready ends with its zygote.
{
    my $front  = Front->start(source => $hello);
    my $worker = $front->worker;
    $front->{zygote}->send('F', pack 'N', 77);
    my (undef, $payload) = $front->{zygote}->next('f');
    my (undef, $pid) = unpack 'NN', $payload;
    $front->stop;
    my $ended;
    for (1 .. 500) { last if $ended = !-e "/proc/$pid/cmdline" || !length Front::slurp("/proc/$pid/cmdline"); select undef, undef, undef, 0.01 }
    ok $ended, 'a worker that nobody has connected to ends with the zygote';
}
done_testing;
