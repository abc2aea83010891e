//! `psgix.io`: applications that write to the socket themselves.

use std::time::Duration;

use futures_util::future::join_all;
use futures_util::{SinkExt, StreamExt};
use http::{Method, StatusCode};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::sleep;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::load::{Client, prove_short, until};
use crate::rig::{Rig, text, within};

type WebSocket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// The part of RFC 6455 that both applications need: the handshake, and short frames of text.
pub(crate) const WEBSOCKET: &str = r#"
    use strict; use warnings;
    use Digest::SHA qw(sha1_base64);
    my $handshake = sub {
        my $guid = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
        my $accept = sha1_base64($_[0]{HTTP_SEC_WEBSOCKET_KEY} . $guid) . '=';
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            . "Sec-WebSocket-Accept: $accept\r\n\r\n";
    };
    my $take = sub {
        my ($in) = @_;
        return if length $$in < 6 or length $$in < 6 + (my $length = 127 & ord substr $$in, 1);
        my ($head, undef, $mask, $text) = unpack "CCa4a$length", substr $$in, 0, 6 + $length, '';
        return (15 & $head, $text ^ substr $mask x 32, 0, $length);
    };
    my $frame = sub { pack 'CCa*', 0x80 | $_[0], length $_[1], $_[1] };
"#;

pub(crate) const EVENTS: &str = r#"
    use AnyEvent; use AnyEvent::Handle;
    my (%open, $opened);
    sub {
        my $env = shift;
        return [200, [], [scalar keys %open]] if $env->{PATH_INFO} eq '/count';
        my $io = $env->{'psgix.io'} or return [400, [], ['no socket']];
        my $name = ++$opened;
        my $handle; $handle = $open{$name} = AnyEvent::Handle->new(
            fh => $io,
            on_error => sub { $_[0]->destroy; delete $open{$name} },
            on_eof => sub { $_[0]->destroy; delete $open{$name} },
            on_read => sub {
                while (my ($kind, $text) = $take->(\$_[0]{rbuf})) {
                    if ($kind == 8) {
                        $_[0]->push_write($frame->(8, ''));
                        $_[0]->push_shutdown;
                        next;
                    }
                    $_->push_write($frame->(1, "$name: $text")) for values %open;
                }
            },
        );
        $handle->push_write($handshake->($env));
        sub { };
    };
"#;

const BLOCKING: &str = r"
    sub {
        my $env = shift;
        my $io = $env->{'psgix.io'} or return [400, [], ['no socket']];
        syswrite $io, $handshake->($env);
        my $in = '';
        my $last = 0;
        while ($last != 8 && sysread $io, $in, 1000, length $in) {
            while (my ($kind, $text) = $take->(\$in)) {
                syswrite $io, $frame->($last = $kind, $text);
            }
        }
        close $io;
        [200, [], []];
    };
";

pub(crate) async fn open(rig: &Rig) -> WebSocket {
    let url = format!("ws://{}/chat", rig.address);
    connect_async(url).await.expect("the handshake is right").0
}

pub(crate) async fn say(socket: &mut WebSocket, said: &str) {
    let said = Message::text(said);
    socket.send(said).await.expect("it is open");
}

pub(crate) async fn hear(socket: &mut WebSocket) -> String {
    let heard = socket.next().await.expect("it is open");
    heard
        .expect("it is a frame")
        .into_text()
        .unwrap()
        .to_string()
}

