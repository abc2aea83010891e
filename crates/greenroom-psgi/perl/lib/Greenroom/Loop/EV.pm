package Greenroom::Loop::EV;

use strict;
use warnings;

sub new { return bless { read => {}, write => {}, later => [] }, shift }

sub readable {
    my ($self, $handle, $callback) = @_;
    $self->{read}{ fileno $handle } = EV::io($handle, EV::READ(), $callback);
    return;
}

sub writable {
    my ($self, $handle, $callback) = @_;
    $self->{write}{ fileno $handle } = EV::io($handle, EV::WRITE(), $callback);
    return;
}

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

sub later {
    my ($self, $callback) = @_;
    push @{ $self->{later} }, $callback;
    $self->{timer} ||= EV::timer(0, 0, sub { $self->_call_later });
    return;
}

sub _call_later {
    my ($self) = @_;
    delete $self->{timer};
    for my $callback (splice @{ $self->{later} }) {
        eval { $callback->(); 1 } or warn $@;
    }
    return;
}

sub run { EV::run(); return }

1;

__END__

=head1 NAME

Greenroom::Loop::EV - for applications on EV

=head1 DESCRIPTION

See L<Greenroom::Loop>.

=cut
