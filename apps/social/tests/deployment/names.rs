//! A name server for one kind of question: the IPv4 address of a name.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

/// Constants of RFC 1035, 4.1.1: a header's length, and its flags for "recursion is available" and
/// "there is no such name".
const HEADER: usize = 12;
const RESPONSE: u8 = 0x84;
const NO_SUCH_NAME: u8 = 3;

type Addresses = Arc<Mutex<HashMap<String, IpAddr>>>;

pub(crate) struct Names {
    pub(crate) address: SocketAddr,
    addresses: Addresses,
    task: JoinHandle<()>,
}

impl Names {
    pub(crate) async fn start() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").await.expect("a port");
        let address = socket.local_addr().expect("it is bound");
        let addresses = Addresses::default();
        let task = tokio::spawn(serve(socket, Arc::clone(&addresses)));
        Self {
            address,
            addresses,
            task,
        }
    }

    /// Sets the name's address from now on.
    pub(crate) fn set(&self, name: &str, address: IpAddr) {
        let mut addresses = self
            .addresses
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        addresses.insert(name.to_owned(), address);
    }
}

impl Drop for Names {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(socket: UdpSocket, addresses: Addresses) {
    let mut question = [0; 512];
    while let Ok((length, from)) = socket.recv_from(&mut question).await {
        if let Some(response) = response(&question[..length], &addresses) {
            // The client repeats the question if this fails.
            let _ = socket.send_to(&response, from).await;
        }
    }
}

/// Returns the question with the records of the response appended; `None` if it is no question.
fn response(message: &[u8], addresses: &Addresses) -> Option<Vec<u8>> {
    let mut name = Vec::new();
    let mut at = HEADER;
    while let length @ 1.. = usize::from(*message.get(at)?) {
        name.push(String::from_utf8_lossy(message.get(at + 1..=at + length)?).into_owned());
        at += 1 + length;
    }
    let question_end = at + 5;
    let is_a = message.get(at + 1..at + 3)? == [0, 1];
    let name = name.join(".");
    let known = addresses
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .get(&name)
        .copied();
    let mut response = message.get(..question_end)?.to_vec();
    response[2] = RESPONSE;
    response[3] = if known.is_some() { 0 } else { NO_SUCH_NAME };
    // No records but the question's.
    response[6..HEADER].fill(0);
    if let (true, Some(IpAddr::V4(address))) = (is_a, known) {
        response[7] = 1;
        // The question's name, an address of the internet, for one second, four bytes.
        response.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4]);
        response.extend(address.octets());
    }
    Some(response)
}
