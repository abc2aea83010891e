//! The start of a gateway.

use std::path::Path;
use std::sync::Arc;

use crate::builder::Builder;
use crate::error::StartError;
use crate::gateway::Gateway;
use crate::supervisor;

impl Builder {
    /// Starts Perl and returns when the first worker is ready; the others join it as they have
    /// loaded. Needs a tokio runtime with I/O and time; the gateway lives on that runtime.
    ///
    /// # Errors
    ///
    /// [`StartError`]: an invalid setting, no Perl, or an application that cannot be loaded, with
    /// Perl's message. Nothing is left running then.
    pub async fn start(self) -> Result<Gateway, StartError> {
        self.settings.check()?;
        let started = supervisor::start(Arc::new(self.settings)).await?;
        Ok(Gateway::new(started.shared, started.commands))
    }

    /// Attaches to a Perl process that has the application loaded and forks workers on demand: the
    /// process that has started this one with one end of a socket pair as its standard input
    /// (`plackup -s Greenroom`). That process binds the workers' sockets in `directory`, and
    /// removes it. A reload forks new workers from the loaded application; settings for the start
    /// of Perl, and [`reload_on_change`](Self::reload_on_change), have no effect.
    /// [`Gateway::closed`] returns when the process ends.
    ///
    /// # Errors
    ///
    /// [`StartError`]: as for [`start`](Self::start), and if standard input is no such socket.
    pub async fn start_attached(self, directory: &Path) -> Result<Gateway, StartError> {
        self.settings.check()?;
        let started = supervisor::start_attached(Arc::new(self.settings), directory).await?;
        Ok(Gateway::new(started.shared, started.commands))
    }
}
