use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";
use Digest::SHA qw(sha256_hex);
use Front;
use Test::More;

my $examples = "$FindBin::Bin/../../../../examples/psgi";
plan skip_all => 'the examples are not here' if !-d $examples;

# Runs a check on an example if the modules it needs are there.
sub example {
    my ($name, $modules, $check) = @_;
    SKIP: {
        eval "require $_; 1" or skip "$name: $_ is not installed", 1 for @$modules;
        subtest $name => sub {
            my $front  = Front->start(file => "$examples/$name.psgi");
            my $worker = $front->worker;
            is $worker->{response_type}, 'R' or diag $worker->{mode};
            $check->($worker);
            is $front->log_text, '', 'nothing is complained of';
        };
    }
    return;
}

example(hello => [], sub { is $_[0]->get('/')->{body}, "Hello world\n" });

my @ask_for_two = ('/?field=%3Cb%3E', REQUEST_METHOD => 'GET');

example(echo_async => [qw(AnyEvent Plack::Request)], sub {
    my ($worker) = @_;
    like $worker->get('/')->{body}, qr/<form>/;
    $worker->ask(@ask_for_two) for 1 .. 20;
    my @replies = map { $worker->reply } 1 .. 40;
    my @bodies = map { $_->{body} } grep { $_->{type} eq 'r' } @replies;
    is @bodies, 20, 'all wait at once';
    like $_, qr/You said: &lt;b&gt;<br>/ for $bodies[0];
});

example(echo_blocking => ['Plack::Request'], sub {
    my ($worker) = @_;
    is $worker->{mode}, 'blocking';
    like $worker->get('/')->{body}, qr/<form>/;
    my $reply = $worker->get(@ask_for_two);
    like $reply->{body}, qr/You said: &lt;b&gt;<br>/;
    ok $reply->{busy} > 1_000_000, 'it is busy while it sleeps';
});

example(stack => [qw(Plack::Middleware::Session Plack::Middleware::Deflater)], sub {
    my ($worker) = @_;
    my $first  = $worker->get('/');
    my ($id)   = "@{ $first->{headers} }" =~ /plack_session=(\w+)/;
    like $first->{body}, qr/^Visit 1$/m;
    like $worker->get('/', HTTP_COOKIE => "plack_session=$id")->{body}, qr/^Visit 2$/m, 'a session';
    my $compressed = $worker->stream('/', HTTP_ACCEPT_ENCODING => 'gzip');
    like "@{ $compressed->{headers} }", qr/Content-Encoding gzip/;
    require IO::Uncompress::Gunzip;
    IO::Uncompress::Gunzip::gunzip(\$compressed->{body} => \my $text);
    like $text, qr/^More text/m, 'compressed';
    is $worker->get('/source/hello.psgi')->{type}, 's', 'a file';
});

example(mojo => ['Mojolicious'], sub {
    my ($worker) = @_;
    is $worker->stream('/')->{body}, "Hello from Mojolicious\n";
    is $worker->stream('/hello/you')->{body}, '{"hello":"you"}';
    is $worker->stream('/absent')->{status}, 404;
});

example(upload => [], sub {
    my ($worker) = @_;
    is $worker->get('/', rest => 'abc', REQUEST_METHOD => 'POST')->{body}, '3 bytes, SHA-256 ' . sha256_hex('abc') . "\n";
    is $worker->get('/')->{body}, '0 bytes, SHA-256 ' . sha256_hex('') . "\n";
});

example(sse => ['AnyEvent'], sub {
    my ($worker) = @_;
    my $id = $worker->ask('/');
    is join('', map { $_->{type} } sort { $b->{type} cmp $a->{type} } $worker->reply, $worker->reply), 'wh';
    like $worker->reply->{body}, qr/^data: .*\n\n\z/;
    $worker->give_up($id);
    my $last;
    do { $last = $worker->reply } while $last->{type} eq 'd';
    is $last->{type}, 'e', 'it ends when the client leaves';
});

sub masked {
    my ($opcode, $text) = @_;
    my $length = length $text;
    return pack($length < 126 ? 'CC' : 'CCn', 128 | $opcode, 128 | ($length < 126 ? $length : 126), $length < 126 ? () : $length)
        . "\1\2\3\4" . ($text ^ substr "\1\2\3\4" x ($length / 4 + 1), 0, $length);
}

example(websocket => ['AnyEvent'], sub {
    my ($worker) = @_;
    is $worker->get('/')->{status}, 426;
    my $io = $worker->connect('I', pack 'N', 5);
    # The key and its response are those of RFC 6455, section 1.3.
    $worker->ask('/', kind => 2, rest => pack('N', 5), HTTP_UPGRADE => 'websocket', HTTP_SEC_WEBSOCKET_KEY => 'dGhlIHNhbXBsZSBub25jZQ==');
    like $worker->reply->{type}, qr/[we]/;
    my $expect = sub {
        my ($bytes, $name) = @_;
        while (length $io->{in} < length $bytes) { $io->fill(5) or last }
        ok substr($io->{in}, 0, length $bytes, '') eq $bytes, $name;
    };
    $expect->("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        . "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n", 'the handshake');
    my $bytes = masked(1, 'hello') . masked(9, 'ping') . masked(2, 'b' x 1000);
    $io->send_raw($_) for map { substr $bytes, $_ * 10, 10 } 0 .. length($bytes) / 10;
    $expect->("\x81\5hello\x8a\4ping\x82\x7e\3\xe8" . 'b' x 1000, 'echoes');
    my $many = masked(1, 'm' x 60_000) x 100;
    my $sender = fork;
    if (!$sender) { $io->send_raw($many); require POSIX; POSIX::_exit(0) }
    my $echo = "\x81\x7e" . pack('n', 60_000) . 'm' x 60_000;
    $expect->($echo x 100, 'more than its socket takes');
    waitpid $sender, 0;
    $io->send_raw(masked(8, pack 'n', 1000));
    $expect->("\x88\2" . pack('n', 1000), 'the end');
    is $io->fill(5), 0;
});
done_testing;
