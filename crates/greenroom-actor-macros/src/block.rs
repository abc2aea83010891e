//! Parsing of an `impl` block with `#[messages]`.

use proc_macro2::Ident;
use quote::format_ident;
use syn::visit_mut::VisitMut;
use syn::{Attribute, GenericParam, Generics, ImplItem, ImplItemFn, ItemImpl, Path, Type};

use crate::argument::bare;
use crate::attributes;
use crate::errors::Errors;
use crate::message::Message;
use crate::options::BlockOptions;
use crate::remote::{self, Remote};
use crate::self_type::WriteOut;

/// An `impl` block, parsed into what is generated from it.
pub(crate) struct Block {
    /// The path of greenroom-actor.
    pub(crate) root: Path,
    pub(crate) actor: Type,
    /// The last name in the actor's path.
    pub(crate) actor_name: Ident,
    /// The block's generics without `Self`, which would be another type elsewhere.
    pub(crate) generics: Generics,
    /// `#[cfg(..)]` of the block.
    pub(crate) conditions: Vec<Attribute>,
    pub(crate) trait_name: Ident,
    /// The actor as other processes see it, if they send it messages.
    pub(crate) remote: Option<Remote>,
    /// The messages: one or more.
    pub(crate) messages: Vec<Message>,
    /// The block as it was, without the marks.
    pub(crate) methods: ItemImpl,
}

impl Block {
    pub(crate) fn parse(
        root: &Path,
        options: BlockOptions,
        mut methods: ItemImpl,
    ) -> syn::Result<Self> {
        require_inherent(&methods)?;
        let actor = Type::clone(&methods.self_ty);
        let actor_name = name_of(&actor)?;
        let mut errors = Errors::default();
        errors.note(require_no_lifetimes(&methods.generics));
        let messages = parse_messages(&methods, &actor, &mut errors);
        let remote = options.remote.into_remote(&actor_name);
        if remote.is_some() {
            remote::require_remote(&methods.generics, &messages, &mut errors);
        } else {
            remote::require_local(&messages, &mut errors);
        }
        errors.into_result()?;
        require_some(&messages, &methods)?;
        methods_mut(&mut methods).for_each(attributes::remove_marks);
        let mut generics = methods.generics.clone();
        WriteOut { actor: &actor }.visit_generics_mut(&mut generics);
        let trait_name = options.trait_name;
        Ok(Self {
            root: options.root.unwrap_or_else(|| root.clone()),
            trait_name: trait_name.unwrap_or_else(|| format_ident!("{actor_name}Messages")),
            actor,
            actor_name,
            remote,
            generics,
            conditions: attributes::conditions(&methods.attrs),
            messages,
            methods,
        })
    }
}

pub(crate) fn methods_mut(block: &mut ItemImpl) -> impl Iterator<Item = &mut ImplItemFn> {
    block.items.iter_mut().filter_map(|item| match item {
        ImplItem::Fn(method) => Some(method),
        _ => None,
    })
}

fn require_inherent(block: &ItemImpl) -> syn::Result<()> {
    let Some((path, _)) = &block.trait_ else {
        return Ok(());
    };
    let text = "`#[messages]` belongs on an `impl` block without a trait: `impl Counter { .. }`";
    Err(syn::Error::new_spanned(path, text))
}

fn name_of(actor: &Type) -> syn::Result<Ident> {
    if let Type::Path(node) = bare(actor)
        && let Some(segment) = node.path.segments.last()
    {
        return Ok(segment.ident.clone());
    }
    let text = "an actor is a struct or an enum: `impl Counter { .. }`";
    Err(syn::Error::new_spanned(actor, text))
}

fn require_no_lifetimes(generics: &Generics) -> syn::Result<()> {
    let is_lifetime = |param: &&GenericParam| matches!(param, GenericParam::Lifetime(_));
    generics
        .params
        .iter()
        .find(is_lifetime)
        .map_or(Ok(()), |param| {
            let text = "an actor is `'static`; allowed are type and const parameters";
            Err(syn::Error::new_spanned(param, text))
        })
}

fn parse_messages(block: &ItemImpl, actor: &Type, errors: &mut Errors) -> Vec<Message> {
    let mut messages = Vec::new();
    for item in &block.items {
        match item {
            ImplItem::Fn(method) => {
                let message = errors.note(Message::parse(method, actor));
                messages.extend(message.flatten());
            }
            ImplItem::Const(item) => refuse_mark(&item.attrs, errors),
            ImplItem::Type(item) => refuse_mark(&item.attrs, errors),
            _ => {}
        }
    }
    messages
}

fn refuse_mark(attributes: &[Attribute], errors: &mut Errors) {
    if let Some(mark) = attributes::mark(attributes) {
        let text = "only a method can be a message";
        errors.add(syn::Error::new_spanned(mark, text));
    }
}

fn require_some(messages: &[Message], block: &ItemImpl) -> syn::Result<()> {
    if messages.is_empty() {
        let text = "no method of this block is a message; put `#[message]` on those that are";
        return Err(syn::Error::new_spanned(&block.self_ty, text));
    }
    Ok(())
}
