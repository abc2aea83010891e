//! Every program serves all handlers, however the requests come.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const CONNECTIONS: usize = 500;
/// The hundredth Fibonacci number.
const HUNDREDTH: &str = "354224848179261915075\n";

macro_rules! programs {
    ($($test:ident: $program:literal,)*) => {$(
        #[test]
        fn $test() {
            serves(env!(concat!("CARGO_BIN_EXE_", $program)));
        }
    )*};
}

programs! {
    thread_per_request: "thread-per-request",
    thread_pool: "thread-pool",
    event_loop: "event-loop",
    loop_per_core: "loop-per-core",
    loop_and_pool: "loop-and-pool",
    seda: "seda",
    actors: "actors",
    placed: "placed",
}

fn serves(program: &str) {
    let server = Server::start(program);
    every_handler(&server);
    pipelined(&server);
    split_heads(&server);
    ends(&server);
    many_connections(&server);
}

fn every_handler(server: &Server) {
    let mut client = server.connect();
    assert_eq!(client.get("/hello"), (200, "Hello, world!\n".to_owned()));
    let begun = Instant::now();
    assert_eq!(client.get("/wait/30"), (200, "waited\n".to_owned()));
    assert!(begun.elapsed() >= Duration::from_millis(30));
    assert_eq!(client.get("/compute/100"), (200, HUNDREDTH.to_owned()));
    let begun = Instant::now();
    assert_eq!(client.get("/both/30/100"), (200, HUNDREDTH.to_owned()));
    assert!(begun.elapsed() >= Duration::from_millis(30));
    for count in 1..=3 {
        assert_eq!(client.get("/count"), (200, format!("{count}\n")));
    }
    for path in ["/nothing", "/compute/100001", "/wait/60001", "/hello/1"] {
        assert_eq!(client.get(path).0, 404, "{path}");
    }
}

fn pipelined(server: &Server) {
    let mut client = server.connect();
    let paths = ["/both/20/100", "/hello", "/compute/100", "/hello"];
    client.send(&paths.map(request).concat());
    let bodies = paths.map(|_| client.response().1);
    let hello = "Hello, world!\n";
    assert_eq!(bodies, [HUNDREDTH, hello, HUNDREDTH, hello]);

    client.send(&request("/hello").repeat(100));
    for _ in 0..100 {
        assert_eq!(client.response().0, 200);
    }
}

fn split_heads(server: &Server) {
    let mut client = server.connect();
    for part in request("/compute/100").as_bytes().chunks(7) {
        client.send(std::str::from_utf8(part).expect("ASCII"));
    }
    assert_eq!(client.response(), (200, HUNDREDTH.to_owned()));
}

fn ends(server: &Server) {
    let mut client = server.connect();
    client.send("GET /hello HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    assert_eq!(client.response().0, 200);
    assert_eq!(client.rest(), "");

    let mut client = server.connect();
    client.send("GET /hello\r\n\r\n");
    assert_eq!(client.response().0, 400);
    assert_eq!(client.rest(), "");
}

fn many_connections(server: &Server) {
    let mut clients: Vec<_> = (0..CONNECTIONS).map(|_| server.connect()).collect();
    for path in ["/both/50/100", "/count"] {
        for client in &mut clients {
            // A pool whose threads are all taken has closed some.
            *client = server.connect();
            client.send(&request(path));
        }
        let mut bodies: Vec<_> = clients.iter_mut().map(Client::response).collect();
        bodies.sort_unstable_by_key(|(_, body)| body.trim_end().parse::<u128>().ok());
        for (index, (status, body)) in bodies.into_iter().enumerate() {
            assert_eq!(status, 200);
            let expected = match path {
                "/count" => format!("{}\n", index + 4),
                _ => HUNDREDTH.to_owned(),
            };
            assert_eq!(body, expected);
        }
    }
}

fn request(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n")
}

struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(program: &str) -> Self {
        let mut command = Command::new(program);
        command.args(["--listen", "127.0.0.1:0"]);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("starts");
        let mut line = String::new();
        let out = child.stdout.take().expect("it is piped");
        BufReader::new(out).read_line(&mut line).expect("a line");
        let address = line.trim_end().strip_prefix("listening on ");
        Self {
            address: address.expect("an address").to_owned(),
            child,
        }
    }

    fn connect(&self) -> Client {
        let stream = TcpStream::connect(&self.address).expect("connects");
        stream.set_nodelay(true).expect("set");
        let deadline = Some(Duration::from_mins(1));
        stream.set_read_timeout(deadline).expect("set");
        Client {
            reader: BufReader::new(stream),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Client {
    reader: BufReader<TcpStream>,
}

impl Client {
    fn get(&mut self, path: &str) -> (u16, String) {
        self.send(&request(path));
        self.response()
    }

    fn send(&mut self, text: &str) {
        let stream = self.reader.get_mut();
        stream.write_all(text.as_bytes()).expect("sent");
    }

    fn response(&mut self) -> (u16, String) {
        let mut line = String::new();
        self.reader.read_line(&mut line).expect("a status line");
        let status = line.split(' ').nth(1).expect("a status");
        let status = status.parse().expect("a number");
        let mut length = 0;
        while line != "\r\n" {
            line.clear();
            assert!(self.reader.read_line(&mut line).expect("a field") > 0);
            if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().expect("a length");
            }
        }
        let mut body = vec![0; length];
        self.reader.read_exact(&mut body).expect("a body");
        (status, String::from_utf8(body).expect("text"))
    }

    /// Reads until the server closes.
    fn rest(&mut self) -> String {
        let mut rest = String::new();
        self.reader
            .read_to_string(&mut rest)
            .expect("an orderly end");
        rest
    }
}
