# Says what it is told, two seconds later, without keeping anybody else waiting: one process has
# hundreds of such requests under way. Runs under Twiggy, too, which has AnyEvent loaded.
use strict;
use warnings;

use Plack::Request;

my $FORM = <<'HTML';
<!doctype html>
<title>Echo</title>
<form>
  <input name="field">
  <input type="submit" value="Echo">
</form>
<hr>
HTML

my %ESCAPED = ('&' => '&amp;', '<' => '&lt;', '>' => '&gt;', '"' => '&quot;', "'" => '&#39;');

my $app = sub {
    my ($env) = @_;
    my $field = Plack::Request->new($env)->param('field');
    return page($FORM) if !$field;

    return sub {
        my ($respond) = @_;
        my $timer;
        $timer = AnyEvent->timer(
            after => 2,
            cb    => sub {
                undef $timer;
                $respond->(page($FORM . 'You said: ' . escaped($field) . '<br>'));
            },
        );
    };
};

sub page {
    my ($html) = @_;
    return [ 200, [ 'Content-Type' => 'text/html; charset=utf-8' ], [$html] ];
}

# Without it, whoever makes somebody follow a link could run a script in this page.
sub escaped {
    my ($text) = @_;
    $text =~ s/([&<>"'])/$ESCAPED{$1}/g;
    return $text;
}

$app;
