//! Generation of what lets other processes send the messages.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::LitStr;

use super::{conditions, marker, message_type, references};
use crate::block::Block;
use crate::message::{Message, place};
use crate::remote::{Remote, message_name};

/// Generates the names of the actor and of its messages, their registration, and the methods of
/// `Remote`.
pub(super) fn all(block: &Block, remote: &Remote) -> TokenStream {
    let messages = block.messages.iter().map(|message| {
        let name = name_of_message(block, remote, message);
        let codec = has_no_fields(message).then(|| codec_without_fields(block, remote, message));
        quote!(#name #codec)
    });
    let actor = actor(block, remote);
    let references = references::of_remote(block, remote);
    quote!(#(#messages)* #actor #references)
}

/// Returns the attributes of the struct that derive serde's traits.
pub(super) fn derives(remote: &Remote, message: &Message) -> Option<TokenStream> {
    if has_no_fields(message) {
        return None;
    }
    let root = &remote.root;
    let serde = quote!(#root::serde);
    // serde takes the path as a string.
    let path = serde.to_string().replace(' ', "");
    let path = LitStr::new(&path, message.place());
    Some(quote_spanned! { message.place()=>
        #[derive(#serde::Serialize, #serde::Deserialize)]
        #[serde(crate = #path)]
    })
}

fn has_no_fields(message: &Message) -> bool {
    message.fields().next().is_none()
}

/// Writes a message without fields as a struct that has none, not as a unit: a node with an older
/// version of the code then takes it when it has got its first field.
fn codec_without_fields(block: &Block, remote: &Remote, message: &Message) -> TokenStream {
    let (cluster, name) = (&remote.root, &message.name);
    let conditions = conditions(block, message);
    quote_spanned! { message.place()=>
        #conditions
        #[automatically_derived]
        impl #cluster::serde::Serialize for #name {
            fn serialize<S: #cluster::serde::Serializer>(
                &self,
                serializer: S,
            ) -> ::core::result::Result<S::Ok, S::Error> {
                #cluster::serde::Serialize::serialize(&#cluster::NoFields {}, serializer)
            }
        }

        #conditions
        #[automatically_derived]
        impl<'de> #cluster::serde::Deserialize<'de> for #name {
            fn deserialize<D: #cluster::serde::Deserializer<'de>>(
                deserializer: D,
            ) -> ::core::result::Result<Self, D::Error> {
                let read = <#cluster::NoFields as #cluster::serde::Deserialize>::deserialize;
                read(deserializer).map(|#cluster::NoFields {}| Self)
            }
        }
    }
}

fn name_of_message(block: &Block, remote: &Remote, message: &Message) -> TokenStream {
    let (cluster, actor) = (&remote.root, &block.actor);
    let bounds = &block.generics.where_clause;
    let conditions = conditions(block, message);
    let message_type = message_type(block, message);
    let name = message_name(&message.method);
    quote_spanned! { message.place()=>
        #conditions
        #[automatically_derived]
        impl #cluster::RemoteMessage<#message_type> for #actor #bounds {
            const NAME: &'static str = #name;
        }
    }
}

fn actor(block: &Block, remote: &Remote) -> TokenStream {
    let Block {
        actor, conditions, ..
    } = block;
    let Remote {
        root: cluster,
        name,
        ..
    } = remote;
    let bounds = &block.generics.where_clause;
    let registrations = block
        .messages
        .iter()
        .map(|message| registration(block, message));
    // All messages may be under conditions that do not hold.
    quote_spanned! { place(&block.actor_name)=>
        #(#conditions)*
        #[automatically_derived]
        impl #cluster::RemoteActor for #actor #bounds {
            const NAME: &'static str = #name;

            #[allow(unused_variables)]
            fn register(handlers: &mut #cluster::Handlers<Self>) {
                #(#registrations)*
            }
        }
    }
}

fn registration(block: &Block, message: &Message) -> TokenStream {
    let (root, marker) = (&block.root, marker(message));
    let conditions = &message.shared.conditions;
    let message_type = message_type(block, message);
    quote_spanned! { message.place()=>
        #(#conditions)*
        handlers.add::<#message_type, #root::marker::#marker>();
    }
}
