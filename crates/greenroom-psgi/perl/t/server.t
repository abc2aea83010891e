use strict;
use warnings;

use Test::More;

# All of Plack::Test::Suite, within Lint, by HTTP against the program that GREENROOM names: it shows
# what suite.t, in which the test plays the front, cannot.

plan skip_all => 'GREENROOM does not name the program' if !$ENV{GREENROOM};
eval { require Plack::Test::Suite; require Plack::Loader; require AnyEvent; require LWP::UserAgent; 1 }
    or plan skip_all => 'Plack, AnyEvent or LWP is not installed';

for my $has_events (0, 1) {
    note $has_events ? 'driven by events' : 'blocking';
    Plack::Test::Suite->run_server_tests(sub {
        my ($port, $app) = @_;
        AnyEvent::detect() if $has_events;
        # Modules that are loaded so far must not count.
        delete @INC{ grep { /\A(?:AnyEvent|EV)\b/ } keys %INC } if !$has_events;
        my $server = Plack::Loader->load('Greenroom', host => '127.0.0.1', port => $port, workers => 2);
        $server->run(Plack::Middleware::Lint->wrap(driven_as_meant($app, $has_events)));
    });
}
done_testing;

# So that each test fails when the loop is not the one that was meant.
sub driven_as_meant {
    my ($app, $has_events) = @_;
    return sub {
        my ($env) = @_;
        die "psgi.nonblocking is wrong\n" if ($env->{'psgi.nonblocking'} ? 1 : 0) != $has_events;
        return $app->($env);
    };
}
