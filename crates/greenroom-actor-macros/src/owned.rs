//! Checks that messages and replies own their content: they outlive the call that made them.

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::visit::{self, Visit};
use syn::{
    Lifetime, ParenthesizedGenericArguments, TraitBound, Type, TypeFnPtr, TypeImplTrait,
    TypeReference,
};

/// Refuses references and `impl Trait` in the type of an argument.
pub(crate) fn require_argument(ty: &Type) -> syn::Result<()> {
    match first_fault(ty) {
        None => Ok(()),
        Some(Fault::Borrows(tokens)) => Err(syn::Error::new_spanned(
            tokens,
            "a message waits in the mailbox, so it cannot borrow; allowed are owned types \
             (`String` for `&str`), what is `'static`, and `&mut Context<Self>`",
        )),
        Some(Fault::Unnamed(tokens)) => Err(syn::Error::new_spanned(
            tokens,
            "a field of a message needs a named type; allowed are types such as `Box<dyn Trait>`, \
             and type parameters of the `impl` block",
        )),
    }
}

/// Refuses the same in the type of a reply.
pub(crate) fn require_reply(ty: &Type) -> syn::Result<()> {
    match first_fault(ty) {
        None => Ok(()),
        Some(Fault::Borrows(tokens)) => Err(syn::Error::new_spanned(
            tokens,
            "a reply leaves the actor, so it cannot borrow; allowed are owned types (`String` \
             for `&str`) and what is `'static`",
        )),
        Some(Fault::Unnamed(tokens)) => Err(syn::Error::new_spanned(
            tokens,
            "a reply needs a named type; allowed are `async fn` for `-> impl Future`, and types \
             such as `Box<dyn Trait + Send>`",
        )),
    }
}

enum Fault {
    Borrows(TokenStream),
    Unnamed(TokenStream),
}

fn first_fault(ty: &Type) -> Option<Fault> {
    let mut search = Search(None);
    search.visit_type(ty);
    search.0
}

struct Search(Option<Fault>);

impl Search {
    fn found(&mut self, fault: Fault) {
        self.0.get_or_insert(fault);
    }
}

impl<'ast> Visit<'ast> for Search {
    fn visit_lifetime(&mut self, lifetime: &'ast Lifetime) {
        if lifetime.ident != "static" {
            self.found(Fault::Borrows(lifetime.to_token_stream()));
        }
    }

    fn visit_type_reference(&mut self, reference: &'ast TypeReference) {
        if reference.lifetime.is_none() {
            self.found(Fault::Borrows(reference.to_token_stream()));
        }
        visit::visit_type_reference(self, reference);
    }

    fn visit_type_impl_trait(&mut self, unnamed: &'ast TypeImplTrait) {
        self.found(Fault::Unnamed(unnamed.to_token_stream()));
    }

    // The lifetimes of `fn(&str)`, `Fn(&str)` and `for<'a> ..` are those of a later call.
    fn visit_type_fn_ptr(&mut self, _: &'ast TypeFnPtr) {}

    fn visit_parenthesized_generic_arguments(&mut self, _: &'ast ParenthesizedGenericArguments) {}

    fn visit_trait_bound(&mut self, bound: &'ast TraitBound) {
        if bound.lifetimes.is_none() {
            visit::visit_trait_bound(self, bound);
        }
    }
}
