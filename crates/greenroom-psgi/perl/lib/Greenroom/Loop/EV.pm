package Greenroom::Loop::EV;

use strict;
use warnings;

use parent 'Greenroom::Loop::Watchers';

use Scalar::Util ();

# Deferred calls run before the loop waits: so the responses of one round go out together, and
# without a timer of their own, which costs a turn of the loop for each.
sub new {
    my ($class) = @_;
    my $self = bless { read => {}, write => {}, later => [] }, $class;
    Scalar::Util::weaken(my $weak = $self);
    $self->{prepare} = EV::prepare_ns(sub { $weak->_call_later });
    return $self;
}

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

sub later {
    my ($self, $callback) = @_;
    $self->{prepare}->start if !@{ $self->{later} };
    push @{ $self->{later} }, $callback;
    return;
}

sub _call_later {
    my ($self) = @_;
    $self->{prepare}->stop;
    for my $callback (splice @{ $self->{later} }) {
        eval { $callback->(); 1 } or warn $@;
    }
    # Calls that these defer are for the next round, for which the loop must not wait.
    $self->{again} = EV::timer(0, 0, sub { }) if @{ $self->{later} };
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
