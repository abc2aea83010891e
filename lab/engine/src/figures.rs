//! The figures of one run, and expressions over them.

use std::collections::BTreeMap;

use anyhow::Context;
use evalexpr::{ContextWithMutableVariables, HashMapContext, Value, eval_number_with_context};

use crate::declare::Number;
use crate::words::Words;

/// Figures by name, such as `hello.p99_ms`.
pub(crate) type Figures = BTreeMap<String, f64>;

/// Computes an expression.
///
/// # Errors
/// If it cannot be read, or names a figure that this run has not.
pub(crate) fn evaluate(expression: &str, figures: &Figures) -> anyhow::Result<f64> {
    let mut context = HashMapContext::new();
    for (name, value) in figures {
        context
            .set_value(name.clone(), Value::Float(*value))
            .with_context(|| format!("figure {name:?}"))?;
    }
    eval_number_with_context(expression, &context).with_context(|| format!("{expression:?}"))
}

impl Number {
    /// Returns its value; an expression's placeholders are filled first.
    pub(crate) fn value(&self, words: &Words, figures: &Figures) -> anyhow::Result<f64> {
        match self {
            Self::Value(value) => Ok(*value),
            Self::Expression(text) => evaluate(&words.fill(text)?, figures),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_has_figures_and_parameters() {
        let figures = Figures::from([("probe.rate".to_owned(), 50.0)]);
        let mut words = Words::default();
        words.set("times", 10);
        let number = Number::Expression("{times} * probe.rate".to_owned());
        let value = number.value(&words, &figures).expect("a number");
        assert!((value - 500.0).abs() < 1e-9);
        let error = evaluate("other.rate", &figures).expect_err("unknown");
        assert!(format!("{error:#}").contains("other.rate"), "{error:#}");
    }
}
