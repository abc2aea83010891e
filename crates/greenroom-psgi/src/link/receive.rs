//! Applies a worker's frames to the requests that they name.

use std::time::Duration;

use super::entry::{Beginning, End, Entry, Hold, Lost};
use super::parse::{BadFrame, FINAL, Fields, INFORMATIONAL};
use super::{Link, key_of, wire_id};
use crate::frame::Frame;
use crate::pool::{RunEnd, Settlement};

impl Link {
    pub(super) fn take_frame(&self, frame: Frame<'_>) -> Result<(), BadFrame> {
        let mut fields = Fields::new(frame.payload, &self.spellings);
        let id = fields.number()?;
        let mut entries = self.entries.borrow_mut();
        let mut settlement = self.settlement.borrow_mut();
        settlement.progress = true;
        let key = key_of(id);
        let known = entries
            .get_mut(key)
            .filter(|entry| !entry.is_over() && wire_id(key, entry.sequence) == id);
        let Some(entry) = known else {
            // An application may send an informational response even after the final one.
            return match frame.kind {
                b'i' => Ok(()),
                _ => Err(BadFrame::Unknown(id)),
            };
        };
        let held = entry.hold;
        receive(id, entry, frame.kind, fields, &mut settlement)?;
        if held == Hold::Run && entry.hold != held && entry.place.behind.is_some() {
            self.behind.set(self.behind.get() - 1);
        }
        if entry.is_over() && entry.is_abandoned() {
            entries.remove(key);
        }
        Ok(())
    }
}

fn receive(
    id: u32,
    entry: &mut Entry,
    kind: u8,
    mut fields: Fields<'_>,
    settlement: &mut Settlement,
) -> Result<(), BadFrame> {
    match kind {
        b'r' => {
            release(entry, &mut fields, settlement)?;
            let beginning = match fields.head(FINAL)? {
                Ok(head) => Beginning::Whole(head, fields.rest()),
                Err(malformed) => Beginning::Malformed(malformed),
            };
            begin(id, entry, beginning)?;
            finish(entry, End::Complete, settlement);
        }
        b'h' => {
            let beginning = match fields.head(FINAL)? {
                Ok(head) => Beginning::Streamed(head),
                Err(malformed) => Beginning::Malformed(malformed),
            };
            begin(id, entry, beginning)?;
        }
        b'd' => {
            let bytes = fields.rest();
            if !entry.is_abandoned() && !bytes.is_empty() {
                entry.add(bytes, settlement);
            }
        }
        b'e' | b'x' => {
            release(entry, &mut fields, settlement)?;
            let end = if kind == b'e' {
                End::Complete
            } else {
                End::Aborted
            };
            finish(entry, end, settlement);
        }
        b'w' => {
            release(entry, &mut fields, settlement)?;
            go_on(entry, settlement);
        }
        b's' => {
            release(entry, &mut fields, settlement)?;
            go_on(entry, settlement);
            let beginning = match (fields.head(FINAL)?, fields.file()?) {
                (Ok(head), file) => Beginning::File(head, file),
                (Err(malformed), _) => Beginning::Malformed(malformed),
            };
            begin(id, entry, beginning)?;
            if entry.is_abandoned() {
                finish(entry, End::Complete, settlement);
            }
            entry.holds_file = true;
        }
        b'i' => match fields.head(INFORMATIONAL)? {
            Ok(head) => entry.informational.push(head),
            Err(malformed) => {
                tracing::warn!(%malformed, "an informational answer that HTTP forbids is dropped");
            }
        },
        unknown => return Err(BadFrame::Kind(unknown)),
    }
    entry.wake();
    Ok(())
}

fn begin(id: u32, entry: &mut Entry, beginning: Beginning) -> Result<(), BadFrame> {
    if entry.has_begun {
        return Err(BadFrame::Second(id));
    }
    entry.has_begun = true;
    if !entry.is_abandoned() {
        entry.beginning = Some(beginning);
    }
    Ok(())
}

/// Releases the run, once.
fn release(
    entry: &mut Entry,
    fields: &mut Fields<'_>,
    settlement: &mut Settlement,
) -> Result<(), BadFrame> {
    let busy = Duration::from_micros(fields.number()?.into());
    if entry.hold != Hold::Run {
        return Ok(());
    }
    entry.hold = Hold::Nothing;
    let end = if entry.is_abandoned() && busy.is_zero() {
        RunEnd::Unused
    } else {
        RunEnd::Released(busy)
    };
    settlement.ended.push((entry.place.charge, end));
    entry.end_exemption(settlement);
    Ok(())
}

/// Marks that the request goes on without a run.
fn go_on(entry: &mut Entry, settlement: &mut Settlement) {
    if entry.hold == Hold::Nothing {
        entry.hold = Hold::Waiting;
        settlement.went_on += 1;
        settlement.left += u32::from(entry.is_abandoned());
    }
}

/// Ends the request: the worker has finished with it.
pub(super) fn finish(entry: &mut Entry, end: End, settlement: &mut Settlement) {
    if entry.hold == Hold::Waiting {
        let is_unwanted = u32::from(entry.is_abandoned());
        settlement.left_ended += is_unwanted;
        settlement.ended_late += 1 - is_unwanted;
    }
    entry.end(end);
}

/// Ends a request whose worker, or loop, is gone: for the pool it is over.
pub(super) fn lose(entry: &mut Entry, lost: Lost, settlement: &mut Settlement) {
    if entry.hold == Hold::Run {
        let has_begun = lost == Lost::Begun;
        let end = RunEnd::Lost { has_begun };
        settlement.ended.push((entry.place.charge, end));
    }
    entry.end_exemption(settlement);
    finish(entry, End::Lost(lost), settlement);
}
