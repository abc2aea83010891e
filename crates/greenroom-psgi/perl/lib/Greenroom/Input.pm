package Greenroom::Input;

use strict;
use warnings;

my $Empty;

# All requests without a body share a handle: it stays at its end, even if it is read. Opening one
# for each costs a sixth of a small response. An application may have closed it, opened something
# else by it, put something back, or given it a layer. A call of a sub for that took as long as it.
sub none {
    return $Empty
        if $Empty && (fileno $Empty // 0) == -1 && binmode($Empty) && seek($Empty, 0, 0) && eof $Empty;
    return $Empty = _in_memory('');
}

sub _in_memory {
    my ($bytes) = @_;
    open my $handle, '<:raw', \$bytes or die "a request's body in memory: $!\n";
    return $handle;
}

# kind is that of the frame R.
sub add {
    my ($worker, $env, $kind, $rest) = @_;
    if ($kind == 2) {
        $env->{'psgi.input'} = none();
        my $io = $worker->io(unpack 'N', $rest);
        $env->{'psgix.io'} = $io if $io;
        return;
    }
    $env->{'psgi.input'} = $kind == 1 ? _file($rest) : _in_memory($rest);
    return;
}

sub _file {
    my ($path) = @_;
    open my $handle, '<:raw', $path or die "a request's body in $path: $!\n";
    return $handle;
}

1;

__END__

=head1 NAME

Greenroom::Input - psgi.input, and psgix.io where the request asks to leave HTTP

=head1 DESCRIPTION

Every C<psgi.input> is a real handle, seekable and read to its end by whatever means Perl has: in
memory for short bodies, a file for others.

=cut
