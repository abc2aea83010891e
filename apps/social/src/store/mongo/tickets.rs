//! Tickets: rights that were sent by mail.

use jiff::Timestamp;
use mongodb::bson::doc;

use super::records::{Expiring, nanoseconds};
use super::tables::{Tables, delete, delete_all, find, insert};
use crate::model::{Id, Ticket, TicketPurpose};
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

    pub(super) async fn delete_tickets(&self, user: Id, purpose: TicketPurpose) -> Result<()> {
        let of_user = doc! { "record.user": user.to_string(), "record.purpose": purpose.name() };
        delete_all(&self.tickets, of_user).await
    }
}
