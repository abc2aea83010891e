//! Servers on a port of this machine.

use std::net::SocketAddr;
use std::thread;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::oneshot;
use tokio::task::spawn_local;

/// A server in a thread of its own; it ends when dropped.
pub(super) struct Server {
    pub(super) address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Server {
    /// Starts a server; each connection is served by a task of the future that `serve` returns.
    pub(super) fn start<F>(serve: impl Fn(TcpStream) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + 'static,
    {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let (stop, stopped) = oneshot::channel();
        let thread = thread::spawn(move || {
            on_this_thread(async move {
                tokio::select! {
                    () = accept(listener, serve) => {}
                    _ = stopped => {}
                }
            });
        });
        Self {
            address,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    /// Starts a server that reads, sends `words`, and closes.
    pub(super) fn saying(words: &'static [u8]) -> Self {
        Self::start(move |mut stream| async move {
            let _ = stream.read(&mut [0; 1024]).await;
            let _ = stream.write_all(words).await;
            let _ = stream.shutdown().await;
            // Closing with unread bytes would be a reset.
            while matches!(stream.read(&mut [0; 1024]).await, Ok(count) if count > 0) {}
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Returns a port on which no process listens.
pub(super) fn nobody() -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
    listener.local_addr().expect("it is bound")
}

pub(super) fn on_this_thread(task: impl Future<Output = ()>) {
    Builder::new_current_thread()
        .enable_all()
        .build_local(LocalOptions::default())
        .expect("a runtime")
        .block_on(task);
}

async fn accept<F>(listener: std::net::TcpListener, serve: impl Fn(TcpStream) -> F)
where
    F: Future<Output = ()> + 'static,
{
    listener.set_nonblocking(true).expect("a socket");
    let listener = TcpListener::from_std(listener).expect("a listener");
    loop {
        let (stream, _) = listener.accept().await.expect("a connection");
        spawn_local(serve(stream));
    }
}
