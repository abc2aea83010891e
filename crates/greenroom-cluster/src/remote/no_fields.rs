use serde::{Deserialize, Serialize};

/// The form in which a message without fields travels: a map without entries. Entries of a newer
/// version are passed over, which a unit would refuse.
#[derive(Serialize, Deserialize)]
pub struct NoFields {}
