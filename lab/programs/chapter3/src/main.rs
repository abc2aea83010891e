//! The programs of the thesis' third chapter with Greenroom.
//!
//! ```text
//! lab-chapter3 serve ADDRESS                   3.1 to 3.3, 3.5, 3.7 to 3.10
//! lab-chapter3 mailer LETTERS QUESTIONS        3.11 and 3.12
//! lab-chapter3 events EVENTS                   3.4
//! ```

mod messages;
mod server;

use std::env;
use std::io::{self, Write};

use anyhow::{Context, bail};

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let figures = match words[..] {
        ["serve", address] => return server::serve(address).await,
        ["mailer", letters, questions] => {
            messages::mailer(number(letters)?, number(questions)?).await?
        }
        ["events", events] => messages::events(number(events)?).await?,
        _ => bail!("see the first lines of main.rs"),
    };
    writeln!(io::stdout(), "{figures}")?;
    Ok(())
}

fn number(word: &str) -> anyhow::Result<u32> {
    word.parse().with_context(|| format!("{word} is no number"))
}
