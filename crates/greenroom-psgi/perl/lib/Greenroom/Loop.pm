package Greenroom::Loop;

use strict;
use warnings;

# Returns the event loop that the loaded application uses, or none. AnyEvent itself names the loop
# that drives it.
sub found {
    if ($INC{'AnyEvent.pm'}) {
        my $model = AnyEvent::detect();
        return 'EV'        if $model =~ /::EV\z/;
        return 'IO::Async' if $model =~ /::IOAsync\z/;
        return 'AnyEvent';
    }
    return 'EV'        if $INC{'EV.pm'};
    return 'IO::Async' if $INC{'IO/Async/Loop.pm'};
    return _of_mojo()  if $INC{'Mojo/IOLoop.pm'};
    return;
}

sub _of_mojo {
    return Mojo::IOLoop->singleton->reactor->isa('Mojo::Reactor::EV') ? 'EV' : 'Mojo::IOLoop';
}

# Loads all of them, before workers are forked: by then our files may have been removed.
require "Greenroom/Loop/$_.pm" for qw(AnyEvent EV IOAsync Mojo Select);

my %ADAPTOR = (
    'EV'           => 'EV',
    'AnyEvent'     => 'AnyEvent',
    'IO::Async'    => 'IOAsync',
    'Mojo::IOLoop' => 'Mojo',
);

sub adaptor {
    my ($name) = @_;
    my $class = 'Greenroom::Loop::' . ($name ? $ADAPTOR{$name} : 'Select');
    return $class->new;
}

1;

__END__

=head1 NAME

Greenroom::Loop - finds the event loop of an application

=head1 DESCRIPTION

C<found> names the event loop that the application has loaded: C<EV>, C<AnyEvent>, C<IO::Async> or
C<Mojo::IOLoop>; undef if there is none. C<adaptor> makes the object through which a worker uses it;
without a name's adaptor, the one for applications that block. Each has these methods:

=over

=item readable($handle, $callback)

Calls back whenever there is something to read.

=item writable($handle, $callback)

The same for room to write.

=item forget($handle), forget_writable($handle)

Ends both, or the latter.

=item later($callback)

Calls back once, after what is ready now.

=item run

Runs; returns or dies when it has been stopped, and may be called again.

=back

=cut
