package Front;

use strict;
use warnings;

use File::Basename qw(dirname);
use File::Spec ();
use File::Temp qw(tempdir);
use IO::Handle ();
use Scalar::Util ();
use Socket;

use Greenroom::Frame qw(frame frames write_all);

use constant SECONDS_MAX => 10;

my $LIB = File::Spec->rel2abs(dirname(__FILE__) . '/../../lib');

# The front's side of a real zygote: file, or source of the application; arguments for the zygote.
sub start {
    my ($class, %of) = @_;
    my $dir = tempdir(CLEANUP => 1);
    our $Current = my $self = bless {dir => $dir, key => 0, controls => [], errors => ''}, $class;
    Scalar::Util::weaken($Current);
    my $file = $of{file} || "$dir/app.psgi";
    write_file($file, $of{source}) if defined $of{source};
    socketpair my $ours, my $theirs, AF_UNIX, SOCK_STREAM, PF_UNSPEC or die $!;
    $self->{log} = "$dir/log";
    my @command = ($^X, "-I$LIB", '-MGreenroom::Zygote', '-e', 'Greenroom::Zygote->main', '--',
        '--dir', $dir, '--app', $file, @{ $of{arguments} || [] });
    $self->{pid} = fork // die $!;
    if (!$self->{pid}) {
        open STDIN,  '<&', $theirs or die $!;
        open STDOUT, '>>', $self->{log} or die $!;
        open STDERR, '>&', \*STDOUT or die $!;
        exec @command or die $!;
    }
    close $theirs;
    $self->{zygote} = Front::Channel->new($ours);
    return $self;
}

sub write_file {
    my ($path, $text) = @_;
    open my $file, '>:raw', $path or die "$path: $!";
    print {$file} $text;
    close $file or die $!;
    return $path;
}

sub slurp {
    my ($path) = @_;
    open my $file, '<:raw', $path or return '';
    local $/;
    my $text = <$file>;
    return defined $text ? $text : '';
}

# Returns the output of the workers, and then the errors that they sent to the front.
sub log_text {
    my ($self) = @_;
    $_->look for grep { defined } @{ $self->{controls} };
    return slurp($self->{log}) . $self->{errors};
}

# Returns true if the log has this within a time that only a failure takes: a line may come after
# the response.
sub logged {
    my ($self, $expected) = @_;
    for (1 .. 100 * SECONDS_MAX) {
        return 1 if $self->log_text =~ $expected;
        select undef, undef, undef, 0.01;
    }
    Test::More::diag('the log: ' . $self->log_text);
    return 0;
}

# Waits for the zygote, has a worker forked, and waits until it is ready.
sub worker {
    my ($self) = @_;
    my $worker = $self->unready_worker;
    ($worker->{response_type}, $worker->{mode}) = $worker->{control}->next;
    return $worker;
}

sub unready_worker {
    my ($self) = @_;
    if (!$self->{up}++) {
        my ($type, $text) = $self->{zygote}->next;
        die "the zygote said $type: $text" if $type ne 'U';
    }
    my $key = ++$self->{key};
    $self->{zygote}->send('F', pack 'N', $key);
    my ($type, $payload) = $self->{zygote}->next('f');
    my (undef, $pid) = unpack 'NN', $payload;
    my $worker = bless {front => $self, key => $key, pid => $pid, id => 0}, 'Front::Worker';
    $worker->{control} = $worker->connect('C');
    Scalar::Util::weaken($self->{controls}[$key - 1] = $worker->{control});
    return $worker;
}

sub stop {
    my ($self) = @_;
    my $zygote = delete $self->{zygote} or return;
    close $zygote->{handle};
    waitpid $self->{pid}, 0;
    return $? >> 8;
}

sub DESTROY {
    my ($self) = @_;
    local ($?, $@);
    return $self->stop;
}

package Front::Channel;

sub new {
    my ($class, $handle) = @_;
    return bless {handle => $handle, in => '', frames => []}, $class;
}

