package Greenroom::Loop::Mojo;

use strict;
use warnings;

sub new { return bless { callbacks => {} }, shift }

sub readable {
    my ($self, $handle, $callback) = @_;
    $self->{callbacks}{ fileno $handle }{read} = $callback;
    return $self->_watch($handle);
}

sub writable {
    my ($self, $handle, $callback) = @_;
    $self->{callbacks}{ fileno $handle }{write} = $callback;
    return $self->_watch($handle);
}

sub forget {
    my ($self, $handle) = @_;
    delete $self->{callbacks}{ fileno $handle };
    Mojo::IOLoop->singleton->reactor->remove($handle);
    return;
}

sub forget_writable {
    my ($self, $handle) = @_;
    delete $self->{callbacks}{ fileno $handle }{write};
    return $self->_watch($handle);
}

# The reactor has one callback for each handle.
sub _watch {
    my ($self, $handle) = @_;
    my $callbacks = $self->{callbacks}{ fileno $handle };
    my $reactor   = Mojo::IOLoop->singleton->reactor;
    $reactor->io($handle => sub {
        my $callback = $callbacks->{ $_[1] ? 'write' : 'read' };
        $callback->() if $callback;
    })->watch($handle, $callbacks->{read}, $callbacks->{write});
    return;
}

# next_tick would call callbacks that are added meanwhile before anything else.
sub later {
    my ($self, $callback) = @_;
    Mojo::IOLoop->timer(0 => sub { $callback->() });
    return;
}

sub run { Mojo::IOLoop->start; return }

1;

__END__

=head1 NAME

Greenroom::Loop::Mojo - for applications on Mojo::IOLoop

=head1 DESCRIPTION

See L<Greenroom::Loop>. It watches with the reactor of Mojo's singleton loop.

=cut
