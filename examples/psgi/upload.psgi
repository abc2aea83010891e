# Reads what is uploaded, however long it is, and responds with its length and SHA-256.
use strict;
use warnings;

use Digest::SHA;

use constant PIECE_BYTES => 65_536;

sub {
    my ($env)  = @_;
    my $input  = $env->{'psgi.input'};
    my $sha    = Digest::SHA->new(256);
    my $length = 0;
    while ($input->read(my $piece, PIECE_BYTES)) {
        $length += length $piece;
        $sha->add($piece);
    }
    return [ 200, [ 'Content-Type' => 'text/plain' ], [ "$length bytes, SHA-256 " . $sha->hexdigest . "\n" ] ];
};