sub send {
    my ($self, $type, $payload) = @_;
    Greenroom::Frame::write_all($self->{handle}, Greenroom::Frame::frame($type, $payload // '')) or die "gone: $!";
    return $self;
}

sub send_raw {
    my ($self, $bytes) = @_;
    Greenroom::Frame::write_all($self->{handle}, $bytes) or die "gone: $!";
    return $self;
}

# Returns the next frame's type and payload; 'end' when the channel has ended.
sub next {
    my ($self, $wanted) = @_;
    while (!@{ $self->{frames} }) {
        return ('end', '') if !$self->fill(Front::SECONDS_MAX);
        $self->take;
    }
    my ($type, $payload) = unpack 'aa*', shift @{ $self->{frames} };
    die "$type came for $wanted: $payload" if $wanted && $wanted ne $type;
    return ($type, $payload);
}

# An error is kept for the log.
sub take {
    my ($self) = @_;
    for my $frame (Greenroom::Frame::frames(\$self->{in})) {
        if ($frame !~ s/\AE//) { push @{ $self->{frames} }, $frame; next }
        my ($name, $message) = unpack 'N/aa*', $frame;
        $Front::Current->{errors} .= "ERROR $name: $message\n";
    }
    return;
}

# Takes the available bytes, without waiting.
sub look {
    my ($self) = @_;
    vec(my $ready = '', fileno $self->{handle}, 1) = 1;
    return if !select $ready, undef, undef, 0;
    return $self->fill(0) && $self->take;
}

sub fill {
    my ($self, $seconds) = @_;
    vec(my $ready = '', fileno $self->{handle}, 1) = 1;
    select($ready, undef, undef, $seconds) or die "nothing came; the log: " . ($Front::Current ? $Front::Current->log_text : "");
    return sysread $self->{handle}, $self->{in}, 1 << 20, length $self->{in};
}

# Returns true if nothing comes for a number of seconds.
sub silent {
    my ($self, $seconds) = @_;
    return if @{ $self->{frames} };
    vec(my $ready = '', fileno $self->{handle}, 1) = 1;
    return !select $ready, undef, undef, $seconds;
}

package Front::Worker;

sub connect {
    my ($self, $type, $payload) = @_;
    socket my $handle, Socket::PF_UNIX, Socket::SOCK_STREAM, 0 or die $!;
    connect $handle, Socket::pack_sockaddr_un("$self->{front}{dir}/worker-$self->{key}.sock") or die "connect: $!";
    return Front::Channel->new($handle)->send($type, $payload);
}

sub link {
    my ($self) = @_;
    return $self->{link} ||= $self->connect('L');
}

my %ENVIRONMENT = (
    REQUEST_METHOD => 'GET', SCRIPT_NAME => '', PATH_INFO => '/', REQUEST_URI => '/', QUERY_STRING => '',
    SERVER_NAME => 'localhost', SERVER_PORT => 80, SERVER_PROTOCOL => 'HTTP/1.1',
    REMOTE_ADDR => '127.0.0.1', REMOTE_PORT => 4000, 'psgi.url_scheme' => 'http', HTTP_HOST => 'localhost',
);

sub request_frame {
    my ($self, $path, %of) = @_;
    my ($kind, $rest) = (delete $of{kind} || 0, delete $of{rest} // '');
    my ($path_info, $query) = split /\?/, $path, 2;
    my %env = (%ENVIRONMENT, PATH_INFO => $path_info, REQUEST_URI => $path, QUERY_STRING => $query // '', %of);
    $env{CONTENT_LENGTH} //= length $rest if !$kind && $rest ne '';
    my $id = ++$self->{id};
    return ($id, Greenroom::Frame::frame('R', pack 'NCN/a*a*', $id, $kind, join("\0", %env), $rest));
}

# Sends a request and returns its id.
sub ask {
    my ($self, @request) = @_;
    my ($id, $frame) = $self->request_frame(@request);
    $self->link->send_raw($frame);
    return $id;
}

# Returns the next frame on the link, decoded.
sub reply {
    my ($self, $link) = @_;
    my ($type, $payload) = ($link || $self->link)->next;
    my %reply = (type => $type);
    if    ($type =~ /[ewx]/) { @reply{qw(id busy)} = unpack 'NN', $payload }
    elsif ($type =~ /[hi]/)  { @reply{qw(id status headers)} = unpack 'NnN/a', $payload }
    elsif ($type eq 'd')     { @reply{qw(id body)} = unpack 'Na*', $payload }
    elsif ($type eq 'r')     { @reply{qw(id busy status headers body)} = unpack 'NNnN/aa*', $payload }
    elsif ($type eq 's')     { @reply{qw(id busy status headers descriptor offset length)} = unpack 'NNnN/aNQ>Q>', $payload }
    $reply{headers} = [ split /\0/, $reply{headers}, -1 ] if defined $reply{headers};
    return \%reply;
}

sub get {
    my ($self, @request) = @_;
    $self->ask(@request);
    return $self->reply;
}

# Returns a streamed response, all of which is acknowledged at once, and its end's type.
sub stream {
    my ($self, @request) = @_;
    my $id = $self->ask(@request);
    my %whole = (id => $id, body => '', types => '');
    while (1) {
        my $reply = $self->reply;
        $whole{types} .= $reply->{type};
        @whole{qw(status headers)} = @$reply{qw(status headers)} if $reply->{type} =~ /[hrs]/;
        $whole{body} .= $reply->{body} if defined $reply->{body};
        $self->acknowledge($id, length $reply->{body}) if $reply->{type} eq 'd';
        $whole{body} = $self->open_body($reply) if $reply->{type} eq 's';
        return \%whole if $reply->{type} =~ /\A(?:[rexs]|end)\z/;
    }
}

# Returns the bytes that the front sends for the frame s.
sub open_body {
    my ($self, $reply) = @_;
    open my $file, '<:raw', "/proc/$self->{pid}/fd/$reply->{descriptor}" or die $!;
    $self->link->send('O', pack 'N', $reply->{id});
    seek $file, $reply->{offset}, 0;
    read $file, my ($body), $reply->{length};
    return $body;
}

sub acknowledge {
    my ($self, $id, $bytes) = @_;
    return $self->link->send('A', pack 'NN', $id, $bytes);
}

sub give_up {
    my ($self, $id) = @_;
    return $self->link->send('G', pack 'N', $id);
}

1;
