package Greenroom::Loop::AnyEvent;

use strict;
use warnings;

use parent 'Greenroom::Loop::Watchers';

sub new { return bless { read => {}, write => {} }, shift }

sub readable {
    my ($self, $handle, $callback) = @_;
    $self->{read}{ fileno $handle } = AnyEvent->io(fh => $handle, poll => 'r', cb => $callback);
    return;
}

sub writable {
    my ($self, $handle, $callback) = @_;
    $self->{write}{ fileno $handle } = AnyEvent->io(fh => $handle, poll => 'w', cb => $callback);
    return;
}

sub later {
    my ($self, $callback) = @_;
    # Not with postpone: callbacks behind one that dies wait for the next one to be postponed.
    my $timer;
    $timer = AnyEvent->timer(after => 0, cb => sub { undef $timer; $callback->() });
    return;
}

# AnyEvent's own loop runs directly: within a condition variable's recv, an application could not
# call another recv.
sub run {
    $INC{'AnyEvent/Loop.pm'} ? AnyEvent::Loop::run() : AnyEvent->condvar->recv;
    return;
}

1;

__END__

=head1 NAME

Greenroom::Loop::AnyEvent - for applications on AnyEvent with a loop other than EV

=head1 DESCRIPTION

See L<Greenroom::Loop>.

=cut
