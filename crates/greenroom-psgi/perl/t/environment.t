use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";
use Front;
use Test::More;

my $source = <<'APP';
use strict; use warnings;
use FindBin;
my @loaded = ($0, __FILE__, $FindBin::Bin, $ENV{PLACK_ENV}, scalar @ARGV, __PACKAGE__);
sub show { [ 200, [], [ join "\n", @_ ] ] }
sub read_all { my $in = shift; my ($all, $piece) = ('', ''); $all .= $piece while $in->read($piece, 1000); $all }
my %response = (
    env => sub { my $env = shift; show(map { "$_=" . (defined $env->{$_} ? $env->{$_} : 'undef') } sort keys %$env) },
    loaded => sub { show(@loaded) },
    version => sub { show(@{ $_[0]{'psgi.version'} }) },
    echo => sub { my $in = $_[0]{'psgi.input'}; my $once = read_all($in); seek $in, 0, 0; my $again = do { local $/; <$in> };
        show($once, defined $again ? $again : '', ref $in) },
    close_input => sub { close $_[0]{'psgi.input'}; show('closed') },
    errors => sub { $_[0]{'psgi.errors'}->print("to the log\n"); print "standard output\n"; show(defined(my $line = <STDIN>) ? 'line' : 'end') },
    random => sub { show(rand) },
    process => sub { open my $f, '<', "/proc/$$/cmdline"; local $/; my $n = <$f>; $n =~ s/\0.*//s; show($n) },
    signals => sub { show(map { $SIG{$_} || 'DEFAULT' } qw(INT TERM PIPE CHLD)) },
    io => sub { my $io = $_[0]{'psgix.io'} or return show('none'); my $line = <$io>; print {$io} "raw: $line"; $io->flush; sub { } },
    cleanup => sub { my $env = shift; push @{ $env->{'psgix.cleanup.handlers'} }, sub { warn "cleanup of $_[0]{PATH_INFO}\n" }, sub { die "cleanup died\n" }, sub { warn "cleanup went on\n" }; show('clean') },
    harakiri => sub { $_[0]{'psgix.harakiri.commit'} = 1; show('harakiri') },
    leave => sub { exit 3 },
);
sub { my $env = shift; my ($name) = $env->{PATH_INFO} =~ m{/(.*)}; $response{$name}->($env) };
APP
my $front  = Front->start(source => $source, arguments => [ '--env', 'deployment', '--multiprocess' ]);
my $worker = $front->worker;

my $body = $worker->get('/env?a=b', CONTENT_TYPE => 'text/x', HTTP_EMPTY => '')->{body};
like $body, qr/^$_$/m, $_ for (
    'REQUEST_METHOD=GET', 'PATH_INFO=/env', 'QUERY_STRING=a=b', 'SCRIPT_NAME=', 'HTTP_EMPTY=', 'CONTENT_TYPE=text/x',
    'psgi.url_scheme=http', 'psgi.multithread=', 'psgi.multiprocess=1', 'psgi.run_once=', 'psgi.streaming=1',
    'psgi.nonblocking=', 'psgix.input.buffered=1', 'psgix.harakiri=1', 'psgix.cleanup=1',
    'psgix.cleanup.handlers=ARRAY.*', 'psgix.informational=CODE.*', 'psgi.errors=\*main::STDERR',
);
unlike $body, qr/psgix\.io/;
unlike $worker->get('/env', SERVER_PROTOCOL => 'HTTP/1.0')->{body}, qr/informational/, 'HTTP/1.0 knows no 103';
is $worker->get('/version')->{body}, "1\n1";

my $file = "$front->{dir}/app.psgi";
my ($zero, $source_file, $bin, $env, $arguments, $package) = split /\n/, $worker->get('/loaded')->{body};
is_deeply [ $zero, $source_file, $bin, $env, $arguments ], [ $file, $file, $front->{dir}, 'deployment', 0 ], 'loaded as by plackup';
is $worker->get('/process')->{body}, "greenroom worker 1: $file", 'its name for ps';
like $worker->get('/signals')->{body}, qr/\AIGNORE\nCODE\(\w+\)\nIGNORE\nDEFAULT\z/, 'a signal to all processes ends no worker';

is $worker->get('/echo', rest => "in\0memory\n")->{body}, "in\0memory\n\nin\0memory\n\nGLOB";
is $worker->get('/echo')->{body}, "\n\nGLOB", 'no body';
is $worker->get('/close_input')->{body}, 'closed';
is $worker->get('/echo')->{body}, "\n\nGLOB", 'whoever closes it closes it for himself';
my $spilled = Front::write_file("$front->{dir}/body", 'x' x 3000);
is $worker->get('/echo', kind => 1, rest => $spilled)->{body}, ('x' x 3000) . "\n" . ('x' x 3000) . "\nGLOB", 'a body in a file';
is $worker->get('/echo', kind => 1, rest => "$front->{dir}/absent")->{status}, 500, 'a body that is not there';

is $worker->get('/errors')->{body}, 'end', 'standard input is empty';
ok $front->logged(qr/^to the log$/m), 'it is logged';
ok $front->logged(qr/^standard output$/m), 'it is logged';

my $other = $front->worker;
isnt $worker->get('/random')->{body}, $other->get('/random')->{body}, 'workers have random numbers of their own';

# psgix.io: connections that come meanwhile are kept.
{
    my @io = map { $worker->connect('I', pack 'N', $_) } 1, 2;
    my $second_link = $worker->connect('L');
    $io[1]->send_raw("two\n");
    my $id = $worker->ask('/io', kind => 2, rest => pack 'N', 2);
    is_deeply [ @{ $worker->reply }{qw(type id)} ], [ 'e', $id ], 'a response over the io connection needs no other';
    $io[1]->fill(5);
    is $io[1]{in}, "raw: two\n";
    is $io[1]->fill(5), 0, 'it ends with the request';
    $io[0]->send_raw("one\n");
    $worker->ask('/io', kind => 2, rest => pack 'N', 1);
    $io[0]->fill(5);
    is $io[0]{in}, "raw: one\n", 'the one that came first was kept';
    $worker->reply;
    my ($frame_id, $frame) = $worker->request_frame('/version');
    $second_link->send_raw($frame);
    is $worker->reply($second_link)->{body}, "1\n1", 'and so was the link';
}

is $worker->get('/cleanup')->{body}, 'clean';
is $worker->get('/version')->{type}, 'r';
ok $front->logged(qr{^cleanup of /cleanup\ncleanup went on$}m), 'they write to the log';
ok $front->logged(qr{^ERROR GET /cleanup: a cleanup handler: cleanup died$}m), 'it is logged as an error';

is $worker->get('/harakiri')->{body}, 'harakiri';
is(($worker->{control}->next)[0], 'H', 'it asks for its end');
$worker->{control}->send('Q');
is_deeply [ $front->{zygote}->next ], [ 'e', pack 'NN', 1, 0 ], 'Q ends it';

$other->ask('/leave');
is_deeply [ $front->{zygote}->next ], [ 'e', pack 'NN', 2, 3 << 8 ], 'exit is the will of the application';

my $third = $front->worker;
close $third->{control}{handle};
is_deeply [ $front->{zygote}->next ], [ 'e', pack 'NN', 3, 0 ], 'the end of control is its end';
my $killed = $front->worker;
kill KILL => $killed->{pid};
is_deeply [ $front->{zygote}->next ], [ 'e', pack 'NN', 4, 9 ], 'a killed one is told of';
ok !-e "$front->{dir}/worker-4.sock", 'its socket is gone';
is $front->stop, 0, 'the zygote ends when its channel does';
done_testing;
