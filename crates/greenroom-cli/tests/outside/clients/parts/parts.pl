# Perl's LWP and HTTP::Tiny, reading a response part by part.

use strict;
use warnings;

use HTTP::Tiny;
use LWP::UserAgent;

my ($base, @lengths) = @ARGV;

# What takes the pieces of a response, and what sees to it that they were all.
sub reader {
    my ($number, $found) = (0, '');
    my $take = sub {
        $found .= shift;
        return if $number < @lengths && length $found < $lengths[$number];
        die "too much after part $number" if $number == @lengths;
        die "part $number is another" if $found ne chr(ord('a') + $number) x $lengths[$number];
        HTTP::Tiny->new(timeout => 20)->get("$base/next")->{success} or die "no /next";
        ($number, $found) = ($number + 1, '');
    };
    return ($take, sub { die "only $number parts" if $number < @lengths || length $found });
}

my ($take, $end) = reader();
my $agent = LWP::UserAgent->new(timeout => 20);
my $response = $agent->get("$base/parts", ':content_cb' => sub { $take->(shift) });
die $response->header('X-Died') if $response->header('X-Died');
die $response->status_line if !$response->is_success;
$end->();

($take, $end) = reader();
my $tiny = HTTP::Tiny->new(timeout => 20);
my $said = $tiny->get("$base/parts", { data_callback => sub { $take->(shift) } });
die "$said->{status} $said->{content}" if !$said->{success};
$end->();
