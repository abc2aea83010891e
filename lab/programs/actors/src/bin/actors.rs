//! The cases with one library: `actors --peer tokio --case tell`.

use clap::Parser;
use lab_actors::{Arguments, print};

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    print(&arguments.run()?)
}
