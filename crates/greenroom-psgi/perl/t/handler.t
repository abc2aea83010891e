use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";
use File::Temp qw(tempdir);
use Front;
use Test::More;

# plackup -s Greenroom, with a small front in the place of the program.

eval { require Plack::Runner } or plan skip_all => 'Plack is not installed';
my $dir = tempdir(CLEANUP => 1);
my $lib = "$FindBin::Bin/../lib";

my $program = Front::write_file("$dir/greenroom", <<"FRONT");
#!$^X
use strict; use warnings;
use lib '$lib', '$FindBin::Bin/lib';
use Front; use POSIX ();
\$SIG{TERM} = sub { say_it('told to end'); POSIX::_exit(7) };
\$SIG{HUP}  = sub { say_it('told to reload') };
sub say_it { syswrite STDOUT, "\@_\\n" }
say_it('arguments', \@ARGV);
my (undef, undef, \$dir) = \@ARGV;
open my \$channel, '+<&', \\*STDIN or die;
my \$front = bless { dir => \$dir, key => 0, zygote => Front::Channel->new(\$channel) }, 'Front';
my \$worker = \$front->worker;
say_it('mode', \$worker->{mode}, 'says', \$worker->get('/')->{body}, 'child of', getppid());
sleep 1 while 1;
FRONT
chmod 0755, $program;
Front::write_file("$dir/app.psgi", 'my $pid = $$; sub { AnyEvent->can("now") ; [ 200, [], [ "hello of $pid" ] ] }');

sub plackup {
    my ($app, @arguments) = @_;
    my $pid = open my $output, '-|';
    if (!$pid) {
        open STDERR, '>&', \*STDOUT;
        exec $^X, "-I$lib", '-MPlack::Runner', '-e',
            'my $r = Plack::Runner->new; $r->parse_options(@ARGV); $r->run', '--', qw(-s Greenroom -E deployment), @arguments, $app;
    }
    return ($pid, $output);
}

sub line_of {
    my ($output) = @_;
    my $line = <$output>;
    return defined $line ? $line =~ s/\n\z//r : 'the end';
}

local $ENV{GREENROOM} = $program;
my ($pid, $output) = plackup("$dir/app.psgi", '--listen', 'localhost:5001', '--listen', '/a.sock', '--workers', 3,
    '--timeout', 30, '--max-rss', '1GiB', '--access-log', '/dev/null');
like line_of($output), qr{^arguments serve --attach \S+ --listen localhost:5001 --listen /a\.sock --max-rss 1GiB --timeout 30s --workers 3$};
my $event = eval { require AnyEvent; 1 };
like line_of($output), $event ? qr/^mode (?:EV|AnyEvent) says hello of $pid child of $pid$/ : qr/^mode blocking says hello of $pid child/;
kill HUP => $pid;
is line_of($output), 'told to reload', 'SIGHUP is passed on';
kill TERM => $pid;
is line_of($output), 'told to end', 'SIGTERM is passed on';
close $output;
is $? >> 8, 7, 'its status is ours';

use_ok 'Plack::Handler::Greenroom';
sub arguments { return join ' ', Plack::Handler::Greenroom->new(@_)->arguments }
is arguments(), '--listen :5000';
is arguments(host => '127.0.0.1', port => 80), '--listen 127.0.0.1:80';
is arguments(socket => '/x.sock', queue_max => 9, queue_wait_max => '2s', access_log => 'off'),
    '--listen /x.sock --worker-queue-max 9 --worker-queue-wait-max 2s --no-access-log';

is arguments(max_workers => 7, max_reqs_per_child => 9, keepalive_timeout => 3, read_timeout => '4s', backlog => 128,
    pid => 'a.pid', error_log => 'b.log', preload_app => 1, host => 'localhost'),
    '--listen localhost:5000 --backlog 128 --error-log b.log --head-timeout 4s --keep-alive-timeout 3s '
    . '--max-requests 9 --pid a.pid --workers 7', 'what other servers call otherwise';
