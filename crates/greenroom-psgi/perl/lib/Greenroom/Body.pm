package Greenroom::Body;

use strict;
use warnings;

use IO::Handle ();
use Scalar::Util qw(blessed reftype);

use Greenroom::Frame qw(WHOLE_BODY_MAX);

use constant PIECE_BYTES => 65_536;

sub send {
    my ($request, $status, $encoded, $headers, $body) = @_;
    if (ref $body eq 'ARRAY') {
        no warnings 'uninitialized';
        return $request->whole($status, $encoded, join '', @$body);
    }
    return $request->fail('malformed body: an array reference, a handle or an object with getline is needed')
        if !_is_source($body);
    return _send_file($request, $status, $encoded, $headers, $body) if _is_plain_file($body);
    $request->begin($status, $encoded);
    return pump($request, $body);
}

# A body longer than a frame goes into a file without a name. Without space for that, it is
# streamed.
sub send_long {
    my ($request, $status, $encoded, $body) = @_;
    local ($\, $,);    # an application may have set them
    my $file;
    if (open($file, '+>:raw', undef) && print({$file} $body) && $file->flush) {
        return $request->file($status, $encoded, $file, 0, length $body);
    }
    $request->begin($status, $encoded);
    open my $source, '<:raw', \$body or die "a body in memory: $!\n";
    return pump($request, $source);
}

# Sends piece after piece while the window allows it, and goes on when it does again.
sub pump {
    my ($request, $source) = @_;
    $request->{source} = $source;
    $request->poll_cb(sub { _send_pieces($request, $source) });
    $request->poll_to_the_end if $request->{waits};
    return;
}

sub _send_pieces {
    my ($request, $source) = @_;
    local $/ = \(PIECE_BYTES);
    while ($request->has_room) {
        my $piece = $source->getline;
        return $request->close if !defined $piece;
        return if $piece eq '';
        $request->write($piece);
    }
    return $request->{left} ? $request->close : ();
}

sub close_unread {
    my ($body) = @_;
    eval { $body->close } if _is_source($body);
    return '';
}

sub _is_source {
    my ($body) = @_;
    return blessed $body ? $body->can('getline') : (reftype($body) || '') eq 'GLOB';
}

# Returns true for a file that the front can open and send itself: a regular one whose bytes are
# those that getline would return.
sub _is_plain_file {
    my ($body) = @_;
    return if reftype($body) ne 'GLOB' || tied *$body || !defined *{$body}{IO};
    return if blessed $body && $body->can('getline') != IO::Handle->can('getline');
    my $number = fileno $body;
    return if !defined $number || $number < 0 || !-f $body;
    return if !(stat _)[12];    # as files of /proc and /sys are, whose sizes are not true
    return !grep { !/\A(?:unix|perlio|stdio)\z/ } PerlIO::get_layers($body);
}

sub _send_file {
    my ($request, $status, $encoded, $headers, $file) = @_;
    my $offset = tell $file;
    my $length = (-s $file) - $offset;
    my ($said) = map { $headers->[ 2 * $_ + 1 ] } grep { lc $headers->[ 2 * $_ ] eq 'content-length' } 0 .. $#$headers / 2;
    $length = $said if defined $said && $said =~ /\A[0-9]{1,15}\z/ && $said < $length;
    return $request->whole($status, $encoded, close_unread($file)) if $length <= 0;
    return $request->file($status, $encoded, $file, $offset, $length);
}

# A source of the given number of bytes of a file.
package Greenroom::Body::Part;

sub new {
    my ($class, $handle, $offset, $length) = @_;
    seek $handle, $offset, 0;
    return bless { handle => $handle, left => $length }, $class;
}

sub getline {
    my ($self) = @_;
    return if !$self->{left};
    my $wanted = $self->{left} < Greenroom::Body::PIECE_BYTES() ? $self->{left} : Greenroom::Body::PIECE_BYTES();
    my $got = read($self->{handle}, my $piece, $wanted);
    die defined $got ? "the file is shorter than it was\n" : "the file cannot be read: $!\n" if !$got;
    $self->{left} -= $got;
    return $piece;
}

sub close { return CORE::close(shift->{handle}) }

1;

__END__

=head1 NAME

Greenroom::Body - how the body of a response goes out

=head1 DESCRIPTION

A list of strings is sent as a whole, a regular file is handed to the front, which sends it without
this worker, and anything else with C<getline> is read and sent piece by piece.

=cut
