# Perl's LWP and HTTP::Tiny over TLS, by IO::Socket::SSL, on one connection each.

use strict;
use warnings;

use Digest::SHA 'sha256_hex';
use HTTP::Tiny;
use LWP::UserAgent;

my ($base, $roots) = @ARGV;
my $body = substr(join('', map { chr } 0 .. 250) x 20_000, 0, 5_000_000);
my $sum = sha256_hex($body);

# Long bodies both ways; `chunks` says whether this client can send a body in chunks.
sub visit {
    my ($get, $post) = @_;
    for (1 .. 3) {
        my $hello = $get->("$base/hello");
        die "/hello: $hello" if $hello ne "Hello, world!\n";
    }
    for my $chunked (0, 1) {
        my $receipt = $post->("$base/upload", $chunked);
        die "/upload: $receipt" if $receipt !~ /"sha256":"$sum"/;
    }
    my $length = length $get->("$base/bytes/20000000");
    die "/bytes: $length" if $length != 20_000_000;
}

# Brings the body part by part.
sub parts {
    my $sent = 0;
    return sub {
        my $part = substr $body, $sent, 100_000;
        $sent += length $part;
        return length $part ? $part : undef;
    };
}

my %trust = (SSL_ca_file => $roots);
my $agent = LWP::UserAgent->new(timeout => 60, keep_alive => 1, ssl_opts => \%trust);
my $content = sub {
    my $response = shift;
    die $response->status_line if !$response->is_success;
    return $response->content;
};
visit(
    sub { $content->($agent->get(shift)) },
    sub {
        my ($url, $chunked) = @_;
        my $parts = parts();
        my $sent = $chunked ? sub { $parts->() // '' } : $body;
        my $length = $chunked ? [] : ['Content-Length' => length $body];
        $content->($agent->request(HTTP::Request->new(POST => $url, $length, $sent)));
    },
);

my $tiny = HTTP::Tiny->new(timeout => 60, verify_SSL => 1, SSL_options => \%trust);
my $said = sub {
    my $response = shift;
    die "$response->{status} $response->{content}" if !$response->{success};
    return $response->{content};
};
visit(
    sub { $said->($tiny->get(shift)) },
    sub {
        my ($url, $chunked) = @_;
        $said->($tiny->post($url, { content => $chunked ? parts() : $body }));
    },
);
