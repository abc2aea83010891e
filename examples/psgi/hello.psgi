# The least that an application can do.
use strict;
use warnings;

sub {
    return [ 200, [ 'Content-Type' => 'text/plain', 'Content-Length' => 12 ], ["Hello world\n"] ];
};
