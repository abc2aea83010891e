# The tutorial's application for Starman: /block/MILLISECONDS, blocking, as it was written.

use strict;
use warnings;
use Time::HiRes qw(sleep);

sub {
    my ($env) = @_;
    if ($env->{PATH_INFO} =~ m{^/block/(\d{1,5})$}) {
        sleep($1 / 1000);
        return [200, ['Content-Type' => 'text/plain'], ["done\n"]];
    }
    return [200, ['Content-Type' => 'text/plain'], ["Hello, world!\n"]];
};
