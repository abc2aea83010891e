# Says what it is told, two seconds later, and its process does nothing else meanwhile: it takes as
# many workers as there are requests at once. Its sister, which does not block, is echo_async.psgi.
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

    sleep 2;
    return page($FORM . 'You said: ' . escaped($field) . '<br>');
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
