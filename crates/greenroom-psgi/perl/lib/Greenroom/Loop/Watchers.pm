package Greenroom::Loop::Watchers;

use strict;
use warnings;

sub forget {
    my ($self, $handle) = @_;
    delete $self->{read}{ fileno $handle };
    return $self->forget_writable($handle);
}

sub forget_writable {
    my ($self, $handle) = @_;
    delete $self->{write}{ fileno $handle };
    return;
}

1;

__END__

=head1 NAME

Greenroom::Loop::Watchers - what adaptors share that keep a watcher, or a callback, for each handle

=head1 DESCRIPTION

See L<Greenroom::Loop>. They are in C<read> and C<write>, by the number of the handle.

=cut
