//! A mailer: handlers of requests hand letters over and go on; one actor delivers them, as fast as
//! the mail server takes them.
//!
//! `cargo run -p greenroom-actor --example mailer`

use std::io::{self, Write};
use std::time::Duration;

use greenroom_actor::{Actor, ActorSystem, Mailbox, Reason, ShutdownReport, messages};
use tokio::sync::mpsc;

/// A connection to a mail server. Over SMTP this is `AsyncSmtpTransport` of the crate lettre.
#[derive(Clone)]
struct Server {
    delivered: mpsc::UnboundedSender<String>,
}

impl Server {
    /// Mail servers take their time.
    const A_LETTER_TAKES: Duration = Duration::from_millis(2);

    async fn deliver(&self, letter: String) {
        tokio::time::sleep(Self::A_LETTER_TAKES).await;
        // The program goes on when nobody looks at the letters any more.
        let _ = self.delivered.send(letter);
    }
}

struct Mailer {
    server: Server,
}

impl Actor for Mailer {
    fn mailbox() -> Mailbox {
        Mailbox::bounded(100)
    }
}

#[messages]
impl Mailer {
    /// A letter of text.
    #[message]
    async fn text(&mut self, to: String, content: String) {
        let name = name_of(&to);
        self.server
            .deliver(format!("to {to}: Dear {name}, {content}"))
            .await;
    }

    /// A letter with a picture.
    #[message]
    async fn image(&mut self, to: String, image: String) {
        self.server.deliver(format!("to {to}: [{image}]")).await;
    }
}

/// Has a bug: an address need not have an `@`.
fn name_of(address: &str) -> &str {
    let (name, _) = address
        .split_once('@')
        .expect("an address has a name and a host");
    name
}

/// The outcomes of some letters.
struct Outcome {
    refused: usize,
    delivered: Vec<String>,
    dead: u64,
    report: ShutdownReport,
}

async fn send_letters() -> Result<Outcome, Box<dyn std::error::Error>> {
    let (sender, mut delivered) = mpsc::unbounded_channel();
    let server = Server { delivered: sender };
    let system = ActorSystem::new()?;
    let mailer = system.spawn(move || Mailer {
        server: server.clone(),
    });

    // None of these waits for the mail server.
    mailer.text("john".to_owned(), "hello".to_owned()).tell()?;
    mailer
        .image("jane@doe.com".to_owned(), "cat.png".to_owned())
        .tell()?;
    let mut refused = 0;
    for number in 1..=120 {
        let told = mailer
            .text(
                "john@doe.com".to_owned(),
                format!("hello for the {number}. time"),
            )
            .tell();
        if let Err(error) = told {
            // Here a request would get 503. The letter is still there.
            let Text { .. } = error.into_message();
            refused += 1;
        }
    }

    // The first letter panics, the mailer rests for a moment and begins anew: here is the second.
    let mut letters: Vec<_> = delivered.recv().await.into_iter().collect();
    // What is in the mailbox is delivered before the program ends.
    let report = system.shutdown(Duration::from_secs(10)).await;
    drop(mailer);
    while let Some(letter) = delivered.recv().await {
        letters.push(letter);
    }
    Ok(Outcome {
        refused,
        delivered: letters,
        dead: system.dead_letters().count(Reason::Failed),
        report,
    })
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let Outcome {
        refused,
        delivered,
        dead,
        report,
    } = send_letters().await?;
    writeln!(
        io::stdout(),
        "delivered {}, refused {refused} while the mailbox was full, dead {dead}; \
         clean shutdown: {}",
        delivered.len(),
        report.is_clean(),
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn delivers_what_fits_into_the_mailbox_and_outlives_a_letter_that_panics() {
        let outcome = send_letters().await.expect("letters are sent");
        assert_eq!(outcome.refused, 22);
        assert_eq!(outcome.dead, 1);
        assert!(outcome.report.is_clean());
        let delivered = outcome.delivered;
        assert_eq!(delivered.len(), 99);
        assert_eq!(delivered[0], "to jane@doe.com: [cat.png]");
        assert_eq!(
            delivered[98],
            "to john@doe.com: Dear john, hello for the 98. time"
        );
    }
}
