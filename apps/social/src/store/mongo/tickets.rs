//! Tickets: rights that were sent by mail.

use jiff::Timestamp;

use super::records::{Expiring, nanoseconds};
use super::tables::{Tables, delete, find, insert};
use crate::model::Ticket;
use crate::store::{Result, StoreError};

impl Tables {
    pub(super) async fn insert_ticket(&self, ticket: &Ticket) -> Result<()> {
        let document = Expiring {
            id: ticket.token_hash.clone(),
            expires: nanoseconds(ticket.expires_at),
            record: ticket.clone(),
        };
        if insert(&self.tickets, &document).await? {
            return Ok(());
        }
        Err(StoreError::Conflict("there is a ticket of this token"))
    }

    pub(super) async fn ticket(&self, token_hash: &str, now: Timestamp) -> Result<Option<Ticket>> {
        let stored = find(&self.tickets, token_hash).await?;
        let ticket = stored.map(|stored| stored.record);
        Ok(ticket.filter(|ticket| ticket.expires_at > now))
    }

    pub(super) async fn delete_ticket(&self, token_hash: &str) -> Result<bool> {
        delete(&self.tickets, token_hash).await
    }
}
