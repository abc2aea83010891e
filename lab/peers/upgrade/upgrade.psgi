# The application of the servers for Perl: as small as the others', and in the same paths.
use strict;
use warnings;

my $chunk = substr join('', 'a' .. 'z', "\n") x 2428, 0, 65536;
my @text = ('Content-Type' => 'text/plain');

sub download {
    my ($left) = @_;
    return sub {
        my ($respond) = @_;
        my $writer = $respond->([200, [@text, 'Content-Length' => $left]]);
        while ($left > 0) {
            my $piece = $left < length $chunk ? substr($chunk, 0, $left) : $chunk;
            $writer->write($piece);
            $left -= length $piece;
        }
        $writer->close;
    };
}

sub upload {
    my ($env) = @_;
    my $bytes = 0;
    while (my $read = $env->{'psgi.input'}->read(my $piece, 65536)) {
        $bytes += $read;
    }
    my $body = "{\"bytes\":$bytes}";
    return [200, [@text, 'Content-Length' => length $body], [$body]];
}

sub {
    my ($env) = @_;
    my $path = $env->{PATH_INFO};
    return [200, [@text, 'Content-Length' => 14], ["Hello, world!\n"]] if $path eq '/hello';
    return upload($env) if $path eq '/upload';
    return download($1) if $path =~ m{\A/bytes/([0-9]{1,10})\z};
    return [404, [@text], ["Not here.\n"]];
}
