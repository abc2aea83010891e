use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";
use Front;
use Test::More;

# Plack::Test::Suite with Lint: its applications run in a worker, its clients speak to them through
# the frames that the front would send for their requests.

eval { require Plack::Test::Suite; require Plack::Test; require HTTP::Message::PSGI; 1 }
    or plan skip_all => 'Plack is not installed';

my $app = <<'APP';
use Plack::Test::Suite;
use Plack::Middleware::Lint;
Plack::Middleware::Lint->wrap(Plack::Test::Suite->test_app_handler);
APP

for my $loop ('', 'use AnyEvent;') {
    my $front  = Front->start(source => "$loop $app");
    my $worker = $front->worker;
    my $index  = 0;
    diag $worker->{mode} if $worker->{response_type} ne 'R';
    Plack::Test::Suite->runtests(sub {
        my ($name, $client) = @_;
        my $number = $index++;
        subtest "$worker->{mode}: $name" => sub {
            $client->(sub { response_of($worker, $_[0], $number) });
        };
    });
}
done_testing;

sub response_of {
    my ($worker, $request, $number) = @_;
    my $env = HTTP::Message::PSGI::req_to_psgi($request);
    my %strings = map { $_ => $env->{$_} } grep { defined $env->{$_} && (/\A[A-Z]/ || $_ eq 'psgi.url_scheme') } keys %$env;
    my $body = do { local $/; readline $env->{'psgi.input'} };
    my $reply = $worker->stream($strings{REQUEST_URI}, %strings, HTTP_X_PLACK_TEST => $number, rest => $body // '');
    my $response = HTTP::Response->from_psgi([ @$reply{qw(status headers)}, [ $reply->{body} ] ]);
    $response->request($request);
    return $response;
}
