//! Applies a worker's frames to the requests that they name.

use super::connection::{Link, key_of, wire_id};
use super::entry::{Beginning, End, Entry};
use super::parse::{BadFrame, FINAL, Fields, INFORMATIONAL};
use crate::frame::Frame;
use crate::pool::Settlement;

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
        let held_run = entry.phase.holds_run();
        receive(id, entry, frame.kind, fields, &mut settlement)?;
        if held_run && !entry.phase.holds_run() && entry.place.behind.is_some() {
            self.behind.set(self.behind.get() - 1);
        }
        if entry.is_abandoned() && matches!(frame.kind, b'h' | b's') {
            // A call that runs an event loop of its own may have been told before there was
            // anything that could end.
            self.send_note_of(id, b'G', None);
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
            entry.release(fields.busy()?, false, settlement);
            let beginning = match fields.head(FINAL)? {
                Ok(head) => Beginning::Whole(head, fields.rest()),
                Err(malformed) => Beginning::Malformed(malformed),
            };
            begin(id, entry, beginning)?;
            entry.finish(End::Complete, settlement);
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
            entry.release(fields.busy()?, false, settlement);
            let end = if kind == b'e' {
                End::Complete
            } else {
                End::Aborted
            };
            entry.finish(end, settlement);
        }
        b'w' => entry.release(fields.busy()?, true, settlement),
        b's' => {
            entry.release(fields.busy()?, true, settlement);
            let beginning = match (fields.head(FINAL)?, fields.file()?) {
                (Ok(head), file) => Beginning::File(head, file),
                (Err(malformed), _) => Beginning::Malformed(malformed),
            };
            begin(id, entry, beginning)?;
            if entry.is_abandoned() {
                entry.finish(End::Complete, settlement);
            }
            entry.holds_file = true;
        }
        b'i' => match fields.head(INFORMATIONAL)? {
            Ok(head) => entry.informational.push(head),
            Err(malformed) => {
                tracing::warn!(
                    %malformed,
                    "an informational response that HTTP forbids is dropped"
                );
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
