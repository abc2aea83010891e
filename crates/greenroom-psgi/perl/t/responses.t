use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";
use Front;
use Test::More;

# The frames of a blocking worker for every shape that PSGI allows, and for some that it does not.

my $front = Front->start(source => <<'APP');
use strict; use warnings;
package Lines { sub new { bless [@_[1..$#_]], $_[0] } sub getline { shift @{$_[0]} } sub close { warn "lines closed\n" } }
package Bomb { our @ISA = 'Lines'; sub getline { die "bomb\n" } }
package Touchy { use overload '""' => sub { die "touched\n" } }
package main;
my $file = __FILE__ . '.data';
open my $out, '>:raw', $file or die $!; print {$out} join '', map { chr($_ % 256) } 1 .. 300_000; close $out;
sub handle { open my $in, $_[0] || '<:raw', $file or die $!; return $in }
my $text = [ 'Content-Type' => 'text/plain' ];
my %response = (
    list        => sub { [ 200, $text, [ 'hel', 'lo' ] ] },
    nothing     => sub { [ 204, [], [] ] },
    repeated    => sub { [ 200, [ 'Set-Cookie' => 'a', 'Set-Cookie' => 'b' ], [ '' ] ] },
    upgraded    => sub { my $bytes = "caf\xe9"; utf8::upgrade($bytes); [ 200, [ 'X-A' => $bytes ], [ $bytes ] ] },
    wide        => sub { [ 200, $text, [ "\x{263a}" ] ] },
    long        => sub { [ 200, $text, [ ('0123456789') x 20_000 ] ] },
    file        => sub { [ 200, $text, handle() ] },
    rest        => sub { my $in = handle(); read $in, my $skipped, 100_000; [ 200, $text, $in ] },
    part        => sub { [ 200, [ 'Content-Length' => 10 ], handle() ] },
    past_end    => sub { my $in = handle(); seek $in, 0, 2; [ 200, $text, $in ] },
    layered     => sub { [ 200, $text, handle('<:crlf') ] },
    memory      => sub { open my $in, '<', \('m' x 100_000); [ 200, $text, $in ] },
    lines       => sub { [ 200, $text, Lines->new('one ', '', 'two ', 'three') ] },
    bomb        => sub { [ 200, $text, Bomb->new ] },
    delayed     => sub { sub { $_[0]->([ 201, $text, [ 'delayed' ] ]) } },
    delayed_file => sub { sub { $_[0]->([ 200, $text, handle() ]) } },
    writer      => sub { sub { my $w = $_[0]->([ 200, $text ]); $w->write($_) for 'a', 'b', 'c'; $w->close } },
    unclosed    => sub { sub { my $w = $_[0]->([ 200, $text ]); $w->write('a') } },
    wide_write  => sub { sub { my $w = $_[0]->([ 200, $text ]); $w->write("\x{263a}"); $w->close } },
    never       => sub { my ($env) = @_; sub { $env->{kept} = $_[0] } },
    twice       => sub { sub { $_[0]->([ 200, $text, [ $_ ] ]) for 'once', 'twice' } },
    dies_after  => sub { sub { my $w = $_[0]->([ 200, $text ]); $w->write('a'); die "halfway\n" } },
    polled      => sub { sub { my $w = $_[0]->([ 200, $text ]); my $n = 0;
                     $w->poll_cb(sub { my $w = shift; $w->write('p' x 100_000); $w->close if ++$n == 5 }) } },
    dies        => sub { die "broken on purpose\n" },
    dies_object => sub { die bless {}, 'Some::Error' },
    hash        => sub { {} },
    undef       => sub { undef },
    empty_list  => sub { return },
    short       => sub { [ 200 ] },
    bad_status  => sub { [ 'OK', [], [] ] },
    odd         => sub { [ 200, [ 'X-A' ], [] ] },
    nul         => sub { [ 200, [ 'X-A' => "a\0X-B\0b" ], [ '' ] ] },
    bad_body    => sub { [ 200, [], 'text' ] },
    overloaded  => sub { [ 200, $text, [ bless {}, 'Touchy' ] ] },
    no_handlers => sub { delete $_[0]{'psgix.cleanup.handlers'}; [ 200, $text, [ 'none' ] ] },
    inform      => sub { $_[0]{'psgix.informational'}->(103, [ Link => '</a.css>' ]); [ 200, $text, [ 'informed' ] ] },
);
sub { my $env = shift; my ($name) = $env->{PATH_INFO} =~ m{/(.*)}; $response{$name}->($env) };
APP

my $worker = $front->worker;
my $data = join '', map { chr($_ % 256) } 1 .. 300_000;
is $worker->{mode}, 'blocking', 'no event loop is found';

sub whole {
    my ($name, $status, $body, $headers) = @_;
    my $reply = $worker->get("/$name");
    is_deeply [ @$reply{qw(type id status body headers)} ],
        [ 'r', $worker->{id}, $status, $body, $headers || [ 'Content-Type' => 'text/plain' ] ], $name;
    return;
}

whole('list', 200, 'hello');
whole('nothing',  204, '', []);
whole('repeated', 200, '', [ 'Set-Cookie' => 'a', 'Set-Cookie' => 'b' ]);
whole('upgraded', 200, "caf\xe9", [ 'X-A' => "caf\xe9" ]);
whole('past_end', 200, '');
whole('delayed', 201, 'delayed');
whole('no_handlers', 200, 'none');
whole('twice', 200, 'once');
ok $front->logged(qr/GET \/twice: the responder was called twice/), 'it is logged';

for my $case (
    [ wide => qr/wide character/ ], [ never => qr/without a response, and no event loop/ ],
    [ overloaded => qr/GET \/overloaded: touched/ ],
    [ dies => qr/^ERROR GET \/dies: broken on purpose$/m ], [ dies_object => qr/Some::Error=HASH/ ],
    [ hash => qr/GET \/hash: malformed response: not an array reference/ ], [ undef => qr/GET \/undef: malformed response/ ],
    [ empty_list => qr/GET \/empty_list: malformed response/ ], [ short => qr/malformed response: 1 elements/ ],
    [ bad_status => qr/malformed status: "OK"/ ], [ odd => qr/GET \/odd: malformed headers/ ],
    [ nul => qr/GET \/nul: malformed headers/ ], [ bad_body => qr/malformed body/ ],
) {
    my ($name, $log) = @$case;
    whole($name, 500, 'Internal Server Error');
    ok $front->logged($log), "$name is explained";
}

# A file that the front opens: its descriptor has to stay until the front says so.
sub opened {
    my ($name, $offset, $length, $bytes) = @_;
    my $reply = $worker->get("/$name");
    is_deeply [ @$reply{qw(type status offset length)} ], [ 's', 200, $offset, $length ], "$name is for the front to send";
    my $path = "/proc/$worker->{pid}/fd/$reply->{descriptor}";
    open my $file, '<:raw', $path or return fail "$path: $!";
    $worker->link->send('O', pack 'N', $reply->{id});
    is $worker->get('/list')->{body}, 'hello';
    ok !-e $path, 'it is closed once the front has it';
    seek $file, $offset, 0;
    read $file, my ($read), $length;
    ok $read eq $bytes, "$name has the right bytes";
    return;
}

opened('long', 0, 200_000, '0123456789' x 20_000);
opened('file', 0, 300_000, $data);
opened('rest', 100_000, 200_000, substr $data, 100_000);
opened('part', 0, 10, substr $data, 0, 10);
opened('delayed_file', 0, 300_000, $data);

# A front that cannot open it gets it as a stream, while the worker goes on.
{
    my $id = $worker->get('/file')->{id};
    $worker->link->send('N', pack 'N', $id);
    my $body = '';
    while (length $body < 262_144) {
        my $reply = $worker->reply;
        is "$reply->{type}$reply->{id}", "d$id" if $reply->{type} ne 'd';
        $body .= $reply->{body};
    }
    is $worker->get('/list')->{body}, 'hello', 'others get their responses while a stream waits for its client';
    $worker->acknowledge($id, length $body);
    for (my $reply; ($reply = $worker->reply)->{type} eq "d";) { $body .= $reply->{body} }
    ok $body eq $data, 'and all came';
}

sub streamed {
    my ($name, $types, $body) = @_;
    my $whole = $worker->stream("/$name");
    like $whole->{types}, $types, "$name: frames";
    ok $whole->{body} eq $body, "$name: body" or diag length $whole->{body};
    return;
}

streamed('layered', qr/\Ahd+e\z/, $data =~ s/\r\n/\n/gr);
streamed('memory', qr/\Ahd+e\z/, 'm' x 100_000);
streamed('lines', qr/\Ahd+e\z/, 'one two three');
ok $front->logged(qr/lines closed/), 'the object was closed';
streamed('writer', qr/\Ahddde\z/, 'abc');
streamed('polled', qr/\Ahd+e\z/, 'p' x 500_000);
streamed('bomb', qr/\Ahx\z/, '');
ok $front->logged(qr/GET \/bomb: bomb/), 'it is logged';
ok $front->logged(qr/lines closed.*lines closed/s), 'the one that died was closed, too';
streamed('unclosed', qr/\Ahdx\z/, 'a');
ok $front->logged(qr/GET \/unclosed: broken off: the application returned without closing its writer/), 'it is logged';
streamed('wide_write', qr/\Ahx\z/, '');
ok $front->logged(qr/Wide character in write/), 'it is logged';
streamed('dies_after', qr/\Ahdx\z/, 'a');

my $id = $worker->ask('/inform');
my $first = $worker->reply;
is_deeply [ @$first{qw(type id status headers)} ], [ 'i', $id, 103, [ Link => '</a.css>' ] ];
is $worker->reply->{body}, 'informed';

for my $name (qw(list file lines memory long)) {
    my $reply = $worker->get("/$name", REQUEST_METHOD => 'HEAD');
    is_deeply [ @$reply{qw(type status body)} ], [ 'r', 200, '' ], "HEAD of $name";
}
is $worker->get('/part', REQUEST_METHOD => 'HEAD')->{headers}[1], 10, 'HEAD keeps Content-Length';
is $worker->stream('/writer', REQUEST_METHOD => 'HEAD')->{types}, 'he', 'HEAD of a stream';

is $front->stop, 0;
done_testing;
