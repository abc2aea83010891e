package Greenroom::Loop::IOAsync;

use strict;
use warnings;

sub new { return bless { loop => IO::Async::Loop->new }, shift }

sub readable {
    my ($self, $handle, $callback) = @_;
    $self->{loop}->watch_io(handle => $handle, on_read_ready => $callback);
    return;
}

sub writable {
    my ($self, $handle, $callback) = @_;
    $self->{loop}->watch_io(handle => $handle, on_write_ready => $callback);
    return;
}

sub forget {
    my ($self, $handle) = @_;
    $self->{loop}->unwatch_io(handle => $handle, on_read_ready => 1, on_write_ready => 1);
    return;
}

sub forget_writable {
    my ($self, $handle) = @_;
    $self->{loop}->unwatch_io(handle => $handle, on_write_ready => 1);
    return;
}

sub later {
    my ($self, $callback) = @_;
    # Not with the loop's own later: of those callbacks, all behind one that dies are lost.
    $self->{loop}->watch_time(after => 0, code => $callback);
    return;
}

sub run { shift->{loop}->run; return }

1;

__END__

=head1 NAME

Greenroom::Loop::IOAsync - for applications on IO::Async

=head1 DESCRIPTION

See L<Greenroom::Loop>. IO::Async has one loop for each process, which the application gets too.

=cut