#[tokio::test]
async fn websockets_share_an_event_driven_worker_with_other_requests() {
    within(async {
        let rig = Rig::serve(&format!("{WEBSOCKET}{EVENTS}")).await;
        let (mut one, mut two) = (open(&rig).await, open(&rig).await);
        assert_eq!(text(&rig.get("/count").await), "2");
        for round in 0..10 {
            say(&mut one, &format!("hello {round}")).await;
            for socket in [&mut one, &mut two] {
                assert_eq!(hear(socket).await, format!("1: hello {round}"));
            }
            assert_eq!(text(&rig.get("/count").await), "2");
            say(&mut two, "and you").await;
            for socket in [&mut one, &mut two] {
                assert_eq!(hear(socket).await, "2: and you");
            }
        }
        one.close(None).await.unwrap();
        while one.next().await.is_some_and(|frame| frame.is_ok()) {}
        drop((one, two));
        while text(&rig.get("/count").await) != "0" {}
        until(|| rig.gateway.status().workers[0].waiting == 0).await;
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn a_blocking_worker_speaks_with_one_client_until_it_leaves() {
    within(async {
        let rig = Rig::serve(&format!("{WEBSOCKET}{BLOCKING}")).await;
        for round in 0..3 {
            let mut socket = open(&rig).await;
            say(&mut socket, &format!("round {round}")).await;
            assert_eq!(hear(&mut socket).await, format!("round {round}"));
            drop(socket);
        }
        assert_eq!(rig.get("/").await.status(), StatusCode::BAD_REQUEST);
        rig.end().await;
    })
    .await;
}

const CHOICES: &str = r#"
    sub {
        my $env = shift;
        my $io = $env->{'psgix.io'};
        if ($env->{PATH_INFO} eq '/raw') {
            syswrite $io, "HTTP/1.1 400 Bad Request\r\nContent-Length: 7\r\nX-Raw: yes\r\n\r\n"
                . "no way\n";
            close $io;
            return [200, [], ['not this']];
        }
        if ($env->{PATH_INFO} eq '/nonsense') { syswrite $io, "nonsense\r\n\r\n"; return sub { } }
        return sub { } if $env->{PATH_INFO} eq '/nothing';
        my $body = do { local $/; readline $env->{'psgi.input'} };
        [200, [], [($io ? 'socket' : 'none'), ' ', defined $body ? $body : '']];
    };
"#;

fn asking(method: &str, path: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    )
}

#[tokio::test]
async fn an_application_may_refuse_on_its_socket() {
    within(async {
        let rig = Rig::serve(CHOICES).await;
        let mut stream = rig.connect().await;
        stream
            .write_all(asking("GET", "/raw", "").as_bytes())
            .await
            .unwrap();
        let response = response_of(stream).await;
        assert!(response.starts_with("HTTP/1.1 400 "), "{response}");
        assert!(response.contains("\r\nX-Raw: yes\r\n"), "{response}");
        assert!(response.ends_with("\r\n\r\nno way\n"), "{response}");
        for path in ["/nonsense", "/nothing"] {
            let stream = rig.connect().await;
            let response = ask_on(stream, &asking("GET", path, "")).await;
            assert!(response.starts_with("HTTP/1.1 50"), "{path}: {response}");
        }
        assert_eq!(text(&rig.get("/").await), "none ");
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn an_application_may_ignore_its_socket() {
    within(async {
        let rig = Rig::serve(CHOICES).await;
        let response = ask_on(rig.connect().await, &asking("GET", "/", "")).await;
        assert!(
            response.starts_with("HTTP/1.1 200 ") && response.contains("\r\n\r\nsocket "),
            "{response}"
        );
        assert_eq!(text(&rig.get("/").await), "none ");
        rig.end().await;
    })
    .await;
}

/// Some clients offer another protocol with every request (`h2c`).
#[tokio::test]
async fn a_request_with_a_body_keeps_it_whatever_it_offers() {
    within(async {
        let rig = Rig::serve(CHOICES).await;
        let response = ask_on(rig.connect().await, &asking("POST", "/", "the body")).await;
        assert!(
            response.starts_with("HTTP/1.1 200 ") && response.contains(" the body"),
            "{response}"
        );
        rig.end().await;
    })
    .await;
}

/// Its handshake comes when the call is long over, off the socket.
#[tokio::test]
async fn a_worker_that_is_to_end_waits_for_the_handshake_of_its_last_client() {
    within(async {
        let app = r#"
            use AnyEvent;
            sub {
                my $env = shift;
                my $io = $env->{'psgix.io'} or return [200, [], [$$]];
                $env->{'psgix.harakiri.commit'} = 1;
                my $later; $later = AnyEvent->timer(after => 0.5, cb => sub {
                    undef $later;
                    syswrite $io, "HTTP/1.1 101 Go\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nlate";
                    close $io;
                });
                sub { };
            };
        "#;
        let rig = Rig::serve(app).await;
        let response = ask_on(rig.connect().await, &asking("GET", "/", "")).await;
        assert!(response.starts_with("HTTP/1.1 101 "), "{response}");
        assert!(response.ends_with("\r\n\r\nlate"), "{response}");
        until(|| rig.gateway.status().retired == 1).await;
        rig.end().await;
    })
    .await;
}

/// A blocking worker that uses a socket does so for as long as the client stays.
#[tokio::test]
async fn nobody_is_sent_behind_a_socket() {
    within(async {
        let app = r#"
            sub {
                my $io = $_[0]{'psgix.io'} or return [200, [], ['plain']];
                syswrite $io, "HTTP/1.1 101 Go\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n";
                while (sysread $io, my $bytes, 100) { syswrite $io, $bytes }
                [200, [], []];
            };
        "#;
        let timeout = Duration::from_millis(400);
        let rig = Rig::with(app, |builder| builder.timeout(timeout)).await;
        let routes = [(Method::GET, "/chat"), (Method::POST, "/chat")];
        prove_short(&rig, &rig.gateway, &routes).await;
        let mut clients = join_all((0..4).map(|_| Client::connected(&rig))).await;
        let mut socket = BufReader::new(rig.connect().await);
        socket
            .write_all(asking("GET", "/chat", "").as_bytes())
            .await
            .unwrap();
        let posting = clients.iter_mut();
        let posting = join_all(posting.map(|client| client.ask(Method::POST, "/chat")));
        let spoken = async {
            let mut line = String::new();
            while !line.ends_with("\r\n\r\n") {
                assert_ne!(socket.read_line(&mut line).await.unwrap(), 0);
            }
            // Longer than the time-out, and than the supervisor takes to notice.
            for _ in 0..10 {
                sleep(Duration::from_millis(100)).await;
                socket.write_all(b"still here").await.unwrap();
                let mut echoed = [0; 10];
                socket.read_exact(&mut echoed).await.expect("it is open");
            }
            assert_eq!(rig.gateway.status().hung, 0);
            drop(socket);
        };
        let (posted, ()) = tokio::join!(posting, spoken);
        assert!(posted.iter().all(|response| text(response) == "plain"));
        let mean = rig.gateway.status().queue.busy_mean_micros;
        assert!(
            mean < 500_000,
            "its time counts as that of a request: {mean}"
        );
        rig.end().await;
    })
    .await;
}

async fn ask_on(mut stream: TcpStream, asked: &str) -> String {
    stream.write_all(asked.as_bytes()).await.unwrap();
    response_of(stream).await
}

/// Returns the response with its body, by its length or up to the end of the connection.
async fn response_of(mut stream: TcpStream) -> String {
    let mut response = String::new();
    loop {
        if let Some((head, body)) = response.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(": ")?;
                name.eq_ignore_ascii_case("content-length")
                    .then(|| value.parse::<usize>())
            });
            if length.is_some_and(|length| length.is_ok_and(|length| body.len() >= length)) {
                return response;
            }
        }
        let mut bytes = [0; 1_000];
        match stream.read(&mut bytes).await.unwrap() {
            0 => return response,
            count => response.push_str(std::str::from_utf8(&bytes[..count]).unwrap()),
        }
    }
}

#[tokio::test]
async fn a_drain_ends_what_has_left_http() {
    within(async {
        for app in [EVENTS, BLOCKING] {
            let rig = Rig::serve(&format!("{WEBSOCKET}{app}")).await;
            let mut socket = open(&rig).await;
            say(&mut socket, "hello").await;
            assert!(hear(&mut socket).await.ends_with("hello"));
            let listening = async {
                while socket.next().await.is_some_and(|frame| frame.is_ok()) {}
                drop(socket);
            };
            tokio::join!(rig.end(), listening);
        }
    })
    .await;
}

/// Twiggy passes the client's socket to a delayed response's sub behind the responder. A sub with a
/// signature takes no argument that it does not name.
const SECOND_ARGUMENT: &str = r#"
    use feature 'signatures'; no warnings;
    sub {
        my $env = shift;
        return sub ($respond) { $respond->([200, [], ['without']]) } if !$env->{'psgix.io'};
        sub {
            my ($respond, $socket) = @_;
            syswrite $socket, "HTTP/1.1 101 Switching Protocols\r\n"
                . "Upgrade: x\r\nConnection: Upgrade\r\n\r\nraw";
            close $socket;
            close $env->{'psgix.io'};
        };
    };
"#;

#[tokio::test]
async fn a_delayed_response_is_given_the_socket_as_twiggy_does() {
    within(async {
        let rig = Rig::serve(SECOND_ARGUMENT).await;
        assert_eq!(text(&rig.get("/").await), "without");
        let ask = b"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n";
        let response = rig.exchange(ask).await;
        assert!(response.starts_with("HTTP/1.1 101 "), "{response}");
        assert!(response.ends_with("raw"), "{response}");
        rig.end().await;
    })
    .await;
}

/// Field names that no convention writes so.
const SPELLED: &str = r#"
    sub {
        my $env = shift;
        my $io = $env->{'psgix.io'};
        return [426, ['ETag' => 1, 'X-CamelCase' => 'yes', 'UPGRADE' => 'x'], ['no']]
            if $env->{PATH_INFO} eq '/refused';
        my $head = $env->{PATH_INFO} eq '/raw' ? '403 No' : '101 Switching Protocols';
        syswrite $io, "HTTP/1.1 $head\r\nConnection: Upgrade\r\nUPGRADE: x\r\n"
            . "Sec-WebSocket-Accept: a\r\nX-camelCASE: yes\r\nDATE: now\r\n\r\nx-camelcase: no";
        close $io;
        sub { };
    };
"#;

#[tokio::test]
async fn names_keep_their_case_in_responses_to_an_upgrade() {
    within(async {
        let rig = Rig::serve(SPELLED).await;
        for (path, status) in [("/", "101 Switching Protocols"), ("/raw", "403 Forbidden")] {
            let response = rig.exchange(asking("GET", path, "").as_bytes()).await;
            let (head, body) = response.split_once("\r\n\r\n").expect("it has a head");
            let mut fields: Vec<_> = head.split("\r\n").collect();
            assert_eq!(fields.remove(0), format!("HTTP/1.1 {status}"));
            for field in [
                "UPGRADE: x",
                "Sec-WebSocket-Accept: a",
                "X-camelCASE: yes",
                "DATE: now",
            ] {
                assert!(fields.contains(&field), "{path}: {response}");
            }
            assert!(body.contains("x-camelcase: no"), "{path}: {response}");
        }
        let response = rig.exchange(asking("GET", "/refused", "").as_bytes()).await;
        for field in ["ETag: 1", "X-CamelCase: yes", "Connection: close", "Date: "] {
            assert!(response.contains(&format!("\r\n{field}")), "{response}");
        }
        rig.end().await;
    })
    .await;
}

/// Responses that HTTP forbids, on the socket and off it.
const FORBIDDEN: &str = r#"
    sub {
        my $env = shift;
        return [200, ['X-A' => "one\r\nX-B: two"], []] if $env->{PATH_INFO} eq '/split';
        my $io = $env->{'psgix.io'};
        syswrite $io, "no HTTP\r\n\r\n" if $env->{PATH_INFO} eq '/wrong';
        close $io;
        [200, [], []];
    };
"#;

#[tokio::test]
async fn what_an_application_does_wrong_is_a_500_where_the_client_offered_to_leave_http() {
    within(async {
        let rig = Rig::serve(FORBIDDEN).await;
        for path in ["/split", "/wrong"] {
            let ask = format!(
                "GET {path} HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, close\r\n\
                 Upgrade: x\r\n\r\n"
            );
            let response = rig.exchange(ask.as_bytes()).await;
            assert!(response.starts_with("HTTP/1.1 500 "), "{path}: {response}");
        }
        rig.end().await;
    })
    .await;
}
