# An application in a stack of Plack's middleware: files, a session, and compressed responses.
use strict;
use warnings;

use File::Basename qw(dirname);
use Plack::Builder;

my $app = sub {
    my ($env) = @_;
    my $visits = ++$env->{'psgix.session'}{visits};
    return [ 200, [ 'Content-Type' => 'text/plain' ], [ "Visit $visits\n", "More text, so that it is worth compressing.\n" x 100 ] ];
};

builder {
    enable 'Deflater', content_type => ['text/plain'];
    enable 'Static', path => sub { s{^/source/}{} }, root => dirname(__FILE__);
    enable 'Session';
    $app;
};
