//! Generation of the methods of the references to the actor: `ActorRef`, and `Remote` of
//! greenroom-cluster.

use std::collections::BTreeMap;

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote, quote_spanned};

use super::{allow_deprecated, conditions, marker, message_type};
use crate::attributes::docs_or;
use crate::block::Block;
use crate::message::{Message, place};
use crate::remote::Remote;
use crate::visibility::Reach;

/// A type of references, whose methods give the messages.
struct Reference<'a> {
    block: &'a Block,
    trait_name: &'a Ident,
    /// The path of the type.
    receiver: TokenStream,
    /// The path of what the methods return: a message with its receiver.
    call: TokenStream,
    /// The docs of the traits.
    docs: String,
}

pub(super) fn of_actor(block: &Block) -> TokenStream {
    let root = &block.root;
    Reference {
        block,
        trait_name: &block.trait_name,
        receiver: quote!(#root::ActorRef),
        call: quote!(#root::Call),
        docs: format!(
            "The messages of `{}`, as methods of its `ActorRef`: each gives a `Call`, to tell, to \
             send or to ask.",
            block.actor_name
        ),
    }
    .traits()
}

pub(super) fn of_remote(block: &Block, remote: &Remote) -> TokenStream {
    let root = &remote.root;
    Reference {
        block,
        trait_name: &remote.trait_name,
        receiver: quote!(#root::Remote),
        call: quote!(#root::RemoteCall),
        docs: format!(
            "The messages of `{}`, as methods of its `Remote`: each gives a `RemoteCall`, to ask, \
             to tell or to deliver.",
            block.actor_name
        ),
    }
    .traits()
}

impl Reference<'_> {
    /// Generates one trait for each visibility: a trait that is more visible than one of its
    /// messages would let others send it.
    fn traits(&self) -> TokenStream {
        let mut by_reach = BTreeMap::<Reach, Vec<&Message>>::new();
        for message in &self.block.messages {
            by_reach.entry(message.reach).or_default().push(message);
        }
        let widest = by_reach.keys().last().copied();
        let traits = by_reach.iter().map(|(reach, messages)| {
            let name = if widest == Some(*reach) {
                self.trait_name.clone()
            } else {
                format_ident!("{}{}", reach.prefix(), self.trait_name)
            };
            self.one(&name, messages)
        });
        quote!(#(#traits)*)
    }

    fn one(&self, name: &Ident, messages: &[&Message]) -> TokenStream {
        let Block {
            actor, conditions, ..
        } = self.block;
        let visibility = messages.first().map(|message| &message.visibility);
        let (generics, arguments, bounds) = self.block.generics.split_for_impl();
        let (receiver, docs) = (&self.receiver, &self.docs);
        let declared = messages.iter().map(|message| self.declaration(message));
        let defined = messages.iter().map(|message| self.definition(message));
        quote_spanned! { place(&self.block.actor_name)=>
            #(#conditions)*
            #[doc = #docs]
            #visibility trait #name #generics #bounds {
                #(#declared)*
            }

            #(#conditions)*
            #[automatically_derived]
            impl #generics #name #arguments for #receiver<#actor> #bounds {
                #(#defined)*
            }
        }
    }

    fn declaration(&self, message: &Message) -> TokenStream {
        let conditions = conditions(self.block, message);
        let shared = &message.shared;
        let docs = docs_or(
            &shared.docs,
            &format!("Gives the message `{}`.", message.name),
        );
        let (allowed, deprecated) = (&shared.allowed, &shared.deprecated);
        let signature = self.signature(message);
        quote_spanned!(message.place()=> #conditions #(#docs)* #(#allowed)* #deprecated #signature;)
    }

    fn definition(&self, message: &Message) -> TokenStream {
        let conditions = conditions(self.block, message);
        let allow_deprecated = allow_deprecated(message);
        let signature = self.signature(message);
        let (call, name) = (&self.call, &message.name);
        let fields: Vec<_> = message.fields().map(|field| &field.name).collect();
        let fields =
            (!fields.is_empty()).then(|| quote_spanned!(message.place()=> { #(#fields),* }));
        quote_spanned! { message.place()=>
            #conditions
            #allow_deprecated
            #[inline]
            #signature {
                #call::new(self, #name #fields)
            }
        }
    }

    fn signature(&self, message: &Message) -> TokenStream {
        let Block { root, actor, .. } = self.block;
        let (method, call) = (&message.method, &self.call);
        let fields = message.fields().map(|field| {
            let (name, ty) = (&field.name, &field.ty);
            quote_spanned!(message.place()=> #name: #ty)
        });
        let message_type = message_type(self.block, message);
        let marker = marker(message);
        quote_spanned! { message.place()=>
            fn #method(&self, #(#fields),*)
                -> #call<'_, #actor, #message_type, #root::marker::#marker>
        }
    }
}
