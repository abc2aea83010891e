//! Clients that leave, at every moment of a call.

use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::sleep;

use crate::load::until;
use crate::rig::{Rig, text, within};

async fn ask(rig: &Rig, path: &str) -> TcpStream {
    let mut stream = rig.connect().await;
    let asked = format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
    stream.write_all(asked.as_bytes()).await.unwrap();
    stream
}

/// Waits until the application has written the file.
async fn until_written(rig: &Rig, name: &str) -> String {
    let file = rig.source.file(name);
    until(|| std::fs::read(&file).is_ok_and(|bytes| !bytes.is_empty())).await;
    std::fs::read_to_string(&file).unwrap()
}

/// Lets `/wait` wait for ever, and hangs at `/hang`.
const HANGING: &str = r"
    use AnyEvent;
    my @waiting;
    sub {
        my $env = shift;
        return [200, [], [scalar @waiting]] if $env->{PATH_INFO} eq '/count';
        if ($env->{PATH_INFO} eq '/hang') { select undef, undef, undef, 1 while 1 }
        sub { push @waiting, shift };
    };
";

#[tokio::test]
async fn clients_that_leave_are_no_sign_of_life_of_a_worker_that_hangs() {
    const CLIENTS: usize = 200;
    within(async {
        let timeout = Duration::from_millis(500);
        let rig = Rig::with(HANGING, |builder| builder.timeout(timeout)).await;
        let mut waiting = Vec::new();
        for _ in 0..CLIENTS {
            waiting.push(ask(&rig, "/wait").await);
        }
        while text(&rig.get("/count").await) != CLIENTS.to_string() {}
        let _hung = ask(&rig, "/hang").await;
        while rig.gateway.status().hung == 0 {
            drop(waiting.pop().expect("it is killed before all have left"));
            sleep(Duration::from_millis(50)).await;
        }
        rig.end().await;
    })
    .await;
}

/// Runs a loop of its own within its call, until the file `go` has been there for a while; then
/// responds with an endless body.
const NESTED: &str = r#"
    use AnyEvent;
    (my $here = __FILE__) =~ s{[^/]*\z}{};
    $main::note = sub { open my $file, '>', "$here$_[0]" or die; print {$file} 'x' };
    { package Endless; sub getline { 'z' x 65_536 } sub close { $main::note->('closed') } }
    sub {
        my $done = AE::cv;
        my $ticks = 0;
        my $timer = AE::timer 0, 0.01, sub { $done->send if -e "${here}go" && $ticks++ > 20 };
        $main::note->('begun');
        $done->recv;
        [200, [], bless {}, 'Endless'];
    };
"#;

#[tokio::test]
async fn a_call_with_a_loop_of_its_own_learns_in_the_end_that_its_client_has_left() {
    within(async {
        let rig = Rig::serve(NESTED).await;
        let client = ask(&rig, "/").await;
        until_written(&rig, "begun").await;
        drop(client);
        rig.source.write("go", "");
        until_written(&rig, "closed").await;
        rig.end().await;
    })
    .await;
}

/// Begins to respond when the file `go` has been there for a while, and notes what `write` says and
/// how often it is asked for more.
const LATE: &str = r#"
    use AnyEvent;
    (my $here = __FILE__) =~ s{[^/]*\z}{};
    my $note = sub { open my $file, '>', "$here$_[0]" or die; print {$file} $_[1] };
    my @timers;
    sub {
        sub {
            my $respond = shift;
            my ($ticks, $polls) = (0, 0);
            push @timers, AE::timer 0, 0.01, sub {
                return if !-e "${here}go" || $ticks++ < 60;
                return $note->(polls => "$polls polls") if !$respond && $ticks > 80;
                return if !$respond;
                my $writer = $respond->([200, []]);
                undef $respond;
                $note->(wrote => $writer->write('x') ? 'true' : 'false');
                $writer->poll_cb(sub { $polls++; $_[0]->write('x') });
            };
            $note->(begun => 'x');
        };
    };
"#;

#[tokio::test]
async fn a_response_that_begins_after_its_client_has_left_is_over() {
    within(async {
        let rig = Rig::serve(LATE).await;
        let client = ask(&rig, "/").await;
        until_written(&rig, "begun").await;
        drop(client);
        // The server waits for half a second whether the client only ended its side.
        until(|| rig.gateway.status().workers[0].waiting == 0).await;
        rig.source.write("go", "");
        assert_eq!(until_written(&rig, "wrote").await, "false");
        assert_eq!(until_written(&rig, "polls").await, "0 polls");
        rig.end().await;
    })
    .await;
}