is arguments(max_workers => 7, workers => 8), '--listen :5000 --workers 8';
is arguments(drain_grace => 2, response_rate_min => '2kB', address_connections_max => 9, memory_max => '1GiB'),
    '--listen :5000 --address-connections-max 9 --drain-grace 2s --memory-max 1GiB --response-rate-min 2kB';
is arguments(proxy_protocol => 1), '--listen :5000 --proxy-protocol', 'a flag without a value';
is arguments(proxy_protocol => ''), '--listen :5000', 'and --disable-proxy-protocol';

is arguments(ssl_cert => 'c.pem', ssl_key_file => 'k.pem', enable_ssl => 1),
    '--listen :5000 --cert c.pem --key k.pem', 'Starman\'s names for TLS';
is arguments(listen => [qw(:443:ssl localhost:80)], cert => 'c.pem', key => 'k.pem'),
    '--listen :443 --listen-plain localhost:80 --cert c.pem --key k.pem', 'and its addresses';

# Each flag of the program is one of the handler.
my %value = %{ { %Plack::Handler::Greenroom::Flags::VALUE } };
cmp_ok keys %value, '>', 30;
for my $flag (sort keys %value) {
    my $said = $value{$flag} eq '' ? '' : $value{$flag} eq 'TIME' ? ' 7s' : ' 7';
    is arguments($flag =~ tr/-/_/r => 7), "--listen :5000 --$flag$said";
    is check($flag =~ tr/-/_/r => 7), '', "$flag is known";
}

# Returns the message with which check dies, or else its warnings.
sub check {
    my @options = @_;
    my $said = '';
    local *STDERR;
    open STDERR, '>', \$said or die $!;
    return eval { Plack::Handler::Greenroom->new(@options)->check; 1 } ? $said : $@;
}
for my $unsafe (qw(user group uid chroot daemonize ssl_ciphers tls_key net_server_chroot)) {
    my $flag = '--' . $unsafe =~ tr/_/-/r;
    like check($unsafe => 'www-data'), qr/^$flag is not offered by plackup -s Greenroom: /, "$flag is refused";
}
{
    local $ENV{GREENROOM_USER} = 'nobody';
    like check(), qr/^GREENROOM_USER is not offered /, 'the front alone must not change its user';
}
like check(listen => [':443:ssl']), qr/^--listen :443:ssl needs a certificate: .* --cert/;
like check(enable_ssl => 1), qr/^--enable-ssl needs a certificate: /;
is check(enable_ssl => 1, ssl_cert => 'c.pem', ssl_key => 'k.pem', listen => [':443:ssl']), '';
like check(spawn_interval => 3), qr/^greenroom: --spawn-interval has no effect: .* does not know it\n\z/;
like check(keepalive => ''), qr/^greenroom: --disable-keepalive has no effect: /;
is check(user => undef, ssl => '', workers => 3, max_workers => 4, preload_app => 1, server_ready => sub { }, port => 80), '';

{
    local $ENV{SERVER_STARTER_PORT} = '5000=3;127.0.0.1:80=14;/a=b.sock=5';
    is_deeply Plack::Handler::Greenroom::passed_on(), [3, 14, 5];
    is arguments(port => 80, listen => [':80'], workers => 2), '--workers 2', 'passed on sockets take the place of addresses';
    local $ENV{SERVER_STARTER_PORT} = '';
    is_deeply Plack::Handler::Greenroom::passed_on(), [], 'what is wrong the program says';
}
{
    local @ENV{qw(LISTEN_PID LISTEN_FDS)} = ($$, 2);
    is_deeply Plack::Handler::Greenroom::passed_on(), [3, 4];
    is arguments(port => 80), '';
    local $ENV{LISTEN_PID} = $$ + 1;
    is Plack::Handler::Greenroom::passed_on(), undef, 'sockets for another process';
}

$ENV{GREENROOM} = "$dir/absent";
(undef, $output) = plackup("$dir/app.psgi");
is line_of($output), "GREENROOM=$dir/absent: no such program";
delete $ENV{GREENROOM};
$ENV{PATH} = $dir . '/nothing';
(undef, $output) = plackup("$dir/app.psgi");
like line_of($output), qr/^the program greenroom is not in PATH; .* GREENROOM/;
done_testing;
