package Greenroom::Loop::AnyEvent;

use strict;
use warnings;

use parent 'Greenroom::Loop::Watchers';

sub new {
    my ($class) = @_;
    pipe my $reader, my $writer or die "greenroom: a pipe: $!\n";
    return bless { read => {}, write => {}, always => [ $reader, $writer ] }, $class;
}

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
    # Not with postpone: callbacks behind one that dies wait for the next one to be postponed. Nor
    # with a timer: AnyEvent's own loop looks at no handle as long as one is due, as one that a
    # timer's callback makes is at once. Nobody writes to this pipe, so it may always be written to.
    my $writable;
    $writable = AnyEvent->io(fh => $self->{always}[1], poll => 'w', cb => sub { undef $writable; $callback->() });
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
