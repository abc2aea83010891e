//! A way through which connections go, and which can be held or shut.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// A port of the loopback that passes on to another one. Whoever connects waits until the test says
/// where that is.
pub(crate) struct Gate {
    pub(crate) port: u16,
    to: watch::Sender<u16>,
    state: watch::Sender<State>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// Connections stand still, and lose nothing.
    Held,
    /// Connections are lost, and new ones as well.
    Shut,
}

impl Gate {
    pub(crate) async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let gate = Self {
            port: listener.local_addr().expect("it is bound").port(),
            to: watch::Sender::new(0),
            state: watch::Sender::new(State::Open),
        };
        let (to, state) = (gate.to.subscribe(), gate.state.subscribe());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(pass(stream, to.clone(), state.clone()));
            }
        });
        gate
    }

    pub(crate) fn lead_to(&self, port: u16) {
        self.to.send_replace(port);
    }

    pub(crate) fn open(&self) {
        self.state.send_replace(State::Open);
    }

    pub(crate) fn hold(&self) {
        self.state.send_replace(State::Held);
    }

    pub(crate) fn shut(&self) {
        self.state.send_replace(State::Shut);
    }
}

/// Passes on both sides of a connection, until one of them ends or the gate is shut.
async fn pass(stream: TcpStream, mut to: watch::Receiver<u16>, state: watch::Receiver<State>) {
    let Ok(port) = to.wait_for(|port| *port > 0).await.map(|port| *port) else {
        return;
    };
    let mut shut = state.clone();
    let both = async {
        let other = TcpStream::connect(("127.0.0.1", port)).await?;
        let ((from, to), (back_from, back_to)) = (stream.into_split(), other.into_split());
        let (there, back) = (
            copy(from, back_to, state.clone()),
            copy(back_from, to, state),
        );
        tokio::select! {
            ended = there => ended,
            ended = back => ended,
        }
    };
    tokio::select! {
        _ended = both => {}
        _shut = shut.wait_for(|state| *state == State::Shut) => {}
    }
}

async fn copy(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut state: watch::Receiver<State>,
) -> io::Result<()> {
    let mut room = vec![0; 64 * 1024];
    loop {
        let read = from.read(&mut room).await?;
        if read == 0 {
            return Ok(());
        }
        let passable = state.wait_for(|state| *state != State::Held).await;
        passable.map_err(io::Error::other)?;
        to.write_all(&room[..read]).await?;
    }
}
