package Greenroom::Application;

use strict;
use warnings;

use File::Spec ();
use overload ();
use Scalar::Util qw(blessed reftype);

sub new {
    my ($class, %options) = @_;
    $options{env} = $ENV{PLACK_ENV} || 'deployment' if !defined $options{env};
    return bless {%options}, $class;
}

# Applies -I, -M and --env; before the application is loaded, and before a fork.
sub prepare {
    my ($self) = @_;
    $ENV{PLACK_ENV} = $self->{env};
    unshift @INC, map { File::Spec->rel2abs($_) } @{ $self->{include} || [] };
    _use($_) for @{ $self->{modules} || [] };
    return $self;
}

sub load {
    my ($self) = @_;
    my $file = File::Spec->rel2abs($self->{file});
    provide_anyevent($file);
    my $app = _application(_evaluate($file), $self->{file});
    return $self->{env} eq 'development' ? _with_development_help($app) : $app;
}

# Parses a module as perl's own -M does: Module or Module=import,import.
our @Imports;

sub _use {
    my ($wish) = @_;
    my ($module, $imports) = split /=/, $wish, 2;
    $module =~ /\A\w+(?:::\w+)*\z/ or die "-M $wish: a module's name is needed\n";
    local @Imports = defined $imports ? split /,/, $imports : ();
    my $list = defined $imports ? '@Greenroom::Application::Imports' : '';
    eval "package main; use $module $list; 1" or die "-M $wish: $@";
    return;
}

sub _source {
    my ($file) = @_;
    die "$file: no such file\n"                     if !-e $file;
    die "$file: a directory, not a file\n"          if -d _;
    open my $source, '<:raw', $file or die "$file: cannot be read: $!\n";
    local $/;
    my $text = <$source>;
    return defined $text ? $text : '';
}

# Applications for Twiggy use AnyEvent without loading it.
sub provide_anyevent {
    my ($file) = @_;
    return if _source($file) !~ /^[^#\n]*\bAnyEvent\b/m;
    local $@;
    return eval { require AnyEvent; 1 };
}

# In a package of its own, as in plackup, so that the subs of two applications do not collide.
sub _evaluate {
    my ($_file) = @_;
    my $_package = $_file;
    $_package =~ s/([^A-Za-z0-9_])/sprintf '_%2x', ord $1/ge;
    local $0    = $_file;
    local @ARGV = ();
    FindBin::again() if $INC{'FindBin.pm'};
    my $app = eval sprintf <<'END', $_package;
package Greenroom::Sandbox::%s;
{
    my $app = do $_file;
    die $@ if $@;
    $app;
}
END
    die $@ if $@;
    return $app;
}

sub _application {
    my ($found, $file) = @_;
    return $found if (reftype($found) || '') eq 'CODE';
    if (blessed $found) {
        return $found->to_app if $found->can('to_app');
        return \&$found       if overload::Method($found, '&{}');
    }
    my $what = !defined $found ? 'undef' : ref $found ? 'a reference to ' . ref $found : qq{"$found"};
    die "$file returned $what, not a code reference; its last statement must be the application\n";
}

sub _with_development_help {
    my ($app) = @_;
    local $@;
    for my $name (qw(Lint StackTrace)) {
        my $class = "Plack::Middleware::$name";
        $app = $class->wrap($app) if eval "require $class";
    }
    return $app;
}

1;

__END__

=head1 NAME

Greenroom::Application - loads a PSGI application's file

=head1 SYNOPSIS

    my $app = Greenroom::Application->new(
        file => 'app.psgi', env => 'deployment', include => ['lib'], modules => ['Some::Module'],
    )->prepare->load;

=head1 DESCRIPTION

C<prepare> sets C<PLACK_ENV>, extends C<@INC> and loads modules; C<load> gives the application's code
reference. Without C<env>, it is C<deployment>. Both die with a message for whoever starts the server. The file is evaluated as plackup
does: in a package of its own, with C<$0> set to the file and C<@ARGV> empty. A file that mentions the
word C<AnyEvent> finds AnyEvent loaded, if it is installed. In the environment C<development> the
application is wrapped in Plack's Lint and StackTrace, if they are installed.

=cut
