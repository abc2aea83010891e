package Greenroom::Loop::Select;

use strict;
use warnings;

use parent 'Greenroom::Loop::Watchers';

sub new { return bless { read => {}, write => {}, later => [], bits => undef }, shift }

sub readable {
    my ($self, $handle, $callback) = @_;
    $self->{read}{ fileno $handle } = $callback;
    $self->{bits} = undef;
    return;
}

sub writable {
    my ($self, $handle, $callback) = @_;
    $self->{write}{ fileno $handle } = $callback;
    $self->{bits} = undef;
    return;
}

sub forget_writable {
    my ($self, $handle) = @_;
    $self->{bits} = undef;
    return $self->SUPER::forget_writable($handle);
}

sub later {
    my ($self, $callback) = @_;
    push @{ $self->{later} }, $callback;
    return;
}

sub stop { shift->{stopped} = 1; return }

sub run {
    my ($self) = @_;
    $self->_once while !$self->{stopped};
    return $self->_call_later;
}

sub _once {
    my ($self) = @_;
    my $bits = $self->{bits} ||= [ _bits($self->{read}), _bits($self->{write}) ];
    my $found = select my $read = $bits->[0], my $write = $bits->[1], undef,
        @{ $self->{later} } ? 0 : undef;
    if ($found > 0) {
        _call($self->{read},  $read);
        _call($self->{write}, $write);
    }
    return $self->_call_later;
}

sub _call_later {
    my ($self) = @_;
    for my $callback (splice @{ $self->{later} }) {
        eval { $callback->(); 1 } or warn $@;
    }
    return;
}

sub _bits {
    my ($watched) = @_;
    my $bits = '';
    vec($bits, $_, 1) = 1 for keys %$watched;
    return $bits;
}

# A callback may end the watching of another.
sub _call {
    my ($watched, $ready) = @_;
    for my $number (keys %$watched) {
        next if !vec $ready, $number, 1;
        my $callback = $watched->{$number} or next;
        $callback->();
    }
    return;
}

1;

__END__

=head1 NAME

Greenroom::Loop::Select - for applications without an event loop

=head1 DESCRIPTION

See L<Greenroom::Loop>. C<stop> makes C<run> return, for good: another loop takes over when an
application has turned out to have one.

=cut
