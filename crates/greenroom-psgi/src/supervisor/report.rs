/// The result of a gateway's shutdown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShutdownReport {
    /// The workers that did not finish in time.
    pub killed: Vec<KilledWorker>,
}

/// A worker that was killed because it did not finish in time.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KilledWorker {
    /// The worker's number within the gateway.
    pub key: u32,
    /// The process id that it had.
    pub pid: i32,
}
