# Server-sent events: the time of day, every second, for as long as the client listens.
use strict;
use warnings;

use AnyEvent;

sub {
    return sub {
        my ($respond) = @_;
        my $writer = $respond->([ 200, [ 'Content-Type' => 'text/event-stream', 'Cache-Control' => 'no-store' ] ]);
        my $timer;
        $timer = AnyEvent->timer(
            interval => 1,
            cb       => sub {
                return if $writer->write('data: ' . localtime() . "\n\n");
                undef $timer;
                $writer->close;
            },
        );
    };
};
